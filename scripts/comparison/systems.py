"""The systems that are compared: the base configuration with one part exchanged, in groups.

Scores and weights come from the registry, so a new mechanism takes part by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from nmt import experiment as experiments
from nmt.attention.registry import SCORES, WEIGHTS
from nmt.config.structure import differences
from nmt.core.errors import InputError
from nmt.experiment import Experiment

BASELINE = "baseline"

CONTEXTS = {
    "every_step": ("zeros", "every_step"),
    "first_step": ("zeros", "first_step"),
    "initial_state": ("raw", "nothing"),
    "projected_initial_state": ("projected", "nothing"),
    "raw_every_step": ("raw", "every_step"),
}
"""Ways to hand on one vector for the whole sentence: ``model.decoder.start`` and ``model.decoder.context``."""

CELLS = ("elman", "gru", "lstm")


@dataclass(frozen=True)
class System:
    """One row of the comparison."""

    group: str
    """What it exchanges; the baseline is a group of its own."""
    name: str
    overrides: tuple[str, ...] = ()
    """Of the base configuration, as ``--set`` has them."""
    horizons: tuple[str, ...] = ()
    """Keys that are to be the number of updates, which is known only once the budget is."""

    @property
    def key(self) -> str:
        """How ``--systems`` calls it, and its folder."""
        return self.name if self.group == BASELINE else f"{self.group}/{self.name}"


def all_systems() -> tuple[System, ...]:
    """Every system, the baseline first, then group by group."""
    return (
        System(BASELINE, BASELINE),
        *(
            System(
                "context",
                way,
                (
                    "model.attention.score=none",
                    "model.context=null",
                    f"model.decoder.start={start}",
                    f"model.decoder.context={enters}",
                ),
            )
            for way, (start, enters) in CONTEXTS.items()
        ),
        *(
            System("scores", kind, (f"model.attention.score={kind}", "model.attention.weights=softmax"))
            for kind in SCORES
        ),
        *(
            System(
                "weights",
                kind,
                (f"model.attention.weights={kind}",),
                # what is annealed shall have cooled down at the end, however long training is
                ("model.attention.weights.updates",) if "updates" in mechanism.model_fields else (),
            )
            for kind, mechanism in WEIGHTS.items()
        ),
        System("weights", "hard_drawn", ("model.attention.weights={kind: hard, expected: 0}",)),
        *(
            System(
                "weights",
                f"{kind}_normalized",
                (f"model.attention.weights={{kind: {kind}, variance_normalization: true}}",),
            )
            for kind in ("glimpse", "hard")
        ),
        System(
            "weights",
            "hard_marginal",
            (
                "model.attention.weights={kind: hard, training: marginal}",
                "model.decoder.query=current",
                "model.decoder.input_feeding=false",
            ),
        ),
        System("feeding", "teacher_forcing", ("training.feed=teacher_forcing",)),
        System(
            "feeding",
            "scheduled_sampling",
            ("training.feed={kind: scheduled_sampling, schedule: {kind: linear, end: 0.5}}",),
            ("training.feed.schedule.updates",),
        ),
        System("feeding", "free_running", ("training.feed=free_running",)),
        *(System("cells", cell, (f"model.encoder.cell={cell}", f"model.decoder.cell={cell}")) for cell in CELLS),
    )


@dataclass(frozen=True)
class Base:
    """What all systems have in common."""

    config: Path
    overrides: tuple[str, ...] = ()

    def experiment(self, overrides: Sequence[str] = ()) -> Experiment:
        """The base with more overrides. Raises InputError."""
        return experiments.load(self.config, [*self.overrides, *overrides])


@dataclass(frozen=True)
class Resolved:
    """A system on a base: trainable, the baseline under another name, or not available."""

    system: System
    is_baseline: bool = False
    """Whether the base configuration has this very part, so that training it again would tell nothing new."""
    fault: str | None = None
    """Why the toolkit cannot train it on this base."""

    @property
    def trainable(self) -> bool:
        """Whether it is to be trained for itself."""
        return self.fault is None and (self.system.group == BASELINE or not self.is_baseline)


def resolve(base: Base, systems: Sequence[System]) -> list[Resolved]:
    """What each system is on this base. Raises InputError where the base itself is at fault."""
    baseline = base.experiment()
    resolved = []
    for system in systems:
        try:
            experiment = base.experiment(system.overrides)
        except InputError as error:
            resolved.append(Resolved(system, fault=str(error)))
            continue
        resolved.append(Resolved(system, is_baseline=not differences(baseline, experiment)))
    return resolved


def baseline_names(resolved: Sequence[Resolved]) -> dict[str, str]:
    """What the baseline is called in each group, the ``softmax`` of the weights."""
    return {each.system.group: each.system.name for each in resolved if each.is_baseline and not each.trainable}


@dataclass(frozen=True)
class Selection:
    """Systems by key or by group."""

    names: tuple[str, ...] = field(default=())
    """None: all."""

    def choose(self, systems: Sequence[System]) -> list[System]:
        """The chosen ones, in the order of ``systems``. Raises InputError for an unknown name."""
        known = {system.key for system in systems} | {system.group for system in systems}
        for name in self.names:
            if name not in known:
                raise InputError(f"--systems {name}: is not a system and no group; --list shows them")
        return [each for each in systems if not self.names or each.key in self.names or each.group in self.names]

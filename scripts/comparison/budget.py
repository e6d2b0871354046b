"""The same CPU time for every system: how many updates it pays for, and what they really took.

Time on a shared machine says little, CPU time of one thread much more. It is measured from outside, as the system's
account of the whole process: import, reading, training, validation, saving. What an update takes is the difference of
two short trainings over the updates that one has more than the other; what is left of the shorter is fixed.
The number of updates is then part of the settings, so that the learning rate's schedule ends where training does, and
that training is the same however often it is interrupted.
"""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from comparison.children import Children, Ended, Stopped
from nmt.core import log
from nmt.core.errors import InputError

SHORT, LONG = 5, 35
"""Updates of the two trainings that are compared; both have the first, slow ones."""


@dataclass(frozen=True)
class Budget:
    """What every system may spend: CPU minutes, or a number of updates. One of them is given."""

    minutes: float | None
    updates: int | None = None

    def __str__(self) -> str:
        return f"{self.minutes:g} CPU minutes" if self.minutes is not None else f"{self.updates:,} updates"


@dataclass(frozen=True)
class Cost:
    """What a system's training takes. Seconds are CPU seconds."""

    budget: Budget
    updates: int
    """That the budget pays for."""
    seconds_per_update: float | None = None
    """As calibrated; None where the budget is in updates."""
    fixed_seconds: float | None = None
    """Of each start: import, reading, one validation, saving."""
    starts: tuple[float | None, ...] = ()
    """What each start of the training has taken; None: its end was never heard of."""

    @property
    def seconds(self) -> float:
        """Of all starts whose end was heard of."""
        return sum(each for each in self.starts if each is not None)

    @property
    def complete(self) -> bool:
        """Whether ``seconds`` is all that was spent."""
        return None not in self.starts

    def save(self, path: Path) -> None:
        """Writes it, whole or not at all."""
        write_whole(path, json.dumps(asdict(self), indent=1) + "\n")

    @classmethod
    def load(cls, path: Path) -> Cost | None:
        """What was saved; None where nothing was."""
        if not path.exists():
            return None
        tree = json.loads(path.read_text(encoding="utf-8"))
        return cls(**{**tree, "budget": Budget(**tree["budget"]), "starts": tuple(tree["starts"])})


@dataclass(frozen=True)
class Training:
    """The training of one system with one seed."""

    folder: Path
    settings: Path
    """The configuration, whole but for the number of updates."""
    horizons: tuple[str, ...]
    """More keys that are to be the number of updates."""

    @property
    def run(self) -> Path:
        """The run directory."""
        return self.folder / "run"

    @property
    def log(self) -> Path:
        """What the trainings have said."""
        return self.folder / "train.log"

    def cost(self) -> Cost | None:
        """What is known of it so far; None: it was never calibrated."""
        return Cost.load(self.folder / "cost.json")

    def arguments(self, updates: int, run: Path) -> Sequence[str | Path]:
        """Of the command that trains it. With one validation, at the end, as in calibration."""
        numbers = ("training.stopping.updates", "training.validation.every", *self.horizons)
        settings = [f"run={run}", *(f"{key}={updates}" for key in numbers)]
        return ["train", self.settings, "--device", "cpu", *(part for each in settings for part in ("--set", each))]

    def is_done(self) -> bool:
        """Whether it has had all its updates."""
        cost = self.cost()
        return cost is not None and (self.run / "checkpoints" / f"step-{cost.updates:08d}").exists()

    def train(self, budget: Budget, children: Children) -> Cost:
        """Calibrates, trains or goes on; returns what it took. Raises InputError where training fails, Stopped."""
        path = self.folder / "cost.json"
        cost = self.cost() or self._calibrate(budget, children)
        if self.is_done():
            return cost
        cost.save(path)
        # a start is noted before it is made, so that one whose end is never heard of is known
        begun = replace(cost, starts=(*cost.starts, None))
        begun.save(path)
        try:
            ended = children.run("nmt", self.arguments(cost.updates, self.run), self.log)
        except Stopped:  # before it was started
            cost.save(path)
            raise
        cost = replace(cost, starts=(*cost.starts, ended.cpu_seconds))
        cost.save(path)
        self._check(ended, children)
        return cost

    def _calibrate(self, budget: Budget, children: Children) -> Cost:
        if budget.updates is not None:
            return Cost(budget, budget.updates)
        assert budget.minutes is not None
        seconds = []
        for updates in (SHORT, LONG):
            run = self.folder / f"calibration-{updates}"
            shutil.rmtree(run, ignore_errors=True)
            try:
                ended = children.run("nmt", self.arguments(updates, run), self.log)
            finally:
                shutil.rmtree(run, ignore_errors=True)
            self._check(ended, children)
            seconds.append(ended.cpu_seconds)
        short, long = seconds
        per_update = max((long - short) / (LONG - SHORT), 1e-4)
        fixed = max(short - SHORT * per_update, 0.0)
        updates = math.floor((60 * budget.minutes - fixed) / per_update)
        if updates < LONG:
            raise InputError(
                f"--minutes {budget.minutes:g}: pays for {max(updates, 0)} updates of {per_update:.2f} s after a start "
                f"of {fixed:.0f} s; give more"
            )
        log.info(f"{self.folder}: {per_update:.3f} CPU s for an update, {fixed:.1f} s fixed: {updates:,} updates")
        return Cost(budget, updates, per_update, fixed)

    def _check(self, ended: Ended, children: Children) -> None:
        if ended.code == 0:
            return
        if children.stopping:
            raise Stopped
        raise InputError(f"training failed with exit code {ended.code}: {last_line(self.log)}")


def last_line(path: Path) -> str:
    """The last line of a log, which names the fault."""
    lines = path.read_text(encoding="utf-8", errors="replace").strip().split("\n")
    return f"{lines[-1]} (see {path})"


def write_whole(path: Path, text: str) -> None:
    """Writes a file so that a reader never sees half of it."""
    beside = path.with_name(f".{path.name}.unfinished")
    beside.write_text(text, encoding="utf-8")
    beside.replace(path)

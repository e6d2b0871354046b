"""Averages of checkpoints, which are used instead of the last one."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from nmt import experiment as experiments
from nmt.config.structure import differences
from nmt.core import log
from nmt.core.errors import InputError
from nmt.training import run_directory
from nmt.training.metrics import read
from nmt.training.validation import rank
from nmt.translator.find_run import find, is_checkpoint, run_of
from nmt.translator.manifest import checked_state

Metric: TypeAlias = Literal["loss", "perplexity", "accuracy", "bleu", "chrf"]
"""The measures of a validation."""


@dataclass(frozen=True)
class Selection:
    """The checkpoints of a run to average: all of them, unless ``last`` or ``best`` is a number."""

    last: int | None = None
    """Number of the newest checkpoints."""
    best: int | None = None
    """Number of the checkpoints with the best validations."""
    metric: Metric | None = None
    """The measure for ``best``; None means the run's ``training.validation.metric``."""


def average(
    models: Sequence[str | Path] = (), overrides: Sequence[str] = (), *, selection: Selection | None = None
) -> Path:
    """Averages the weights of checkpoints (Vaswani et al. 2017, section 6.1) into a new checkpoint of their run, points
    the run's link ``averaged`` at it, and returns the link.

    ``models`` is a run directory or the config that trained it, or empty for the run that was trained last;
    ``selection`` then chooses among its checkpoints. Or it is two or more checkpoint folders, and the average is
    written to the run of the first. ``overrides`` change the config of the run.

    Raises InputError for fewer than two checkpoints, for checkpoints that are missing, damaged or averages themselves,
    and for checkpoints of different models or vocabularies.
    """
    found = [find(model, overrides) for model in models or (None,)]
    if len(found) == 1 and not is_checkpoint(found[0]):
        run = found[0]
        members = _of_run(run, selection or Selection(), overrides)
    else:
        if selection is not None and selection != Selection():
            raise InputError("--last and --best choose among the checkpoints of a run; name one run directory")
        members = _by_name(found)
        run = run_of(members[0])
    # sorted by update, so that the sum does not depend on the order of their names
    members = sorted(members, key=lambda member: (_update(member), member))
    _refuse_strangers(members)
    resolved = [member.resolve() for member in members]  # one of another run is named by its path
    names = [member.name if run_of(member) == run.resolve() else str(member) for member in resolved]
    folder = run_directory.average_path(run, names)

    from nmt.training import checkpoint
    from nmt.training.averaging import average_weights, same_weights

    weights = average_weights(members)
    if not (folder.exists() and same_weights(folder, weights)):  # training may have written and measured it already
        first = run_directory.read_state(members[0])
        state = {"averaged": names, **{key: first.get(key) for key in ("vocabulary", "manifest")}}
        checkpoint.write(folder, {run_directory.MODEL: weights}, state)
    run_directory.set_link(run, "averaged", folder)
    log.info(f"averaged {len(names)} checkpoints: {', '.join(names)}")
    to = " --to LANGUAGE" if len(experiments.load(run / experiments.FILE).data.target_languages) > 1 else ""
    log.info(f"model: {run / 'averaged'}; use it with nmt translate {shlex.quote(str(run / 'averaged'))}{to}")
    return run / "averaged"


def _of_run(run: Path, selection: Selection, overrides: Sequence[str]) -> list[Path]:
    """Selects checkpoints of a run."""
    experiment = experiments.load(run / experiments.FILE, overrides)
    found, of_these = run_directory.checkpoint_paths(run), "checkpoints"
    if selection.best is not None:
        metric = selection.metric or experiment.training.validation.metric
        measured = [line for line in read(run) if line["kind"] == "valid" and line.get(metric) is not None]
        quality = {run_directory.checkpoint_path(run, line["update"]): rank(line, metric) for line in measured}
        found = sorted((folder for folder in found if folder in quality), key=quality.__getitem__)
        of_these = f"checkpoints with a validation's {metric}"
    number, option = selection.last or selection.best, "--last" if selection.best is None else "--best"
    if number is not None and number > len(found):
        fewer = f"{len(found)}, fewer than {option} {number}"
        raise InputError(f"{run}: {of_these}: {fewer}; training.keep says how many stay")
    if len(found) < 2:
        raise InputError(f"{run}: an average needs two or more {of_these}, and there are {len(found)}")
    return found if number is None else found[-number:]


def _by_name(found: Sequence[Path]) -> list[Path]:
    """Checks the named checkpoints and follows links."""
    if len(found) == 1:
        raise InputError(f"{found[0]}: is one checkpoint, and an average needs two or more; or name its run directory")
    if others := [path for path in found if not is_checkpoint(path)]:
        raise InputError(
            f"{others[0]}: is not a checkpoint folder; name checkpoint folders alone, or one run directory"
        )
    members = [path.resolve() for path in found]
    if twice := [path for path, member in zip(found, members, strict=True) if members.count(member) > 1]:
        raise InputError(f"{twice[0]}: is named twice")
    return members


def _update(member: Path) -> int:
    state = run_directory.read_state(member)
    if "averaged" in state:
        raise InputError(f"{member}: is an average itself; name the checkpoints that it was made of")
    try:
        return int(state["position"]["update"])
    except (KeyError, TypeError, ValueError):
        raise run_directory.Damaged(member / run_directory.STATE, "no position") from None


def _refuse_strangers(members: Sequence[Path]) -> None:
    """Raises InputError unless checkpoints are complete and agree in vocabulary and model; dropout, which has no
    weights, may differ."""
    first, *others = members
    vocabulary = run_directory.read_state(first).get("vocabulary")
    for other in others:
        if run_directory.read_state(other).get("vocabulary") != vocabulary:
            raise InputError(f"{other}: was trained with another vocabulary than {first}")
    runs = {run: experiments.load(run / experiments.FILE) for run in dict.fromkeys(map(run_of, members))}
    for member in members:
        # the checksums of weights are verified when they are averaged
        run_directory.verify(member, [run_directory.STATE])
        checked_state(member, runs[run_of(member)], run_directory.read_lengths(run_of(member)))
    for other in others:
        changed = differences(runs[run_of(first)].model, runs[run_of(other)].model)
        if changed := list(filter(experiments.decides, changed)):
            raise InputError(f"{other}: is of another model.{changed[0]} than {first}")

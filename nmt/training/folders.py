"""Where checkpoints stand: folders that are whole or not there. Free of torch, so that a wrong name is told at once.

checkpoints/step-00012000/model.safetensors     the weights to use
                          training.safetensors  optimizer state, generator states, weights in training where they differ
                          state.json            where training stood
            average-00012000-of-3-1f0c9a4e/     the mean of the weights of some: model.safetensors, state.json
lengths.json                                    how long the sentences are that it is trained on
best -> checkpoints/…    latest -> checkpoints/step-…    averaged -> checkpoints/average-…

Training goes on from a ``step-`` folder only, and deletes no others.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Collection, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from nmt.core.errors import InputError
from nmt.core.files import read_json
from nmt.data.pieces import Lengths

MODEL, TRAINING, STATE = "model.safetensors", "training.safetensors", "state.json"
LENGTHS = "lengths.json"


def step(run: Path, update: int) -> Path:
    """The checkpoint of an update, whether or not it is there."""
    return run / "checkpoints" / f"step-{update:08d}"


def steps(run: Path) -> list[Path]:
    """The whole checkpoints of a run, oldest first."""
    return sorted((run / "checkpoints").glob("step-*"))


def average(run: Path, members: Sequence[str]) -> Path:
    """Where the average of some checkpoints stands, whether or not it is there; ``members`` are their names, the newest
    last. Other checkpoints, another place."""
    digest = hashlib.sha256("\n".join(members).encode()).hexdigest()[:8]
    newest = Path(members[-1]).name.removeprefix("step-")
    return run / "checkpoints" / f"average-{newest}-of-{len(members)}-{digest}"


def averages(run: Path) -> list[Path]:
    """The averages that are there."""
    return sorted((run / "checkpoints").glob("average-*"))


def point(run: Path, name: str, checkpoint: Path) -> None:
    """Makes the link ``name`` of a run lead to a checkpoint, in one step."""
    beside = run / f".{name}.unfinished"
    beside.unlink(missing_ok=True)
    beside.symlink_to(checkpoint.relative_to(run))
    beside.replace(run / name)
    sync(run)


def latest(run: Path) -> Path | None:
    """The newest whole checkpoint, whatever ``latest`` says: a run may have stopped between writing and linking."""
    found = steps(run)
    return found[-1] if found else None


def prune(run: Path, *, keep: int, wanted: Collection[Path] = ()) -> None:
    """Deletes all checkpoints but the newest ``keep``, those ``wanted`` and the one that ``best`` leads to, and
    unfinished ones. Averages stay."""
    folder = run / "checkpoints"
    best = (run / "best").resolve() if (run / "best").exists() else None
    for old in steps(run)[:-keep]:
        if old.resolve() != best and old not in wanted:
            shutil.rmtree(old)
    for unfinished in folder.glob(".step-*.unfinished"):
        shutil.rmtree(unfinished)


def read_state(checkpoint: Path) -> dict[str, Any]:
    """What a checkpoint tells of itself. Raises InputError where the file is missing or damaged."""
    path = checkpoint / STATE
    try:
        state = read_json(path)
    except (OSError, ValueError) as error:
        one_line = " ".join(str(error).split())
        raise InputError(f"{path}: unreadable checkpoint, delete its folder or restore it: {one_line}") from None
    if not isinstance(state, dict):
        raise InputError(f"{path}: unreadable checkpoint, delete its folder or restore it: no JSON object")
    return state


def write_lengths(run: Path, lengths: Lengths) -> None:
    """Notes in a run directory how long its training sentences are."""
    beside = run / f".{LENGTHS}.unfinished"
    beside.write_text(json.dumps(asdict(lengths)) + "\n", encoding="utf-8")
    beside.replace(run / LENGTHS)


def read_lengths(run: Path) -> Lengths | None:
    """What ``write_lengths`` wrote; None where nothing was. Raises InputError where it is damaged."""
    path = run / LENGTHS
    if not path.exists():
        return None
    try:
        found = read_json(path)
        usual, longest = found["usual"], found["longest"]
        if not (isinstance(usual, int) and isinstance(longest, int) and 0 < usual <= longest < 1 << 31):
            raise ValueError("no lengths")
        return Lengths(usual=usual, longest=longest)
    except (OSError, ValueError, KeyError, TypeError):
        raise InputError(f"{path}: damaged; delete it, and `nmt train` writes it anew") from None


def sync(path: Path) -> None:
    """Has the system write a file or folder to disk before anything after this call."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

"""Where checkpoints stand: folders that are whole or not there. Free of torch, so that a wrong name is told at once.

checkpoints/step-00012000/model.safetensors     the weights
                          training.safetensors  optimizer state, generator states
                          state.json            where training stood
best -> checkpoints/step-…    latest -> checkpoints/step-…
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

MODEL, TRAINING, STATE = "model.safetensors", "training.safetensors", "state.json"


def point(run: Path, name: str, checkpoint: Path) -> None:
    """Makes the link ``name`` of a run lead to a checkpoint, in one step."""
    beside = run / f".{name}.unfinished"
    beside.unlink(missing_ok=True)
    beside.symlink_to(checkpoint.relative_to(run))
    beside.replace(run / name)
    sync(run)


def latest(run: Path) -> Path | None:
    """The newest whole checkpoint, whatever ``latest`` says: a run may have stopped between writing and linking."""
    found = sorted((run / "checkpoints").glob("step-*"))
    return found[-1] if found else None


def prune(run: Path, *, keep: int) -> None:
    """Deletes all but the newest ``keep`` checkpoints and the one that ``best`` leads to, and unfinished ones."""
    folder = run / "checkpoints"
    best = (run / "best").resolve() if (run / "best").exists() else None
    for old in sorted(folder.glob("step-*"))[:-keep]:
        if old.resolve() != best:
            shutil.rmtree(old)
    for unfinished in folder.glob(".step-*.unfinished"):
        shutil.rmtree(unfinished)


def sync(path: Path) -> None:
    """Has the system write a file or folder to disk before anything after this call."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

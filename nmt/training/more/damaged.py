"""Training from the newest whole checkpoint, where a newer one is damaged."""

from __future__ import annotations

from pathlib import Path

from nmt.core import log
from nmt.core.errors import InputError
from nmt.training import folders
from nmt.training.checkpoint import read_tensors
from nmt.training.folders import MODEL, STATE, TRAINING, Damaged, verify


def check(checkpoint: Path) -> None:
    """Raises Damaged where training cannot go on from a checkpoint: by its checksums, or where it has none, by what can
    be seen of its files."""
    verify(checkpoint, (MODEL, TRAINING, STATE))
    folders.read_state(checkpoint)
    for name in (MODEL, TRAINING):
        read_tensors(checkpoint / name)


def skip_damaged(run: Path) -> None:
    """Sets aside the checkpoints that are newer than the newest whole one. Raises InputError where none is whole."""
    damaged: list[tuple[Path, Damaged]] = []
    for folder in reversed(folders.steps(run)):
        try:
            check(folder)
        except Damaged as error:
            damaged.append((folder, error))
            continue
        for broken, fault in damaged:
            log.warning(f"{fault}; set aside as {_set_aside(broken).name}")
        if damaged:
            folders.point(run, "latest", folder)
        return
    if damaged:
        raise InputError(f"{run}: holds no checkpoint that is whole; {damaged[0][1]}")


def _set_aside(checkpoint: Path) -> Path:
    """Gives a damaged checkpoint a name that no one takes for a checkpoint's; returns its new path."""
    path, count = checkpoint.with_name(f"damaged-{checkpoint.name}"), 1
    while path.exists():
        count += 1
        path = checkpoint.with_name(f"damaged-{checkpoint.name}-{count}")
    return checkpoint.rename(path)

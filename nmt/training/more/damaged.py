"""Training from the newest undamaged checkpoint if a newer one is damaged."""

from __future__ import annotations

from pathlib import Path

from nmt.core import log
from nmt.core.errors import InputError
from nmt.training import folders
from nmt.training.checkpoint import read_tensors
from nmt.training.folders import MODEL, STATE, TRAINING, Damaged, verify


def check(checkpoint: Path) -> None:
    """Raises Damaged if training cannot resume from a checkpoint, judged by its checksums and by reading its files."""
    verify(checkpoint, (MODEL, TRAINING, STATE))
    folders.read_state(checkpoint)
    for name in (MODEL, TRAINING):
        read_tensors(checkpoint / name)


def skip_damaged(run: Path) -> None:
    """Renames the checkpoints that are newer than the newest undamaged one. Raises InputError if all are damaged."""
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
    """Renames a damaged checkpoint so that it is not taken for a checkpoint; returns its new path."""
    path, count = checkpoint.with_name(f"damaged-{checkpoint.name}"), 1
    while path.exists():
        count += 1
        path = checkpoint.with_name(f"damaged-{checkpoint.name}-{count}")
    return checkpoint.rename(path)

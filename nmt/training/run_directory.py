"""Folders of checkpoints, each of which is complete or does not exist. This module does not import torch, so that a
wrong name is reported at once.

checkpoints/step-00012000/model.safetensors     the weights to use
                          training.safetensors  optimizer state, generator states, weights in training where they differ
                          state.json            position of training; the format, and the nmt that wrote it
                          SHA256SUMS            of the other files, as sha256sum -c reads it
            average-00012000-of-3-1f0c9a4e/     the mean of the weights of some; no training.safetensors
            damaged-step-00011500/              skipped by training on request
snapshots/00012000.jsonl                        attention to the first valid pairs at that update's validation
lengths.json                                    lengths of the training sentences, and shares of them
source-counts.json                              how often each subword occurs in their sources
best -> checkpoints/…    latest -> checkpoints/step-…    averaged -> checkpoints/average-…

Training resumes from a ``step-`` folder only. It deletes old ones, and averages of updates that it will repeat, but no
others.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections.abc import Collection, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from nmt.core import log
from nmt.core.errors import InputError
from nmt.core.files import content_hash, read_json, replace_file, sync_entry
from nmt.core.version import VERSION
from nmt.data import atomic_folder
from nmt.data.segments import SourceLengths

FORMAT = 1
"""Version of the format of checkpoints and their run directory. It is raised when earlier releases cannot read the new
format, or would misread it. ``state.json`` records it; an older ``state.json`` without it has version 1."""

MODEL, TRAINING, STATE = "model.safetensors", "training.safetensors", "state.json"
CHECKSUMS = "SHA256SUMS"
LENGTHS = "lengths.json"


class Damaged(InputError):
    """A checkpoint, or a part of it, differs from what was written."""

    def __init__(self, path: Path, why: object) -> None:
        super().__init__(f"{path}: unreadable checkpoint; delete or restore its folder: {' '.join(str(why).split())}")


def checkpoint_path(run: Path, update: int) -> Path:
    """Returns the path of an update's checkpoint, which need not exist."""
    return run / "checkpoints" / f"step-{update:08d}"


def checkpoint_paths(run: Path) -> list[Path]:
    """Lists the complete checkpoints of a run, oldest first."""
    return [path for _, path in _numbered(run / "checkpoints", r"step-(\d{8,})")]


def snapshot_path(run: Path, update: int) -> Path:
    """Returns the path of the attention at a validation, which need not exist."""
    return run / "snapshots" / f"{update:08d}.jsonl"


def snapshot_paths(run: Path) -> list[tuple[int, Path]]:
    """Lists the existing snapshots with their updates, oldest first."""
    return _numbered(run / "snapshots", r"(\d{8,})\.jsonl")


def _numbered(folder: Path, pattern: str) -> list[tuple[int, Path]]:
    """Lists the paths in a folder whose names match, sorted by their numbers, the first group of the pattern."""
    matches = [(re.fullmatch(pattern, path.name), path) for path in folder.glob("*")]
    return sorted((int(match[1]), path) for match, path in matches if match)


def drop_snapshots(run: Path, *, after: int, again: bool) -> None:
    """Removes snapshots of updates after ``after``, with ``again`` also the one of ``after`` itself, and half-written
    files."""
    for update, path in snapshot_paths(run):
        if update > after or (again and update == after):
            path.unlink()
    for unfinished in (run / "snapshots").glob(".*.partial-*"):
        unfinished.unlink()


def average_path(run: Path, members: Sequence[str]) -> Path:
    """Returns the path of the average of some checkpoints, which need not exist; ``members`` are their names, the
    newest last. Different members give different paths."""
    digest = hashlib.sha256("\n".join(members).encode()).hexdigest()[:8]
    newest = Path(members[-1]).name.removeprefix("step-")
    return run / "checkpoints" / f"average-{newest}-of-{len(members)}-{digest}"


def average_paths(run: Path) -> list[Path]:
    """Lists the existing averages."""
    return sorted((run / "checkpoints").glob("average-*"))


def set_link(run: Path, name: str, checkpoint: Path) -> None:
    """Points the link ``name`` of a run at a checkpoint, atomically."""
    beside = run / f".{name}.unfinished"
    beside.unlink(missing_ok=True)
    beside.symlink_to(checkpoint.relative_to(run))
    beside.replace(run / name)
    sync_entry(run)


def recover(run: Path) -> None:
    """Repairs a checkpoint that a process was replacing when it was killed. No other process may be training here."""
    for replaced in (run / "checkpoints").glob(".*.replaced"):
        atomic_folder.recover(replaced.with_name(replaced.name.removeprefix(".").removesuffix(".replaced")))


def latest_checkpoint(run: Path) -> Path | None:
    """Returns the newest complete checkpoint, which the link ``latest`` may miss: a run may have stopped between
    writing and linking."""
    return next(reversed(checkpoint_paths(run)), None)


def prune(run: Path, *, keep: int, retain: Collection[Path] = ()) -> None:
    """Deletes all checkpoints except the newest ``keep``, those to ``retain`` and the one that ``best`` links to; also
    deletes unfinished ones. Averages are kept."""
    best = (run / "best").resolve() if (run / "best").exists() else None
    for old in checkpoint_paths(run)[:-keep]:
        if old.resolve() != best and old not in retain:
            atomic_folder.remove(old)
    for unfinished in (run / "checkpoints").glob(".step-*"):
        shutil.rmtree(unfinished)


def read_state(checkpoint: Path) -> dict[str, Any]:
    """Reads the state of a checkpoint. Raises InputError if it is missing, damaged or of a newer format."""
    path = checkpoint / STATE
    try:
        state = read_json(path)
    except (OSError, ValueError) as error:
        raise Damaged(path, error) from None
    if not isinstance(state, dict):
        raise Damaged(path, "no JSON object")
    format, writer = state.get("format", 1), state.get("nmt")
    if type(format) is not int or format < 1:
        raise Damaged(path, f"its format is {format!r}, which is not a number from 1")
    if format > FORMAT:
        needed = f"nmt {writer}, which wrote it," if isinstance(writer, str) else "the nmt that wrote it"
        raise InputError(
            f"{path}: is of format {format}, and this is nmt {VERSION}, which reads formats up to {FORMAT}; "
            f"install {needed} or a newer one"
        )
    return state


def refuse_newer(checkpoint: Path) -> None:
    """Raises InputError for a checkpoint of a newer format, before anything else of it or of its run is read, which
    would only seem damaged. A damaged checkpoint is left to the functions that read it."""
    try:
        read_state(checkpoint)
    except Damaged:
        return


def write_checksums(folder: Path, names: Sequence[str]) -> None:
    """Writes the checksums of the files of a new checkpoint."""
    lines = [f"{content_hash(folder / name).hex()}  {name}\n" for name in names]
    (folder / CHECKSUMS).write_text("".join(lines), encoding="utf-8")


def verify(checkpoint: Path, names: Sequence[str]) -> None:
    """Raises Damaged if a file of a checkpoint is missing or changed. A checkpoint without checksums, from an older
    release, is accepted."""
    path = checkpoint / CHECKSUMS
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        # the format is newer than the checksums, so a checkpoint with a format also has checksums
        if (checkpoint / STATE).exists() and "format" in read_state(checkpoint):
            raise Damaged(path, "this checkpoint was written with one, and it is missing") from None
        log.detail(f"{checkpoint}: has no {CHECKSUMS}, being from before they were written: taken as it is")
        return
    except (OSError, ValueError) as error:
        raise Damaged(path, error) from None
    noted = {name: digest for digest, _, name in (line.partition("  ") for line in lines)}
    for name in names:
        if name not in noted:
            raise Damaged(path, f"tells nothing of {name}")
        try:
            digest = content_hash(checkpoint / name).hex()
        except OSError as error:
            raise Damaged(checkpoint / name, error.strerror) from None
        if digest != noted[name]:
            raise Damaged(checkpoint / name, f"it is not what was written, by {CHECKSUMS}")


def write_lengths(run: Path, lengths: SourceLengths) -> None:
    """Writes the lengths of the training sentences to a run directory."""
    replace_file(run / LENGTHS, json.dumps(asdict(lengths)) + "\n")


def read_lengths(run: Path) -> SourceLengths | None:
    """Reads the file of ``write_lengths``; returns None if there is none. Raises InputError if it is damaged."""
    path = run / LENGTHS
    if not path.exists():
        return None
    try:
        lengths = read_json(path)
        usual, longest = lengths["usual"], lengths["longest"]
        if not (isinstance(usual, int) and isinstance(longest, int) and 0 < usual <= longest < 1 << 31):
            raise ValueError("no lengths")
        shares = lengths.get("several"), lengths.get("letterless")
        if not all(share is None or (isinstance(share, int | float) and 0 <= share <= 1) for share in shares):
            raise ValueError("no shares")
        return SourceLengths(usual, longest, *shares)
    except (OSError, ValueError, KeyError, TypeError):
        raise InputError(f"{path}: damaged; delete it, and `nmt train` writes it anew") from None

"""Where checkpoints stand: folders that are whole or not there. Free of torch, so that a wrong name is told at once.

checkpoints/step-00012000/model.safetensors     the weights to use
                          training.safetensors  optimizer state, generator states, weights in training where they differ
                          state.json            where training stood; the format, and which nmt wrote it
                          SHA256SUMS            of the other files, as sha256sum -c reads it
            average-00012000-of-3-1f0c9a4e/     the mean of the weights of some; no training.safetensors
            damaged-step-00011500/              what training was told to skip
snapshots/00012000.jsonl                        attention to the first valid pairs at that update's validation
lengths.json                                    how long the sentences are that it is trained on
best -> checkpoints/…    latest -> checkpoints/step-…    averaged -> checkpoints/average-…

Training goes on from a ``step-`` folder only, and deletes no others.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from nmt.core import log
from nmt.core.errors import InputError
from nmt.core.files import content_hash, naming, read_json, sync_entry
from nmt.core.version import VERSION
from nmt.data.pieces import Lengths

FORMAT = 1
"""Of checkpoints and the run directory round them. It is raised when releases before could not read what is written, or
would take it for something else; ``state.json`` has it, and where it does not, being from before, it is 1."""

MODEL, TRAINING, STATE = "model.safetensors", "training.safetensors", "state.json"
CHECKSUMS = "SHA256SUMS"
LENGTHS = "lengths.json"

_STEP = re.compile(r"step-(\d{8,})")
_SNAPSHOT = re.compile(r"(\d{8,})\.jsonl")


class Damaged(InputError):
    """A checkpoint, or a part of it, is not what was written."""

    def __init__(self, path: Path, why: object) -> None:
        super().__init__(
            f"{path}: unreadable checkpoint, delete its folder or restore it: {' '.join(str(why).split())}"
        )


def step(run: Path, update: int) -> Path:
    """The checkpoint of an update, whether or not it is there."""
    return run / "checkpoints" / f"step-{update:08d}"


def steps(run: Path) -> list[Path]:
    """The whole checkpoints of a run, oldest first."""
    found = [(_STEP.fullmatch(path.name), path) for path in (run / "checkpoints").glob("step-*")]
    return [path for _, path in sorted((int(match[1]), path) for match, path in found if match)]


def snapshot(run: Path, update: int) -> Path:
    """Where the attention at a validation stands, whether or not it is there."""
    return run / "snapshots" / f"{update:08d}.jsonl"


def snapshots(run: Path) -> list[tuple[int, Path]]:
    """Those that are there with their updates, oldest first."""
    found = [(_SNAPSHOT.fullmatch(path.name), path) for path in (run / "snapshots").glob("*.jsonl")]
    return sorted((int(match[1]), path) for match, path in found if match)


def drop_snapshots(run: Path, *, after: int, again: bool) -> None:
    """Removes those of updates that will be made again, ``again`` also that of update ``after`` itself, and what was
    left half-written."""
    for update, path in snapshots(run):
        if update > after or (again and update == after):
            path.unlink()
    for unfinished in (run / "snapshots").glob(".*.partial-*"):
        unfinished.unlink()


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
    sync_entry(run)


def put(beside: Path, final: Path) -> None:
    """Gives a whole folder its name. What had that name is removed; should the process be killed before the new one has
    it, ``recover`` gives it back."""
    replaced = final.with_name(f".{final.name}.replaced")
    if final.exists():
        shutil.rmtree(replaced, ignore_errors=True)
        final.rename(replaced)
    beside.rename(final)
    sync_entry(final.parent)
    shutil.rmtree(replaced, ignore_errors=True)


def remove(folder: Path) -> None:
    """Deletes a checkpoint, which is whole or not there also while it is deleted."""
    beside = folder.with_name(f".{folder.name}.unfinished")
    shutil.rmtree(beside, ignore_errors=True)
    folder.rename(beside)
    shutil.rmtree(beside)


def recover(run: Path) -> None:
    """Brings in order what a killed process left in the middle of ``put``. Nobody else may be training here."""
    for replaced in (run / "checkpoints").glob(".*.replaced"):
        final = replaced.with_name(replaced.name.removeprefix(".").removesuffix(".replaced"))
        if final.exists():
            shutil.rmtree(replaced)
        else:
            replaced.rename(final)


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
            remove(old)
    for unfinished in folder.glob(".step-*.unfinished"):
        shutil.rmtree(unfinished)


def read_state(checkpoint: Path) -> dict[str, Any]:
    """What a checkpoint tells of itself. Raises InputError where it is missing, damaged or of a newer format."""
    path = checkpoint / STATE
    try:
        state = read_json(path)
    except (OSError, ValueError) as error:
        raise Damaged(path, error) from None
    if not isinstance(state, dict):
        raise Damaged(path, "no JSON object")
    _check_format(path, state)
    return state


def refuse_newer(checkpoint: Path) -> None:
    """Raises InputError for a checkpoint of a newer format, before anything else of it or of its run is read, which
    would only seem damaged. What is damaged is left to those who read it."""
    try:
        read_state(checkpoint)
    except Damaged:
        return


def _check_format(path: Path, state: Mapping[str, Any]) -> None:
    format = state.get("format", 1)
    if type(format) is not int or format < 1:
        raise Damaged(path, f"its format is {format!r}, which is no number from 1")
    if format > FORMAT:
        writer = state.get("nmt")
        needed = f"nmt {writer}, which wrote it," if isinstance(writer, str) else "the nmt that wrote it"
        raise InputError(
            f"{path}: is of format {format}, and this is nmt {VERSION}, which reads formats up to {FORMAT}; "
            f"install {needed} or a newer one"
        )


def write_checksums(folder: Path, names: Sequence[str]) -> None:
    """Notes what files of a new checkpoint hold."""
    lines = [f"{content_hash(folder / name).hex()}  {name}\n" for name in names]
    (folder / CHECKSUMS).write_text("".join(lines), encoding="utf-8")


def verify(checkpoint: Path, names: Sequence[str]) -> None:
    """Raises Damaged where a file of a checkpoint is missing or not what was written. One from before checksums were
    written is taken as it is."""
    path = checkpoint / CHECKSUMS
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
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


def write_lengths(run: Path, lengths: Lengths) -> None:
    """Notes in a run directory how long its training sentences are."""
    beside = run / f".{LENGTHS}.unfinished"
    with naming(beside):
        beside.write_text(json.dumps(asdict(lengths)) + "\n", encoding="utf-8")
    sync_entry(beside)
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

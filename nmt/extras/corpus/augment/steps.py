"""Steps of a pipeline in a folder, each of which runs once: the same pipeline continues where it was interrupted.

``augment.json`` of the folder records them: ``{"target text": {"inputs": {…}, "done": true}, …}``.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from nmt.config.yaml_source import dotted, leaves
from nmt.core import log
from nmt.core.errors import InputError
from nmt.core.files import content_hash, read_json, reading, replace_file

FILE = "augment.json"
_HASH = "sha256:"


def run_step(
    folder: Path, name: str, inputs: Mapping[str, Any], outputs: Sequence[Path], make: Callable[[], None], *,
    resumes: bool = False,
) -> None:  # fmt: skip
    """Runs a step of the pipeline in a folder, unless its outputs exist. Raises InputError if it was started with other
    inputs, or the record is damaged.

    Args:
        inputs: Everything that the output is a function of: settings by name, nested or not, and hashes of files.
        outputs: Files and folders that exist after the step.
        make: Function that makes the outputs. When it is called again after an interruption, it may continue with
            existing files.
        resumes: True if ``make`` continues with existing files, so that other inputs are refused after an InputError,
            too.
    """
    as_read = json.loads(json.dumps(inputs))
    inputs = {dotted(place): value for place, value in leaves(as_read)}
    try:
        record = read_json(folder / FILE) if (folder / FILE).exists() else {}
        before = record.get(name, {"inputs": inputs, "done": False})
        begun, done = before["inputs"], before["done"]
        changed = [key for key in {**inputs, **begun} if begun.get(key) != inputs.get(key)]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise InputError(f"{folder / FILE}: is damaged; delete {folder}, or name another --output") from None
    if changed:
        was, now = begun.get(changed[0]), inputs.get(changed[0])
        other = f"{changed[0]} {was}, not {now}" if _is_short(was) and _is_short(now) else f"another {changed[0]}"
        spare = f" (and spare a training: --reverse {reverse})" if (reverse := folder / "reverse").exists() else ""
        raise InputError(f"{folder}: {name} was begun with {other}; keep its settings, or name another --output{spare}")
    if done and all(output.exists() for output in outputs):
        log.detail(f"{name}: there already")
        return
    save(folder, record | {name: {"inputs": inputs, "done": False}})
    try:
        make()
    except InputError:
        if not resumes:
            save(folder, record)  # the error asks for other inputs
        raise
    save(folder, record | {name: {"inputs": inputs, "done": True}})


def save(folder: Path, record: Mapping[str, Any]) -> None:
    """Writes the record of the steps."""
    replace_file(folder / FILE, json.dumps(record, indent=1, ensure_ascii=False) + "\n")


def _is_short(value: Any) -> bool:
    return not isinstance(value, list) and not str(value).startswith(_HASH)


def hash_of(paths: Iterable[Path]) -> str:
    """Hashes the content of files, in order, and of the files in folders except hidden ones. Raises InputError for a
    file that cannot be read."""
    digest = hashlib.sha256()
    for path in paths:
        for file in sorted(path.glob("[!.]*")) if path.is_dir() else [path]:
            with reading(file):
                digest.update(content_hash(file))
    return _HASH + digest.hexdigest()

"""Steps of a pipeline in a folder, each made once: the same pipeline goes on where it was interrupted."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nmt.core import log
from nmt.core.errors import InputError
from nmt.core.files import content_hash, read_json, whole_file

FILE = "augment.json"
_HASH = "sha256:"


@dataclass(frozen=True)
class Step:
    """A step of the pipeline.

    Attributes:
        inputs: All that the output is a function of: settings by name, and the hashes of files.
        outputs: Files and folders that are there after the step.
        make: Makes the outputs. Called again after an interruption, it may go on with what is there.
    """

    name: str
    inputs: Mapping[str, Any]
    outputs: tuple[Path, ...]
    make: Callable[[], None]


@dataclass(frozen=True)
class Steps:
    """Runs steps, with a record of them in ``augment.json`` of the folder:
    ``{"back-translation": {"inputs": {…}, "done": true}, …}``."""

    folder: Path

    def run(self, step: Step) -> None:
        """Runs a step, unless its outputs are there. Raises InputError where it was begun with other inputs, or the
        record is damaged."""
        path = self.folder / FILE
        inputs = json.loads(json.dumps(step.inputs))  # as they are read again
        try:
            before = (read_json(path) if path.exists() else {}).get(step.name)
            begun, done = (inputs, False) if before is None else (before["inputs"], before["done"])
            changed = [key for key in {**inputs, **begun} if begun.get(key) != inputs.get(key)]
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            raise InputError(f"{path}: is damaged; delete {self.folder}, or name another --output") from None
        if changed:
            was, now = begun.get(changed[0]), inputs.get(changed[0])
            other = f"{changed[0]} {was}, not {now}" if _is_short(was) and _is_short(now) else f"another {changed[0]}"
            raise InputError(
                f"{self.folder}: {step.name} was begun with {other}; go on as it was begun, or name another --output "
                f"(and give it the reverse model that is there: --reverse {self.folder / 'reverse'})"
            )
        if done and all(output.exists() for output in step.outputs):
            log.detail(f"{step.name}: there already")
            return
        self._save(step.name, inputs, done=False)
        step.make()
        self._save(step.name, inputs, done=True)

    def _save(self, name: str, inputs: Mapping[str, Any], *, done: bool) -> None:
        path = self.folder / FILE
        record = {**(read_json(path) if path.exists() else {}), name: {"inputs": inputs, "done": done}}
        with whole_file(path) as partial:
            partial.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def _is_short(value: Any) -> bool:
    return not isinstance(value, dict | list) and not str(value).startswith(_HASH)


def hash_of(paths: Iterable[Path]) -> str:
    """A hash of the content of files, or of all files in folders, in order. Raises InputError for one that cannot be
    read."""
    digest = hashlib.sha256()
    for path in paths:
        files = sorted(path.iterdir()) if path.is_dir() else [path]
        for file in files:
            try:
                digest.update(content_hash(file))
            except OSError as error:
                raise InputError(f"{file}: cannot be read: {error.strerror}") from None
    return _HASH + digest.hexdigest()

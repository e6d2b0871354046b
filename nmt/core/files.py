"""Care with the user's files."""

from __future__ import annotations

import hashlib
import json
import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from nmt.core.errors import InputError

MAX_JSON_BYTES = 64 << 20
"""A file of settings or of state that has more is none of ours."""


def read_whole(path: Path, *, most: int) -> bytes:
    """What a file holds. Raises OSError, and InputError for what is no file but a device or a pipe, and for one of more
    than ``most`` bytes: neither waits nor fills the memory, whatever a folder from elsewhere has under that name."""
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)  # a pipe without writer would wait
    with open(os.open(path, flags), "rb") as file:
        kind = os.fstat(file.fileno()).st_mode
        if not stat.S_ISREG(kind):
            raise _special(path)
        data = file.read(most + 1)
    if len(data) > most:
        raise InputError(f"{path}: has more than {_size(most)}; is it the right file?")
    return data


def read_json(path: Path, *, most: int = MAX_JSON_BYTES) -> Any:
    """The value that a JSON file holds. Raises what ``read_whole`` does, and ValueError for what is no JSON."""
    try:
        return json.loads(read_whole(path, most=most))
    except RecursionError:
        raise ValueError("nested too deeply") from None


def refuse_special(path: Path) -> None:
    """Raises InputError for a device or a pipe, of which a library that opens files by name would wait or never end."""
    if path.exists() and not path.is_file():
        raise _special(path)


def _special(path: Path) -> InputError:
    what = "a folder" if path.is_dir() else "a device or a pipe"
    return InputError(f"{path}: is {what}, but a file is needed")


def _size(count: int) -> str:
    return f"{count >> 20} MiB" if count >= 1 << 20 else f"{count >> 10} KiB"


def refuse_overwriting(output: Path | None, *inputs: Path | None, option: str = "--output") -> None:
    """Raises InputError where the output would replace an input before it is read."""
    for path in inputs:
        if output is not None and path is not None and output.exists() and path.exists() and output.samefile(path):
            raise InputError(f"{option} {output}: is an input file of this command; write to another file")


def refuse_unwritable(output: Path, *, option: str = "--output") -> None:
    """Raises InputError where there is no room for a file, so that this is known before long work."""
    if output.is_dir():
        raise InputError(f"{option} {output}: cannot be written: is a folder")
    if not output.parent.is_dir():
        raise InputError(f"{option} {output}: cannot be written: there is no folder {output.parent}")


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """A new file to fill, beside ``path``, which is then brought to disk and takes its place; after an error nothing
    has changed. Who fills it may put another file in its place, as safetensors does. What a killed process leaves,
    ``partial_files`` finds."""
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.partial-{os.getpid()}-", dir=path.parent)
    os.close(descriptor)
    partial = Path(name)
    try:
        yield partial
        partial.chmod(0o666 & ~umask())  # mkstemp lets nobody else read, and safetensors neither
        sync_entry(partial)
        partial.replace(path)
        sync_entry(path.parent)
    finally:
        partial.unlink(missing_ok=True)


def partial_files(path: Path) -> list[Path]:
    """What ``whole_file`` has beside ``path``: of a process at work, or of one that was killed."""
    return [each for each in path.parent.iterdir() if each.name.startswith(f".{path.name}.partial-")]


def sync_entry(path: Path) -> None:
    """Bring one file, or the names in one folder, to disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Has an OSError that tells no file, as that of a write does, tell this one."""
    try:
        yield
    except OSError as error:
        if error.filename is None:
            error.filename = str(path)
        raise


def content_hash(path: Path) -> bytes:
    """SHA-256 of a file. Raises OSError."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while data := file.read(1 << 20):
            digest.update(data)
    return digest.digest()


def umask() -> int:
    """The process' umask, which tempfile does not heed."""
    mask = os.umask(0)
    os.umask(mask)
    return mask

"""Care with the user's files."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from nmt.core.errors import InputError


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

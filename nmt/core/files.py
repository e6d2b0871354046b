"""Safe reading and writing of the user's files."""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from nmt.core import log
from nmt.core.errors import InputError

MAX_JSON_BYTES = 64 << 20
"""Maximum size of a file of settings or state."""


def read_whole(path: Path, *, most: int) -> bytes:
    """The content of a file of at most ``most`` bytes.

    Raises OSError, and InputError for a larger file, a device or a pipe, so that a hostile folder can neither block the
    process nor fill the memory.
    """
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:  # a pipe could block
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise _special(path)
        data = file.read(most + 1)
    if len(data) > most:
        size = f"{most >> 20} MiB" if most >= 1 << 20 else f"{most >> 10} KiB"
        raise InputError(f"{path}: has more than {size}; is it the right file?")
    return data


@contextmanager
def reading(path: object) -> Iterator[None]:
    """Context manager in which an OSError becomes an InputError with the path: no such file, or why it cannot be
    read."""
    try:
        yield
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None


@contextmanager
def writing(path: object) -> Iterator[None]:
    """Context manager in which an OSError becomes an InputError with the path: why it cannot be written."""
    try:
        yield
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror}") from None


def read_json(path: Path, *, most: int = MAX_JSON_BYTES) -> Any:
    """The value of a JSON file. Raises ValueError for invalid JSON, and the errors of ``read_whole``."""
    try:
        return json.loads(read_whole(path, most=most))
    except RecursionError:
        raise ValueError("nested too deeply") from None


def refuse_special(path: Path) -> None:
    """Raise InputError for a device or a pipe, on which a library that opens files by name could block."""
    if path.exists() and not path.is_file():
        raise _special(path)


def _special(path: Path) -> InputError:
    what = "a folder" if path.is_dir() else "a device or a pipe"
    return InputError(f"{path}: is {what}, but a file is needed")


def refuse_overwriting(output: Path | None, *inputs: Path | None, option: str = "--output") -> None:
    """Raise InputError if the output would replace an input before it is read."""
    for path in inputs:
        if output is not None and path is not None and output.exists() and path.exists() and output.samefile(path):
            raise InputError(f"{option} {output}: is an input file of this command; write to another file")


def refuse_unwritable(output: Path, *, option: str = "--output", renamed: bool = False) -> None:
    """Raise InputError if no file can be written at a path, before a long computation begins. With ``renamed``, as by
    safetensors, another file takes the place of the path: not that of a device."""
    if output.is_dir():
        raise InputError(f"{option} {output}: cannot be written: is a folder")
    if not output.parent.is_dir():
        raise InputError(f"{option} {output}: cannot be written: folder {output.parent} does not exist")
    if renamed and is_written_directly(output):
        raise InputError(f"{option} {output}: cannot be written: name a regular file, in a folder with write access")


def make_folder(folder: Path, *, option: str = "--output") -> None:
    """Make a folder with its parents, unless it exists. Raises InputError if it cannot be made."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{option} {folder}: cannot be made: {error.strerror}; name another folder") from None


def is_written_directly(path: Path) -> bool:
    """Returns True if no other file can replace this one: a device, a pipe, or a file in a folder without write
    access."""
    special = str(path.absolute()).startswith(("/dev/std", "/dev/fd/", "/proc/"))  # these may lead to a regular file
    return special or (path.exists() and not (path.is_file() and os.access(path.parent, os.W_OK)))


@contextmanager
def whole_file(path: Path, *, keep: bool = False) -> Iterator[Path]:
    """Write ``path`` atomically: yield a new file beside it, then sync it to disk and rename it.

    After an error nothing has changed; with ``keep`` a warning says where the part is. The caller may replace the new
    file by another, as safetensors does. A killed process leaves it behind, as ``.NAME.partial-*``. If
    ``is_written_directly``, ``path`` itself is yielded.
    """
    if is_written_directly(path):
        with naming(path):
            yield path
        return
    path = path.resolve() if path.is_symlink() else path  # the link is kept
    mode = stat.S_IMODE(path.stat().st_mode) if path.exists() else 0o666 & ~umask()
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.partial-{os.getpid()}-", dir=path.parent)
    os.close(descriptor)
    partial = Path(name)
    try:
        with naming(path):
            yield partial
            partial.chmod(mode)  # mkstemp and safetensors deny access to other users
            sync_entry(partial)
            partial.replace(path)
            sync_entry(path.parent)
    except BaseException:
        if keep and partial.exists() and partial.stat().st_size:
            log.warning(f"{path}: not written; what was done until then is in {partial}")
        else:
            partial.unlink(missing_ok=True)
        raise


def replace_file(path: Path, text: str | bytes) -> None:
    """Write a file of a run atomically. It has one writer at a time: what a killed one leaves is overwritten."""
    beside = path.with_name(f".{path.name}.unfinished")
    with naming(path):
        beside.write_bytes(text.encode() if isinstance(text, str) else text)
    sync_entry(beside)  # otherwise a power cut could leave an empty file
    beside.replace(path)


def sync_entry(path: Path) -> None:
    """Sync a file, or the names in a folder, to disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Add this path to an OSError without a file name, as a failed write raises; also to that of safetensors, which is
    an exception of its own."""
    try:
        yield
    except OSError as error:
        if error.filename is None:
            error.filename = str(path)
        raise
    except Exception as error:
        if refused := re.search(r"\(os error (\d+)\)", str(error)):
            raise OSError(int(refused[1]), os.strerror(int(refused[1])), str(path)) from None
        raise


def content_hash(path: Path) -> bytes:
    """SHA-256 of a file. Raises OSError."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").digest()


def umask() -> int:
    """The umask of the process, which tempfile ignores."""
    mask = os.umask(0)
    os.umask(mask)
    return mask

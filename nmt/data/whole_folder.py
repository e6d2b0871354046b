"""A folder that is there whole or not at all, also when its maker is killed or when several make it at once.

It is made beside its place, brought to disk, and renamed. Its maker holds a lock meanwhile; the kernel takes the lock
from a process that ends, however it ends, and so the next maker may remove what is lying about.
"""

from __future__ import annotations

import contextlib
import fcntl
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from nmt.core import log
from nmt.core.errors import InputError
from nmt.core.files import sync_entry, umask


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[bool]:
    """Be the only process that looks at or makes `folder`. The lock goes with the process, however that ends.

    Gives False, and no lock, where nothing can be written beside a folder that is there.
    """
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        lock = (folder.parent / f".{folder.name}.lock").open("a")
    except OSError as error:
        if not folder.is_dir():
            raise InputError(f"{folder}: cannot be made: {error.strerror}") from None
        lock = None
    if lock is None:
        yield False
        return
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            log.info(f"{folder}: another process is making it; waiting")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield True


@contextlib.contextmanager
def made_whole(folder: Path) -> Iterator[Path]:
    """A new, empty folder to fill, which then takes the place of `folder`; after an error nothing has changed.

    The lock must be held. Who has files of a replaced folder open keeps them.
    """
    _remove_leftovers(folder)
    partial = Path(tempfile.mkdtemp(prefix=f".{folder.name}.partial-", dir=folder.parent))
    try:
        yield partial
        partial.chmod(0o777 & ~umask())
        _sync(partial)
        _replace(folder, partial)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _remove_leftovers(folder: Path) -> None:
    """Remove what a killed maker has left; the lock says that none is at work."""
    for path in folder.parent.iterdir():
        if path.name.startswith((f".{folder.name}.partial-", f".{folder.name}.replaced-")):
            shutil.rmtree(path, ignore_errors=True)


def _sync(folder: Path) -> None:
    """Bring a folder and all in it to disk."""
    for path in [*folder.rglob("*"), folder]:
        sync_entry(path)


def _replace(folder: Path, partial: Path) -> None:
    """Put a whole folder in place of another."""
    replaced: Path | None = None
    if folder.exists():
        replaced = Path(tempfile.mkdtemp(prefix=f".{folder.name}.replaced-", dir=folder.parent))
        folder.rename(replaced / folder.name)
    try:
        partial.rename(folder)
    except OSError:
        if replaced is not None:
            (replaced / folder.name).rename(folder)
        raise
    sync_entry(folder.parent)
    if replaced is not None:
        shutil.rmtree(replaced, ignore_errors=True)

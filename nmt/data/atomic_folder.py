"""Atomic creation of folders: a folder is complete or does not exist, even if the process is killed or several create
it at once.

The folder is created under another name beside its path, synced to disk, and renamed; an older one exchanges names with
it in one step. Meanwhile the process holds a lock, which the kernel releases when the process ends in any way, so the
next process may remove its remains:

    .NAME.partial-*    a new folder that is not finished, or an old one that is being deleted
    .NAME.replaced     the whole old folder, where the file system cannot exchange two names; it has its name back
                       unless there is a new one
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from nmt.core import log
from nmt.core.errors import InputError
from nmt.core.files import naming, sync_entry, umask


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[bool]:
    """Context manager in which this process is the only one that reads or creates `folder`. The lock ends with the
    process.

    Yields False, without a lock, if the folder exists and nothing can be written beside it.
    """
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        lock = (folder.parent / f".{folder.name}.lock").open("a")
    except OSError as error:
        if not folder.is_dir():
            raise InputError(f"{folder}: cannot be made: {error.strerror}") from None
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
def replace_folder(folder: Path) -> Iterator[Path]:
    """Yields a new, empty folder to fill, which then replaces `folder`; after an error nothing has changed.

    No other process may be creating it, so the lock must be held if others could. Processes that have files of a
    replaced folder open can still read them. An OSError without a file name gets the name of `folder`.
    """
    named, folder = folder, folder.resolve()  # a link is not replaced
    with naming(named):
        recover(folder)
        partial = _partial(folder)
        try:
            yield partial
            partial.chmod(0o777 & ~umask())
            for path in [*partial.rglob("*"), partial]:
                sync_entry(path)
            if not folder.exists():
                partial.rename(folder)
            elif not _exchange(partial, folder):
                folder.rename(_beside(folder, "replaced"))
                partial.rename(folder)  # if this fails, `recover` restores the old folder
            sync_entry(folder.parent)
        finally:
            recover(folder)


def remove(folder: Path) -> None:
    """Deletes a folder atomically: it never exists under its name with files missing."""
    folder.rename(_partial(folder))
    recover(folder)


def recover(folder: Path) -> None:
    """Restores a folder and removes temporary ones if a process was killed during `replace_folder` or `remove`."""
    replaced = _beside(folder, "replaced")
    if replaced.exists():
        replaced.rename(_partial(folder) if folder.exists() else folder)
    for path in folder.parent.iterdir():
        if path.name.startswith(_beside(folder, "partial-").name):
            shutil.rmtree(path, ignore_errors=True)


def _beside(folder: Path, end: str) -> Path:
    return folder.with_name(f".{folder.name}.{end}")


def _partial(folder: Path) -> Path:
    """Creates a new, empty folder beside another one, for its replacement."""
    return Path(tempfile.mkdtemp(prefix=_beside(folder, "partial-").name, dir=folder.parent))


def _exchange(first: Path, second: Path) -> bool:
    """Exchanges the names of two folders in one step; returns False if the system or the file system does not support
    it."""
    libc, names = ctypes.CDLL(None), (os.fsencode(first), os.fsencode(second))
    if sys.platform == "darwin":
        return bool(libc.renamex_np(*names, 2) == 0)  # RENAME_SWAP
    here = -100  # AT_FDCWD
    return hasattr(libc, "renameat2") and libc.renameat2(here, names[0], here, names[1], 2) == 0  # RENAME_EXCHANGE

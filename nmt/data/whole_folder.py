"""A folder that is there whole or not at all, also when its maker is killed or when several make it at once.

It is made beside its place, brought to disk, and renamed; an older one changes names with it in one step. Its maker
holds a lock meanwhile; the kernel takes the lock from a process that ends, however it ends, and so the next maker may
remove what is lying about:

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
    """Be the only process that looks at or makes `folder`. The lock goes with the process, however that ends.

    Gives False, and no lock, where nothing can be written beside a folder that is there.
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
def made_whole(folder: Path) -> Iterator[Path]:
    """A new, empty folder to fill, which then takes the place of `folder`; after an error nothing has changed.

    Nobody else may be making it, so the lock must be held where others could. Who has files of a replaced folder open
    keeps them. An OSError without a file name gets that of `folder`.
    """
    named, folder = folder, folder.resolve()  # a link stays
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
                partial.rename(folder)  # if not, `recover` has the old one back
            sync_entry(folder.parent)
        finally:
            recover(folder)


def remove(folder: Path) -> None:
    """Delete a folder, which is whole or not there also while it is deleted."""
    folder.rename(_partial(folder))
    recover(folder)


def recover(folder: Path) -> None:
    """Put back and remove what `made_whole` or `remove` has left beside a folder, if it was killed in their midst."""
    replaced = _beside(folder, "replaced")
    if replaced.exists():
        replaced.rename(_partial(folder) if folder.exists() else folder)
    for path in folder.parent.iterdir():
        if path.name.startswith(_beside(folder, "partial-").name):
            shutil.rmtree(path, ignore_errors=True)


def _beside(folder: Path, end: str) -> Path:
    return folder.with_name(f".{folder.name}.{end}")


def _partial(folder: Path) -> Path:
    """A new, empty folder, whose place another one can take."""
    return Path(tempfile.mkdtemp(prefix=_beside(folder, "partial-").name, dir=folder.parent))


def _exchange(first: Path, second: Path) -> bool:
    """Exchange the names of two folders in one step; False where the system or the file system has no such step."""
    libc, names = ctypes.CDLL(None), (os.fsencode(first), os.fsencode(second))
    if sys.platform == "darwin":
        return bool(libc.renamex_np(*names, 2) == 0)  # RENAME_SWAP
    here = -100  # AT_FDCWD
    return hasattr(libc, "renameat2") and libc.renameat2(here, names[0], here, names[1], 2) == 0  # RENAME_EXCHANGE

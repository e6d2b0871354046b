"""Objects in stores, such as s3://bucket/name, as files: fetched before a translation, and sent when it is complete.

The package fsspec knows the stores, each by a package of its own, and their settings say who the user is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory, mkdtemp
from typing import Any

from nmt.core.errors import InputError

_ADDRESS = re.compile(r"(?!file:|local:)([A-Za-z][A-Za-z0-9+]+):/(.+)")


def address_of(path: Path) -> str | None:
    """Returns the address that was given as a path, which has one of the two slashes; None for a file."""
    match = _ADDRESS.fullmatch(path.as_posix())
    return None if match is None else "{}://{}".format(*match.groups())


@contextmanager
def fetched(path: Path, *, prefix: str) -> Iterator[Path]:
    """Yields a file with the content of an address, and its name, in a folder whose name begins with ``prefix``. Raises
    InputError."""
    with TemporaryDirectory(prefix=prefix) as folder:
        file = Path(folder) / path.name
        _transfer(path, lambda store, name: store.get_file(name, str(file)), "read")
        yield file


@contextmanager
def sent(path: Path, *, prefix: str) -> Iterator[Path]:
    """Yields a file to write, with the name of an address, and sends it there; after an error nothing is sent. Its
    folder begins with ``prefix``. Raises InputError; if it cannot be sent, the file stays, and the message names it."""
    _transfer(path, lambda store, name: None, "written")  # before a long computation begins
    folder = Path(mkdtemp(prefix=prefix))
    file = folder / path.name
    try:
        yield file
    except BaseException:
        rmtree(folder)
        raise
    _transfer(path, lambda store, name: store.put_file(str(file), name), f"written, and stays in {file}")
    rmtree(folder)


def _transfer(path: Path, transfer: Callable[[Any, str], object], done: str) -> None:
    address = address_of(path)
    try:
        from fsspec.core import url_to_fs
    except ImportError:
        raise InputError(f"{address}: is an address, for which run: pip install fsspec") from None
    try:
        transfer(*url_to_fs(address))
    except Exception as error:  # each store has its own errors
        if isinstance(error, FileNotFoundError) and done == "read":
            raise InputError(f"{address}: no such object") from None
        raise InputError(f"{address}: cannot be {done}: {error or type(error).__name__}") from None

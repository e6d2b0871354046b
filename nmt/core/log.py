"""Messages and progress bars on stderr; stdout is for results.

Messages are written by tqdm, so that they do not break a progress bar on the screen. Each is one line: control
characters that names and texts may hold, line ends among them, are replaced.
"""

from __future__ import annotations

import enum
import io
import os
import sys
from collections.abc import Iterable
from typing import NoReturn, TextIO, TypeVar, cast, overload

from tqdm import tqdm

T = TypeVar("T")


class Verbosity(enum.IntEnum):
    """Amount of messages. All but a silent process write warnings; of several processes that do the same, all but one
    are silent."""

    SILENT = -1
    QUIET = 0
    NORMAL = 1
    VERBOSE = 2


_verbosity = Verbosity.NORMAL


def set_verbosity(verbosity: Verbosity) -> None:
    """Set the verbosity of the whole process."""
    global _verbosity
    _verbosity = verbosity


def verbosity() -> Verbosity:
    """Return the verbosity of this process."""
    return _verbosity


def is_watched() -> bool:
    """Return True if stderr is a terminal that a person watches, not one of a build server (CI)."""
    return sys.stderr.isatty() and not os.environ.get("CI")


def shows_progress() -> bool:
    """Return True if progress bars are shown: on a terminal, and not under --quiet."""
    return _verbosity > Verbosity.QUIET and is_watched()


def has_colour() -> bool:
    """Return True if messages may be coloured: on a terminal without NO_COLOR (https://no-color.org)."""
    return is_watched() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def detail(text: str) -> None:
    """Write a message under --verbose."""
    if _verbosity >= Verbosity.VERBOSE:
        _write(text)


def info(text: str, *, styled: bool = False) -> None:
    """Write a message, unless under --quiet. A ``styled`` one is several printable lines, with codes of a terminal."""
    if _verbosity >= Verbosity.NORMAL:
        _write(text, styled=styled)


def warning(text: str) -> None:
    """Write a warning, also under --quiet."""
    if _verbosity > Verbosity.SILENT:
        _write(f"warning: {text}")


@overload
def progress(items: Iterable[T], *, total: int | None = ..., description: str = ..., unit: str = ...,
             initial: int = ...) -> tqdm[T]: ...  # fmt: skip
@overload
def progress(items: None = None, *, total: int | None = ..., description: str = ..., unit: str = ...,
             initial: int = ...) -> tqdm[NoReturn]: ...  # fmt: skip
def progress(
    items: Iterable[T] | None = None, *, total: int | None = None, description: str = "", unit: str = "it",
    initial: int = 0,
) -> tqdm[T] | tqdm[NoReturn]:  # fmt: skip
    """A progress bar over `items`, or one to advance by `update(n)`; close it, or use it in a `with` statement.

    See `shows_progress` for where it is shown.

    Args:
        total: Number of items, if `items` has no length.
        description: Text before the bar.
        unit: Name of an item.
        initial: Number of items that an earlier run has done.
    """
    known = total is not None or hasattr(items, "__len__")
    # the part that a narrow terminal cuts off is last
    shown = "{desc}: {n_fmt}/{total_fmt}, {remaining} left |{bar}| {rate_fmt}{postfix}" if known else None
    return tqdm(items, total=total, desc=description, unit=f" {unit}", initial=initial, bar_format=shown,
                disable=not shows_progress(), dynamic_ncols=True, leave=False, file=sys.stderr)  # fmt: skip


def results() -> TextIO:
    """Return stdout for lines of results; on a terminal they are written above a progress bar."""
    return cast(TextIO, _AboveBars()) if sys.stdout.isatty() else sys.stdout


class _AboveBars(io.TextIOBase):
    def write(self, text: str) -> int:
        tqdm.write(text, file=sys.stdout, end="")
        return len(text)


def _write(text: str, *, styled: bool = False) -> None:
    from nmt.core.terminal_width import printable  # loads Rich

    tqdm.write(text if styled else printable(text), file=sys.stderr)
    sys.stderr.flush()

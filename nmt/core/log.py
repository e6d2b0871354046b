"""What a person reads while a command runs: messages and progress bars, all on stderr; stdout is for results.

Messages go through tqdm, so that they do not tear a bar that is on the screen.
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
    """How much is said. Warnings and errors are always said, but by a silent process: one of several that do the same,
    of which another one speaks."""

    SILENT = -1
    QUIET = 0
    NORMAL = 1
    VERBOSE = 2


_verbosity = Verbosity.NORMAL


def set_verbosity(verbosity: Verbosity) -> None:
    """Choose how much the whole process says from now on."""
    global _verbosity
    _verbosity = verbosity


def is_silent() -> bool:
    """Whether this process leaves word_indices to another one."""
    return _verbosity == Verbosity.SILENT


def is_watched() -> bool:
    """Whether a person sees stderr as it is written: on a terminal, but not on that of a build server (CI)."""
    return sys.stderr.isatty() and not os.environ.get("CI")


def has_colour() -> bool:
    """Whether messages may be coloured: where a person watches and has not set NO_COLOR (https://no-color.org)."""
    return is_watched() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def detail(text: str) -> None:
    """Say something of interest only to who asked for it with --verbose."""
    if _verbosity >= Verbosity.VERBOSE:
        _write(text)


def info(text: str) -> None:
    """Say something that a user wants to know, unless --quiet."""
    if _verbosity >= Verbosity.NORMAL:
        _write(text)


def warning(text: str) -> None:
    """Say that something is not as the user may think; --quiet does not silence it."""
    if not is_silent():
        _write(f"warning: {text}")


@overload
def progress(items: Iterable[T], *, total: int | None = ..., description: str = ..., unit: str = ...,
             initial: int = ...) -> tqdm[T]: ...  # fmt: skip
@overload
def progress(items: None = None, *, total: int | None = ..., description: str = ..., unit: str = ...,
             initial: int = ...) -> tqdm[NoReturn]: ...  # fmt: skip
def progress(
    items: Iterable[T] | None = None,
    *,
    total: int | None = None,
    description: str = "",
    unit: str = "it",
    initial: int = 0,
) -> tqdm[T] | tqdm[NoReturn]:
    """A bar over `items`, or without items one to move by `update(n)`; close it, or use it in a `with` statement.

    It shows only where a person watches, and not under --quiet; elsewhere it costs next to nothing.

    Args:
        total: Number of items, where it cannot be asked of `items`.
        description: Text before the bar.
        unit: What one item is; SI prefixes shorten large counts.
        initial: Items done before, when work is taken up again.
    """
    hidden = _verbosity <= Verbosity.QUIET or not is_watched()
    return tqdm(items, total=total, desc=description, unit=f" {unit}", unit_scale=True, initial=initial, disable=hidden,
                dynamic_ncols=True, leave=False, file=sys.stderr)  # fmt: skip


def results() -> TextIO:
    """stdout, to write lines to while a bar may be on the screen: on a terminal the bar makes room for them."""
    return cast(TextIO, _AboveBars()) if sys.stdout.isatty() else sys.stdout


class _AboveBars(io.TextIOBase):
    def write(self, text: str) -> int:
        tqdm.write(text, file=sys.stdout, end="")
        return len(text)


def _write(text: str) -> None:
    tqdm.write(text, file=sys.stderr)
    sys.stderr.flush()

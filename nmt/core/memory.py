"""Memory that is free again, and memory that stays."""

from __future__ import annotations

import ctypes
import gc
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import cast

EVERY_S = 5.0
"""Seconds between two times at least: what goes back is asked for again, and each page of it cleared."""

_last_s = 0.0


def give_back() -> None:
    """Has glibc's allocator return the pages that hold nothing, wherever they lie; other C libraries are left alone.

    By itself it returns only what is free at the end of its heap. A batch of another shape than those before finds no
    room as large as it wants between what is kept, and the heap of a process that translates for hours grows.
    """
    global _last_s
    if _trim is None or (now := time.monotonic()) - _last_s < EVERY_S:
        return
    _last_s = now
    _trim(0)


def keep() -> None:
    """Takes all that there is now for lasting, in a process that has loaded what it works with: else each full
    collection looks through what PyTorch brings along, a tenth of a second."""
    gc.freeze()


@contextmanager
def importing() -> Iterator[None]:
    """Around the first import of much, PyTorch say, to which a command owes its answer: what that makes is there to
    stay, and to look through it again and again for what can go takes a tenth of the time to the first answer."""
    if "torch" in sys.modules:  # little is left to import, and garbage of a caller may be about
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        keep()
        gc.enable()


def _glibcs() -> Callable[[int], int] | None:
    try:
        return cast(Callable[[int], int], ctypes.CDLL(None).malloc_trim)
    except (AttributeError, OSError, TypeError):  # musl, macOS, Windows
        return None


_trim = _glibcs()

"""Memory of the process: the objects that the garbage collector visits, and the memory that glibc's allocator keeps."""

from __future__ import annotations

import ctypes
import gc
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

TRIM_INTERVAL_S = 5.0
"""Shortest time between two trims. Each page that is returned must be cleared before it is used again."""

_last_trim_s = 0.0


def malloc_trim(interval_s: float = TRIM_INTERVAL_S) -> None:
    """Return the free pages of glibc's heap to the system, at most every ``interval_s`` seconds.

    By itself glibc returns only free memory at the end of its heap. A batch with a new shape often finds no gap that
    is large enough, so the heap of a process that translates for hours would grow.
    """
    global _last_trim_s
    libc, now = _glibc(), time.monotonic()
    if libc is not None and now - _last_trim_s >= interval_s:
        _last_trim_s = now
        libc.malloc_trim(0)


def keep_freed_memory() -> None:
    """Let glibc's allocator keep freed memory for the next tensor instead of unmapping it.

    Otherwise the pages of a large tensor are mapped anew in every operation, which was measured at a tenth of the
    training time and half of the search time on a CPU. All threads share one heap: with one for each, two that
    translate took a quarter more memory, and as much time.
    """
    mmap_threshold, trim_threshold, arena_max = -3, -1, -8  # M_MMAP_THRESHOLD and so on of malloc.h
    if (libc := _glibc()) is not None:
        libc.mallopt(mmap_threshold, 32 << 20)  # the maximum in all versions; larger values gave no further speed
        libc.mallopt(trim_threshold, (1 << 31) - 1)
        libc.mallopt(arena_max, 1)


@contextmanager
def gc_paused() -> Iterator[None]:
    """Turn garbage collection off during the first import of PyTorch and exempt the imported objects from later ones.

    They live as long as the process; scanning them takes a tenth of the time to a command's first answer.
    """
    if "torch" in sys.modules:  # few modules are left to import, and a library user's garbage must stay collectable
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


@cache
def _glibc() -> ctypes.CDLL | None:
    libc = ctypes.CDLL(None)
    return libc if hasattr(libc, "malloc_trim") else None  # absent from musl and macOS


# oneDNN, and PyTorch's layer over it, compile a primitive for each shape of matrices and keep a thousand by default.
# Batches have ever new shapes, so the caches fill up. Variables that the user has set are respected.


def limit_caches_for_translation() -> None:
    """Keep 128 primitives in each cache of this process and its children. Call it before PyTorch is imported.

    With the defaults, translation of short lines grew from 470 to 890 MiB within ten windows and was no faster.
    """
    for name in ("LRU_CACHE_CAPACITY", "ONEDNN_PRIMITIVE_CACHE_CAPACITY"):
        os.environ.setdefault(name, "128")

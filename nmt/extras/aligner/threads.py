"""Several calls at a time in threads. numpy and the kernels let other threads run meanwhile."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

A = TypeVar("A")
B = TypeVar("B")


def thread_count() -> int:
    """Returns OMP_NUM_THREADS if it is set, otherwise the number of cores that this process may use."""
    given = os.environ.get("OMP_NUM_THREADS", "")
    if given.isascii() and given.isdigit() and int(given):
        return int(given)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def in_order(call: Callable[[A], B], arguments: Sequence[A]) -> Iterator[B]:
    """Yields the results of calls in the order of the arguments; at most one result for each thread waits."""
    threads = thread_count()
    if threads == 1:
        yield from map(call, arguments)
        return
    with ThreadPoolExecutor(threads) as pool:
        for first in range(0, len(arguments), threads):
            yield from pool.map(call, arguments[first : first + threads])

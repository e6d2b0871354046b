"""As many threads as the machine has idle cores.

The threads of a matrix product wait for each other. Where another program has one of two cores, both wait half of their
time, and one thread alone is faster than the two.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch

from nmt.core import log

_STAT = Path("/proc/stat")
_WATCHED_S = 0.3


@contextmanager
def on_idle_cores(before: int | None = None) -> Iterator[bool]:
    """Computes with a thread on each idle core inside, and gives True where these are fewer than there were until then,
    which come back at the end. A training that goes on has as many as ``before``: other sums would have other last
    bits. OMP_NUM_THREADS decides where it is set; without Linux all cores count as idle."""
    usual = torch.get_num_threads()
    threads, reason = usual, ""
    if "OMP_NUM_THREADS" not in os.environ and usual > 1:
        if before is not None:
            threads, reason = min(usual, before), "as the training began"
        else:
            threads, reason = max(1, min(usual, round(idle_cores(usual)))), "the other cores are busy"
    if threads < usual:
        log.info(f"threads: {threads} of {usual}, {reason}; OMP_NUM_THREADS={usual} takes all")
    torch.set_num_threads(threads)
    try:
        yield threads < usual
    finally:
        torch.set_num_threads(usual)


def idle_cores(usual: int) -> float:
    """Watches the machine for a moment in which this process sleeps, and counts the cores that nobody uses."""
    try:
        begun = _times()
        time.sleep(_WATCHED_S)
        spent = [
            (idle - idle_0, total - total_0) for (idle_0, total_0), (idle, total) in zip(begun, _times(), strict=True)
        ]
    except (OSError, ValueError):
        return usual
    return sum(idle / max(total, 1) for idle, total in spent)


def _times() -> list[tuple[int, int]]:
    """Idle time and all time of each core that this process may use, in ticks of the system's clock."""
    mine, found = os.sched_getaffinity(0), []
    for line in _STAT.read_text(encoding="ascii").splitlines():
        name, *numbers = line.split()
        if name.startswith("cpu") and name[3:].isdigit() and int(name[3:]) in mine:
            user, nice, system, idle, waiting, *others = map(int, numbers[:8])  # guests are in user already
            found.append((idle + waiting, user + nice + system + idle + waiting + sum(others)))
    return found

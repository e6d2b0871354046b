"""Choice of as many threads as the machine has idle cores.

The threads of a matrix product wait for each other. If another program uses one of two cores, both threads wait half of
their time, and a single thread is faster than two.
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
    """Context manager that sets the number of threads to the number of idle cores, and restores it at the end. Yields
    True if this is fewer than before. A resumed training uses ``before`` threads, because other sums would differ in
    their last bits. If OMP_NUM_THREADS is set, nothing changes; on other systems than Linux all cores count as idle."""
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
    """Observes the machine for a moment while this process sleeps, and counts the unused cores."""
    try:
        begun = _times()
        time.sleep(_WATCHED_S)
        spent = [(idle - idle_0, all_ - all_0) for (idle_0, all_0), (idle, all_) in zip(begun, _times(), strict=True)]
    except (OSError, ValueError):
        return usual
    return sum(idle / max(total, 1) for idle, total in spent)


def _times() -> list[tuple[int, int]]:
    """Reads the idle time and the total time of each core that this process may use, in ticks of the system's clock."""
    lines, found = _STAT.read_text(encoding="ascii").splitlines(), []
    mine = os.sched_getaffinity(0)  # only Linux has it, and the file
    for line in lines:
        name, *numbers = line.split()
        if name.startswith("cpu") and name[3:].isdigit() and int(name[3:]) in mine:
            user, nice, system, idle, waiting, *others = map(int, numbers[:8])  # guests are part of user
            found.append((idle + waiting, user + nice + system + idle + waiting + sum(others)))
    return found

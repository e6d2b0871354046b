"""The CPU: its name and instruction sets, from /proc/cpuinfo, which only Linux has, and the cores to use."""

from __future__ import annotations

import os
import platform
from functools import cache
from pathlib import Path


@cache
def _info() -> dict[str, str]:
    path = Path("/proc/cpuinfo")
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines() if path.exists() else []
    return {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in lines)}


def name() -> str:
    """Returns the processor's name, or else its architecture."""
    return _info().get("model name", platform.machine())


def features() -> frozenset[str]:
    """Returns the names of instruction sets; empty if the system does not list them."""
    return frozenset(_info().get("flags", _info().get("Features", "")).split())


def core_count() -> int:
    """Returns the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def thread_count() -> int:
    """Returns OMP_NUM_THREADS if it is set, otherwise the number of cores that this process may use."""
    value = os.environ.get("OMP_NUM_THREADS", "")
    return int(value) if value.isascii() and value.isdigit() and int(value) else core_count()

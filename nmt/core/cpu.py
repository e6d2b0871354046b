"""The CPU's name and instruction sets, from /proc/cpuinfo, which only Linux has."""

from __future__ import annotations

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

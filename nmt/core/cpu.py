"""The CPU's name and instruction sets, as Linux lists them."""

from __future__ import annotations

import platform
from functools import cache
from pathlib import Path


@cache
def info() -> dict[str, str]:
    """Values of /proc/cpuinfo by their names, for one processor; empty on other systems."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return {}
    return {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in lines)}


def name() -> str:
    """The processor's name, or else its architecture."""
    return info().get("model name", platform.machine())


def features() -> frozenset[str]:
    """Names of instruction sets; empty where the system does not list them."""
    return frozenset(info().get("flags", info().get("Features", "")).split())

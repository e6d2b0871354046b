"""What the benchmarks share: how a figure is printed, and the limit that the machine sets."""

from __future__ import annotations

import json
import platform
import subprocess
import sys
import time

import torch

from nmt.core.device import Compute


def matrix_rate(chosen: Compute, size: int = 2048, repeats: int = 5) -> float:
    """Floating-point operations per second of a square matrix product in the compute precision."""
    dtype = chosen.dtype
    one = torch.randn(size, size, device=chosen.device).to(dtype)
    one @ one
    if chosen.device.type == "cuda":
        torch.cuda.synchronize()
    started = time.perf_counter()
    for _ in range(repeats):
        one @ one
    if chosen.device.type == "cuda":
        torch.cuda.synchronize()
    return repeats * 2 * size**3 / (time.perf_counter() - started)


_ROWS: list[tuple[str, float, str]] = []


def report(name: str, value: float, unit: str, chosen: Compute | str) -> None:
    """One JSON line on stdout, and a row of ``print_table``; ``chosen`` or its label is named with the machine."""
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    label = chosen if isinstance(chosen, str) else chosen.label
    machine = f"{platform.machine()}, {label}, torch {torch.__version__}"
    rounded = float(f"{value:.4g}")
    figure = {"name": name, "value": rounded, "unit": unit, "commit": commit.stdout.strip(), "machine": machine}
    print(json.dumps(figure), flush=True)
    _ROWS.append((name, rounded, unit))


def print_table() -> None:
    """All that was reported, for people, on stderr."""
    width = max(len(name) for name, _, _ in _ROWS)
    for name, value, unit in _ROWS:
        print(f"{name:<{width}}  {value:>12,g}  {unit}", file=sys.stderr)

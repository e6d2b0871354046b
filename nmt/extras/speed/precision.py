"""The precision of the fastest products on a CPU, which is measured, because an instruction set alone says little about
speed."""

from __future__ import annotations

import time
from functools import cache

import torch

from nmt.core import cpu
from nmt.core.device import Precision

FASTER = 1.2
"""Ratio of speeds from which on bfloat16 is chosen. Its weights and results have to be converted, and float32 is exact.
If the gain were within the noise of a measurement, a resumed training might choose differently."""


@cache
def fastest_on_cpu() -> tuple[Precision, str]:
    """Measures products of float32 and of bfloat16 alternately, for some milliseconds, if the CPU has instructions for
    both. Returns the precision to use, and the reason."""
    if not {"avx512_bf16", "amx_bf16"} & cpu.features():
        return "float32", "this CPU has no bfloat16 matrix products (AVX512-BF16 or AMX)"
    try:
        with torch.no_grad():
            torch.nn.LSTM(2, 2).bfloat16()(torch.zeros(1, 1, 2, dtype=torch.bfloat16))
    except RuntimeError:
        return "float32", "PyTorch has no LSTM in bfloat16 for this CPU"
    found = [(_seconds(torch.float32), _seconds(torch.bfloat16)) for _ in range(6)]
    gain = min(one for one, _ in found[1:]) / min(other for _, other in found[1:])  # the first pair chooses kernels
    if gain < FASTER:
        return "float32", f"this CPU multiplies bfloat16 only {gain:.2g} times as fast"
    return "bfloat16", f"this CPU multiplies it {gain:.2g} times as fast as float32"


def _seconds(dtype: torch.dtype) -> float:
    """Measures the time of one product with the sizes of a batch of a small model."""
    left, right = torch.ones(512, 256, dtype=dtype), torch.ones(256, 512, dtype=dtype)
    begun = time.perf_counter()
    left @ right
    return time.perf_counter() - begun

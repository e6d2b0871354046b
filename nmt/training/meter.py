"""Loss, speed and memory of training."""

from __future__ import annotations

import math
import resource
import sys
import time
from contextlib import suppress
from pathlib import Path

import torch

from nmt.training.objective import BatchTotals, Losses

_KIBI, _GIBI = 1 << 10, 1 << 30


class Meter:
    """Loss, speed and memory since the last reading. Validations and checkpoints do not count as training."""

    def __init__(self, device: torch.device, *, has_risk: bool = False) -> None:
        """``has_risk`` says that training minimises a risk, which is then one of the figures."""
        self._device = device
        self._has_risk = has_risk
        self._begin()

    def _begin(self) -> None:
        self._losses = Losses(0.0, 0.0, 0.0, 0.0)
        self._totals = BatchTotals(tokens=0, sentences=0)
        self._seconds = self._peak_memory = 0.0
        self.resume()

    def add(self, losses: Losses[float], totals: BatchTotals) -> None:
        """Counts an update: its summed losses, and what they are sums over."""
        self._losses += losses
        self._totals += totals

    def pause(self) -> None:
        """Stops the clock."""
        self._seconds += time.monotonic() - self._since
        self._peak_memory = max(self._peak_memory, peak(self._device))

    def resume(self) -> None:
        """Starts the clock again."""
        reset_peak(self._device)
        self._since = time.monotonic()

    def take(self) -> dict[str, float]:
        """Returns the figures for metrics.jsonl since the last reading: loss of a token, perplexity, tokens per second
        and peak memory in GiB; and if training has them, risk of a sentence and guidance of a linked token."""
        self.pause()
        losses, totals = self._losses, self._totals
        figures = {
            "loss": losses.objective / totals.tokens,
            "perplexity": math.exp(min(losses.cross_entropy / totals.tokens, 700.0)),
            "tokens_per_second": totals.tokens / max(self._seconds, 1e-9),
            "peak_memory": self._peak_memory,
        }
        if self._has_risk:
            figures["risk"] = losses.risk / totals.sentences
        if totals.linked:
            figures["guidance"] = losses.guidance / totals.linked
        self._begin()
        return figures


def peak(device: torch.device) -> float:
    """Returns the peak memory since ``reset_peak`` in GiB: that of the device's tensors on CUDA, else of the whole
    process.

    If the system cannot reset the peak (other systems than Linux), it is the peak since the process started.
    """
    held = torch.cuda.max_memory_allocated(device) if device.type == "cuda" else _resident_peak()
    return held / _GIBI


def reset_peak(device: torch.device) -> None:
    """Resets the peak that ``peak`` reads."""
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
        return
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")  # proc(5): resets the high-water mark of resident memory


def _resident_peak() -> int:
    """Returns the peak resident memory of the process, in bytes."""
    try:
        status = Path("/proc/self/status").read_text(encoding="utf-8")
        (line,) = (line for line in status.splitlines() if line.startswith("VmHWM:"))
        return int(line.split()[1]) * _KIBI
    except (OSError, ValueError):
        unit = 1 if sys.platform == "darwin" else _KIBI
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit

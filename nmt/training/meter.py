"""Loss, speed and memory of training."""

from __future__ import annotations

import math
import time

import torch

from nmt.training.more.out_of_memory import peak, reset_peak
from nmt.training.objective import BatchTotals, Losses


class Meter:
    """Loss, speed and memory since it was last read. Validations and checkpoints do not count as training."""

    def __init__(self, device: torch.device, *, has_risk: bool = False) -> None:
        """``has_risk``: whether a risk is trained by, and so is one of the figures. Guidance is one where there has
        been any."""
        self._device = device
        self._has_risk = has_risk
        self._peak_memory = 0.0
        self._seconds = 0.0
        self._objective = 0.0
        self._cross_entropy = 0.0
        self._tokens = 0
        self._risk = 0.0
        self._sentences = 0
        self._guidance = 0.0
        self._linked = 0
        self.resume()

    def add(self, losses: Losses, totals: BatchTotals) -> None:
        """Counts an update: its losses, summed over what the update has of each, and that."""
        self._objective += losses.objective
        self._cross_entropy += losses.cross_entropy
        self._tokens += totals.tokens
        self._risk += losses.risk
        self._sentences += totals.sentences
        self._guidance += losses.guidance
        self._linked += totals.linked

    def pause(self) -> None:
        """Stops the clock."""
        self._seconds += time.monotonic() - self._since
        self._peak_memory = max(self._peak_memory, peak(self._device))

    def resume(self) -> None:
        """Starts it again."""
        reset_peak(self._device)
        self._since = time.monotonic()

    def take(self) -> dict[str, float]:
        """The figures of metrics.jsonl since the last time: loss of a token, perplexity, risk of a sentence and
        guidance of a linked token where there are such, tokens per second, and the most memory held in GiB."""
        self.pause()
        taken = {
            "loss": self._objective / self._tokens,
            "perplexity": math.exp(min(self._cross_entropy / self._tokens, 700.0)),
            "tokens_per_second": self._tokens / max(self._seconds, 1e-9),
            "peak_memory": self._peak_memory,
        }
        if self._has_risk:
            taken["risk"] = self._risk / self._sentences
        self._seconds, self._objective, self._cross_entropy, self._tokens = 0.0, 0.0, 0.0, 0
        if self._linked:
            taken["guidance"] = self._guidance / self._linked
        self._risk, self._sentences = 0.0, 0
        self._guidance, self._linked = 0.0, 0
        self._peak_memory = 0.0
        self.resume()
        return taken

"""What hypotheses are ranked by, and how long they may get."""

from __future__ import annotations

from torch import Tensor


def length_penalty(length: int, exponent: float) -> float:
    """What a hypothesis of ``length`` tokens, end-of-sentence included, has its log-probability divided by:
    ((5 + length) / 6) ** exponent (Wu et al. 2016, "Google's Neural Machine Translation System", equation 14)."""
    return float(((5 + length) / 6) ** exponent)


def max_lengths(source_length_B: Tensor, ratio: float) -> Tensor:
    """The most tokens that translations may have, end-of-sentence included; source lengths include theirs."""
    return (source_length_B * ratio).long() + 10

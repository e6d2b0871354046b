"""Scores of hypotheses, and limits of their length."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import numpy.typing as npt
import torch
from torch import Tensor

F = TypeVar("F", float, npt.NDArray[Any])

LEAST_COVERED = 1e-4
"""Least attention of a source position: log 0 would rule out every hypothesis that skips a word."""


@dataclass(frozen=True)
class Ranking:
    """score = log p / length penalty + coverage x covered (Wu et al. 2016, "Google's Neural Machine Translation
    System", equation 14)."""

    exponent: float = 1.0
    """Exponent of the length; 0 ranks by log p."""
    normalization: Literal["gnmt", "average"] = "gnmt"
    """The length penalty of a hypothesis of n tokens, end-of-sentence included: ((5 + n) / 6) ** exponent, which is Wu
    et al.'s, or n ** exponent, which with exponent 1 ranks by the mean log-probability of a token."""
    coverage: float = 0.0
    """beta of the paper; see ``covered``."""

    def penalty(self, length: int) -> float:
        """Divisor of the log-probability of a hypothesis of ``length`` tokens; rises with the length."""
        return float(((5 + length) / 6 if self.normalization == "gnmt" else length) ** self.exponent)

    def score(self, log_prob: F, length: int, covered: F | float = 0.0) -> F:
        """The score of a hypothesis of ``length`` tokens; of an array of those of one length."""
        return log_prob / self.penalty(length) + self.coverage * covered


def covered(attended_NS: Tensor, is_pad_NS: Tensor) -> Tensor:
    """sum over source positions of log min(attention received, 1), (N,): 0 where each position has got the attention of
    one whole step, below 0 otherwise. ``attended_NS`` is the sum over steps; positions that got hardly any count as
    ``LEAST_COVERED``, which the paper does not say."""
    return attended_NS.clamp(LEAST_COVERED, 1.0).log().masked_fill(is_pad_NS, 0.0).sum(dim=1)


def max_lengths(source_length_B: Tensor, ratio: float, most: int | None = None) -> Tensor:
    """The most tokens that translations may have, end-of-sentence included: ``ratio`` times those of the source, which
    include theirs, and ten more; and at most ``most`` besides end-of-sentence."""
    limit_B = (source_length_B * ratio).long() + 10
    return limit_B if most is None else torch.clamp(limit_B, max=most + 1)

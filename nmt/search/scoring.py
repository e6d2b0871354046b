"""Scores of hypotheses, and limits of their length. This module does not import torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from torch import Tensor

    from nmt.search.config import SearchConfig

F = TypeVar("F", float, npt.NDArray[Any])

LEAST_COVERED = 1e-4
"""Smallest attention that a source position counts as: log 0 would rule out every hypothesis that skips a word."""


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
        """Computes the divisor of the log-probability of a hypothesis of ``length`` tokens; it rises with the
        length."""
        return float(((5 + length) / 6 if self.normalization == "gnmt" else length) ** self.exponent)

    def score(self, log_prob: F, length: int, covered: F | float = 0.0) -> F:
        """Computes the score of a hypothesis of ``length`` tokens, or an array of scores of hypotheses of one
        length."""
        return log_prob / self.penalty(length) + self.coverage * covered


def ranking_of(config: SearchConfig) -> Ranking:
    """Creates the ranking of a configuration."""
    return Ranking(config.penalty, config.length_normalization, config.coverage_penalty)


def covered(attended_NS: Tensor, is_pad_NS: Tensor) -> Tensor:
    """Computes the sum over source positions of log min(attention received, 1), (N,). It is 0 if each position has
    received the attention of one whole step, and below 0 otherwise. ``attended_NS`` is the sum over steps. Unlike in
    the paper, attention below ``LEAST_COVERED`` counts as ``LEAST_COVERED``."""
    return attended_NS.clamp(LEAST_COVERED, 1.0).log().masked_fill(is_pad_NS, 0.0).sum(dim=1)


def max_lengths(source_length_B: npt.NDArray[np.int64], ratio: float, most: int | None = None) -> npt.NDArray[np.int64]:
    """Computes the maximum number of tokens of translations, end-of-sentence included: ``ratio`` times the number of
    source tokens, which also includes end-of-sentence, and ten more; but not more than ``most`` besides
    end-of-sentence."""
    limit_B = (source_length_B * ratio).astype(np.int64) + 10
    return limit_B if most is None else limit_B.clip(max=most + 1)

"""What a search finds."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Hypothesis:
    """A finished translation."""

    tokens: tuple[int, ...]
    """Without begin- and end-of-sentence."""
    log_prob: float
    """Natural logarithm of its probability, end-of-sentence included."""
    score: float
    """What it was ranked by: ``log_prob`` over the length penalty."""

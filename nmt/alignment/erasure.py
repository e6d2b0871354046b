"""Erasure: the fall of a target word's probability if a source word is left out.

    fall_ij = p(t_i | t_<i, s) - p(t_i | t_<i, s without word j)

If weights explain a model, the probability falls further without the source word of the highest weight than without
another one (Serrano & Smith 2019, "Is Attention Interpretable?", section 4, who erase weights; Jain & Wallace 2019,
section 4.1, leave words out and compare the order of all).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nmt.alignment import Weights


class Erasure(NamedTuple):
    """Statistics of the falls of some target words; None if there are no words."""

    highest: float | None
    """Median fall without the source word of the highest weight."""
    other: float | None
    """Median fall without a random other source word."""
    larger: float | None
    """Share of target words whose fall is larger without the former than without the latter."""
    target_words: int

    @classmethod
    def of(cls, drops: Sequence[tuple[float, float]]) -> Erasure:
        """Computes the statistics of the pairs that ``probability_drops`` yields."""
        if not drops:
            return cls(None, None, None, 0)
        highest, other = np.array(drops).T
        return cls(float(np.median(highest)), float(np.median(other)), float(np.mean(highest > other)), len(drops))


def probability_drops(
    weights_IJ: Weights, drop_IJ: NDArray[np.float64], random: np.random.Generator
) -> Iterator[tuple[float, float]]:
    """Yields the fall of each target word without the source word of the highest weight, and without a random other
    one. A constant row has no highest weight and is skipped."""
    for weight_J, drop_J in zip(weights_IJ, drop_IJ, strict=True):
        if len(weight_J) > 1 and weight_J.max() > weight_J.min():
            highest = int(weight_J.argmax())
            other = (highest + int(random.integers(1, len(weight_J)))) % len(weight_J)
            yield float(drop_J[highest]), float(drop_J[other])

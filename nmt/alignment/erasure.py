"""Erasure: the fall of a target word's probability where a source word is left out.

    fall_ij = p(t_i | t_<i, s) - p(t_i | t_<i, s without word j)

Where weights explain a model, it falls further without the source word of the highest weight than without another one
(Serrano & Smith 2019, "Is Attention Interpretable?", section 4, who erase weights; Jain & Wallace 2019, section 4.1,
leave words out and compare the order of all).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nmt.alignment import Weights


class Erasure(NamedTuple):
    """The falls of some target words; None without any."""

    highest: float | None
    """The median without the source word of the highest weight."""
    other: float | None
    """The median without a random other one."""
    larger: float | None
    """The share of target words of which the former is larger."""
    target_words: int

    @classmethod
    def of(cls, falls: Sequence[tuple[float, float]]) -> Erasure:
        """The medians of pairs that ``falls`` gives."""
        if not falls:
            return cls(None, None, None, 0)
        highest, other = np.array(falls).T
        return cls(float(np.median(highest)), float(np.median(other)), float(np.mean(highest > other)), len(falls))


def falls(
    weights_IJ: Weights, fall_IJ: NDArray[np.float64], random: np.random.Generator
) -> Iterator[tuple[float, float]]:
    """The fall of each target word without the source word of the highest weight, and without a random other one. A row
    that is constant has no highest weight, and does not count."""
    for weight_J, fall_J in zip(weights_IJ, fall_IJ, strict=True):
        if len(weight_J) > 1 and weight_J.max() > weight_J.min():
            highest = int(weight_J.argmax())
            other = (highest + int(random.integers(1, len(weight_J)))) % len(weight_J)
            yield float(fall_J[highest]), float(fall_J[other])

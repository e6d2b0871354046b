"""Erasure: the fall of a target word's probability where a source word is left out.

    fall_ij = p(t_i | t_<i, s) - p(t_i | t_<i, s without word j)

Where weights explain a model, the fall is larger for the source word with the highest weight than for another one.
(Li, Monroe & Jurafsky 2016, "Understanding Neural Networks through Representation Erasure"; Jain & Wallace 2019,
section 4.1, who compare the order of all words. Serrano & Smith 2019, "Is Attention Interpretable?", section 4, erase
the highest weight and a random other one.)

Shapes: I target words, J source words.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np
from numpy.typing import NDArray

from nmt.alignment import Weights
from nmt.data.pieces import Span


@dataclass(frozen=True)
class Erasure:
    """The falls of some target words."""

    falls: Sequence[tuple[float, float]]
    """Of each target word: without the source word of the highest weight, and without another one."""

    @property
    def highest(self) -> float | None:
        """The median fall without the source word of the highest weight; None without any."""
        return median(fall for fall, _ in self.falls) if self.falls else None

    @property
    def other(self) -> float | None:
        """The median fall without another source word; None without any."""
        return median(fall for _, fall in self.falls) if self.falls else None

    @property
    def larger(self) -> float | None:
        """The share of target words that fall further by the former; None without any."""
        return sum(one > other for one, other in self.falls) / len(self.falls) if self.falls else None


def falls(
    weights_IJ: Weights, fall_IJ: NDArray[np.float64], random: np.random.Generator
) -> Iterator[tuple[float, float]]:
    """The fall of each target word without the source word of the highest weight, and without a random other one. A row
    that is constant has no highest weight, and does not count."""
    for weight_J, fall_J in zip(weights_IJ, fall_IJ, strict=True):
        if weight_J.max(initial=0) > weight_J.min(initial=1):
            highest = int(weight_J.argmax())
            other = (highest + int(random.integers(1, len(weight_J)))) % len(weight_J)
            yield float(fall_J[highest]), float(fall_J[other])


def without(line: str, word: Span) -> str:
    """The line without a word."""
    return " ".join((line[: word[0]] + line[word[1] :]).split())

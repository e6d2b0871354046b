"""Entropy and coverage of a model's attention.

    entropy   H_t = -sum_s w_ts log2 w_ts, in bits: 0 where one source subword has all the weight
    coverage  C_s =  sum_t w_ts: the weight of a source subword in all steps together (Tu et al. 2016, "Modeling
              Coverage for Neural Machine Translation", whose models keep it at 1 or so)

Shapes: T target and S source subwords, both with end-of-sentence.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

LITTLE, MUCH = 0.2, 2.0
"""Coverage below which a source subword counts as left out, and above which as attended to twice."""


@dataclass(frozen=True)
class Looks:
    """Entropies and coverages of all subwords of some pairs."""

    entropies: NDArray[np.float64]
    """One for each target subword, in bits."""
    coverages: NDArray[np.float64]
    """One for each source subword, without end-of-sentence."""

    @property
    def entropy(self) -> float:
        """Mean entropy, in bits."""
        return _mean(self.entropies)

    @property
    def left_out(self) -> float:
        """Share of the source subwords with a coverage below `LITTLE`."""
        return _mean(self.coverages < LITTLE)

    @property
    def repeated(self) -> float:
        """Share of the source subwords with a coverage above `MUCH`."""
        return _mean(self.coverages > MUCH)


def looks(matrices: Sequence[ArrayLike]) -> Looks:
    """Computes entropies and coverages from the matrices weights_TS of some pairs, whose last column is
    end-of-sentence."""
    entropies, coverages = [np.zeros(0)], [np.zeros(0)]
    for matrix in matrices:
        weights_TS = np.asarray(matrix, dtype=np.float64)
        entropies.append(entropy(weights_TS))
        coverages.append(weights_TS.sum(axis=0)[:-1])
    return Looks(np.concatenate(entropies), np.concatenate(coverages))


def entropy(weights_TS: NDArray[np.float64]) -> NDArray[np.float64]:
    """Computes the entropy of each row, in bits; 0 log 0 is 0."""
    logs_TS = np.log2(weights_TS, out=np.zeros_like(weights_TS), where=weights_TS > 0)
    entropies_T: NDArray[np.float64] = np.maximum(-(weights_TS * logs_TS).sum(axis=1), 0.0)
    return entropies_T


def _mean(values: NDArray[np.float64] | NDArray[np.bool_]) -> float:
    return float(values.mean()) if values.size else 0.0

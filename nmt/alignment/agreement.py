"""Agreement of two soft alignments of the same sentence pair: rank correlation of their rows.

Jain & Wallace 2019, "Attention is not Explanation", section 4.1, compare attention with gradients in this way. They use
Kendall's correlation; this module computes Spearman's and Kendall's. With s_ij = sign(x_i - x_j), u_ij likewise of y,
and r_i and q_i the ranks of x_i and y_i, where equal values share the mean of their ranks,

    Spearman   sum_i (r_i - r')(q_i - q') / sqrt(sum_i (r_i - r')^2  sum_i (q_i - q')^2)         r' the mean rank
    Kendall    sum_ij s_ij u_ij           / sqrt(sum_ij s_ij^2       sum_ij u_ij^2)              tau-b

As r_i - r' = sum_j s_ij / 2, both are a cosine: of the sums of s and u, or of s and u themselves (Daniels 1944, "The
Relation between Measures of Correlation in the Universe of Sample Permutations"; Kendall 1945, "The Treatment of Ties
in Ranking Problems").
"""

from __future__ import annotations

from dataclasses import astuple, dataclass
from operator import add
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray


class RankCorrelation(NamedTuple):
    """Correlations of two rows, each from -1, the opposite order, to 1, the same order."""

    spearman: float
    kendall: float


@dataclass(frozen=True)
class Agreement:
    """Sums over rows, and their means. The agreements of parts add up with ``+``."""

    rows: int = 0
    """Number of rows that have a correlation."""
    spearman_sum: float = 0.0
    kendall_sum: float = 0.0

    def __add__(self, other: Agreement) -> Agreement:
        return Agreement(*map(add, astuple(self), astuple(other)))

    @property
    def spearman(self) -> float | None:
        """Mean of Spearman's correlation over rows; None if there are no rows."""
        return self.spearman_sum / self.rows if self.rows else None

    @property
    def kendall(self) -> float | None:
        """Mean of Kendall's correlation over rows; None if there are no rows."""
        return self.kendall_sum / self.rows if self.rows else None


def agreement(weights_TS: ArrayLike, other_TS: ArrayLike) -> Agreement:
    """Computes the correlations of the rows of two soft alignments. A row that is constant in either of them has no
    order and no correlation: the source has one word, or nothing is known about the target word.

    Raises ValueError for matrices of different shapes.
    """
    rows, other_rows = np.asarray(weights_TS), np.asarray(other_TS)
    if rows.shape != other_rows.shape:
        raise ValueError(f"soft alignments of shapes {rows.shape} and {other_rows.shape} are not of one pair")
    correlations = [rank_correlation(row, other) for row, other in zip(rows, other_rows, strict=True)]
    defined = [correlation for correlation in correlations if correlation is not None]
    return Agreement(len(defined), sum(spearman for spearman, _ in defined), sum(kendall for _, kendall in defined))


def rank_correlation(x_N: ArrayLike, y_N: ArrayLike) -> RankCorrelation | None:
    """Computes Spearman's and Kendall's (tau-b) correlation of two vectors; returns None if all values of one are
    equal."""
    x_NN, y_NN = _signs(x_N), _signs(y_N)
    if not (x_NN.any() and y_NN.any()):
        return None
    return RankCorrelation(_cosine(x_NN.sum(axis=1), y_NN.sum(axis=1)), _cosine(x_NN.ravel(), y_NN.ravel()))


def _signs(x_N: ArrayLike) -> NDArray[np.float64]:
    x_N = np.asarray(x_N, dtype=np.float64)
    signs_NN: NDArray[np.float64] = np.sign(np.subtract.outer(x_N, x_N))
    return signs_NN


def _cosine(x: NDArray[np.float64], y: NDArray[np.float64]) -> float:
    return float(x @ y / np.sqrt((x @ x) * (y @ y)))

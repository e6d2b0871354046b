"""Minimum Bayes risk decoding: the candidate that is most similar to all of the candidates (Kumar & Byrne 2004; from
samples, Eikema & Aziz 2020, "Is MAP Decoding All You Need?").

    utility(y) = sum over candidates y' of share(y') u(y, y')

where u is sentence chrF2 of y with y' as its reference, as sacreBLEU defines it with its defaults.

Shapes: C candidates, all different; G n-grams of one order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]

CHRF_ORDER = 6
_BETA_SQUARED = 4.0


def consensus(texts: Sequence[str]) -> list[tuple[int, float]]:
    """Ranks the different texts, best first, and returns the first index of each with its utility from 0 to 1. If
    utilities are equal, the text that occurs first is first."""
    counts = Counter(texts)
    different = list(counts)
    share_C = np.array([counts[text] for text in different]) / len(texts)
    utility_C = chrf_matrix(different) @ share_C
    order = np.argsort(-utility_C, kind="stable").tolist()
    return [(texts.index(different[index]), float(utility_C[index])) for index in order]


def chrf_matrix(texts: Sequence[str]) -> Matrix:
    """Computes chrF2, from 0 to 1, of each text (rows) with each text as its reference (columns)."""
    characters = [list("".join(text.split())) for text in texts]
    precision_CC, recall_CC, orders_CC = (np.zeros((len(texts), len(texts))) for _ in range(3))
    for order in range(1, CHRF_ORDER + 1):
        matches_CC, total_C = _matches(characters, order)
        precision_CC += matches_CC / np.maximum(total_C, 1)[:, None]
        recall_CC += matches_CC / np.maximum(total_C, 1)[None]
        orders_CC += (total_C[:, None] > 0) & (total_C[None] > 0)
    precision_CC, recall_CC = (sum_CC / np.maximum(orders_CC, 1) for sum_CC in (precision_CC, recall_CC))
    weighted_CC = _BETA_SQUARED * precision_CC + recall_CC
    return (1 + _BETA_SQUARED) * precision_CC * recall_CC / np.where(weighted_CC > 0, weighted_CC, 1.0)


def _matches(sequences: Sequence[Sequence[str]], order: int) -> tuple[Matrix, Matrix]:
    """Counts the n-grams that each two sequences have in common, (C, C), repeated ones as often as they occur in both,
    and the n-grams of each sequence, (C,)."""
    grams = [
        Counter(tuple(sequence[begin : begin + order]) for begin in range(len(sequence) - order + 1))
        for sequence in sequences
    ]
    column = {gram: index for index, gram in enumerate(dict.fromkeys(gram for counter in grams for gram in counter))}
    counts_CG = np.zeros((len(sequences), len(column)))
    for row, counter in enumerate(grams):
        for gram, count in counter.items():
            counts_CG[row, column[gram]] = count
    matches_CC = np.stack([np.minimum(counts_CG, row_G).sum(axis=1) for row_G in counts_CG])
    return matches_CC, counts_CG.sum(axis=1)

"""Translation probabilities of tokens by IBM model 1 (Brown et al. 1993, "The Mathematics of Statistical
Machine Translation", section 4.1).

    p(t | s_1 ... s_S) = 1 / (S + 1) x sum over i = 0 ... S of p(t | s_i)        s_0 the empty word
    count(t, s) = sum over all positions of t and s in a pair of p(t | s) / sum over i of p(t | s_i)
    p(t | s) <- count(t, s) / sum over t' of count(t', s)

No position, order or context counts, so it is learnt in seconds and the likelihood has one maximum.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Tokens = npt.NDArray[np.integer]


@dataclass(frozen=True)
class Lexicon:
    """p(t | s) of all tokens that have been seen together; E entries, sorted by source token."""

    source_E: npt.NDArray[np.int64]
    """-1: the empty word."""
    target_E: npt.NDArray[np.int64]
    probability_E: npt.NDArray[np.float64]

    def best(self, count: int) -> Lexicon:
        """The ``count`` most probable entries of each source token, most probable first; of equal ones the smaller
        target token."""
        order_E = np.lexsort((self.target_E, -self.probability_E, self.source_E))
        source_E = self.source_E[order_E]
        rank_E = np.arange(len(source_E)) - np.searchsorted(source_E, source_E)
        kept = order_E[rank_E < count]
        return Lexicon(self.source_E[kept], self.target_E[kept], self.probability_E[kept])


def learn(sources: Sequence[Tokens], targets: Sequence[Tokens], *, iterations: int = 5) -> Lexicon:
    """The lexicon of sentence pairs after some iterations of expectation maximisation from equal probabilities.

    Sides may be empty. Takes some 40 bytes for each pair of a source and a target position.
    """
    length_B = np.array([len(source) + 1 for source in sources], dtype=np.int64)
    empty = np.full(1, -1)
    source_X = np.concatenate([part for source in sources for part in (empty, source)] or [empty[:0]]).astype(np.int64)
    target_Y = np.concatenate([*targets, empty[:0]]).astype(np.int64)
    # C pairs of positions; the pairs of a target position side by side
    pairs_Y = np.repeat(length_B, [len(target) for target in targets])
    first_X_Y = np.repeat(np.cumsum(length_B) - length_B, [len(target) for target in targets])
    first_pair_Y = np.cumsum(pairs_Y) - pairs_Y
    position_C = np.arange(pairs_Y.sum()) + np.repeat(first_X_Y - first_pair_Y, pairs_Y)
    width = int(target_Y.max(initial=0)) + 1
    entry_E, entry_C = np.unique((source_X[position_C] + 1) * width + np.repeat(target_Y, pairs_Y), return_inverse=True)
    del position_C
    source_E, target_E = entry_E // width - 1, entry_E % width
    p_E = np.ones(len(entry_E))
    for _ in range(iterations):
        if not len(p_E):
            break
        p_C = p_E[entry_C]
        p_C /= np.repeat(np.add.reduceat(p_C, first_pair_Y), pairs_Y)
        count_E = np.bincount(entry_C, p_C, len(p_E))
        p_E = count_E / np.bincount(source_E + 1, count_E)[source_E + 1]
    return Lexicon(source_E, target_E, p_E)

"""Lexicons: probabilities that tokens of two languages stand for each other, and features of sentence pairs from them.

A lexicon has p(t | s) and p(s | t) of a hidden Markov model of word alignment in both directions (see
``word_aligner.hmm``). The features of a target token t, beside source tokens s_1 ... s_S, are logarithms of

    max over i of p(t | s_i)                    the best explanation of the token
    1/S sum over i of p(t | s_i)                its probability by IBM model 1 (Brown et al. 1993)
    max over i of p(s_i | t)                    the best explanation that it is itself
    sqrt(max over i of p(t | s_i) p(s_i | t))   the best by both directions
    p(t), and p(t as a source token)            a copied or swapped side is improbable in its language (Moore 2002)
    p(t | empty word)                           a token that often stands for nothing needs no explanation

and 1 where a source token is spelt alike. Those of a source token are likewise, with source and target exchanged.
Similar features find translations in Munteanu & Marcu 2005 ("Improving Machine Translation Performance by Exploiting
Non-Parallel Corpora") and in Zipporah (Xu & Koehn 2017).

Shapes: B sentence pairs, S source and T target tokens, V tokens of one vocabulary for both sides, E pairs of a source
and a target token that were seen together, F features.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nmt.data.vocabulary import PAD
from nmt.extras.pair_filter.wrong_pairs import TokenPair
from nmt.extras.word_aligner.hmm import learn

Floats = NDArray[np.float32]

FEATURES = 8
NOTHING = -20.0
"""The logarithm of a probability at padding."""


@dataclass(frozen=True)
class Lexicon:
    """Logarithms of probabilities, learnt from sentence pairs."""

    pair_E: NDArray[np.int64]
    """Source and target tokens that were seen together, sorted, each as source x V + target."""
    link_2E: Floats
    """log p(t | s) and log p(s | t) of each."""
    token_32V: Floats
    """Of each source and target token: the log of its probability, of that of a token of the other side that it was
    never seen with, and of its probability after the empty word."""

    def fits(self, tokens: int) -> bool:
        """True where the arrays, perhaps of a damaged file, are those of a lexicon of as many tokens."""
        shapes = self.link_2E.shape == (2, *self.pair_E.shape) and self.token_32V.shape == (3, 2, tokens)
        return self.pair_E.dtype == np.int64 and shapes and bool((np.diff(self.pair_E) > 0).all())

    def features(self, source_BS: NDArray[np.int64], target_BT: NDArray[np.int64]) -> tuple[Floats, Floats]:
        """The features of each token, (B, S, F) and (B, T, F); of padding, anything."""
        own_2V, unseen_2V, empty_2V = self.token_32V
        source_BS1, target_B1T = source_BS[:, :, None], target_BT[:, None]
        key_BST = source_BS1 * own_2V.shape[1] + target_B1T
        # One more entry, for pairs beyond the last; those that the lexicon lacks get another value.
        index_BST = np.searchsorted(self.pair_E, key_BST)
        is_unseen_BST = np.append(self.pair_E, -1)[index_BST] != key_BST
        is_padding_BST = (source_BS1 == PAD) | (target_B1T == PAD)
        links = []
        for link_E, unseen in zip(self.link_2E, (unseen_2V[0][source_BS1], unseen_2V[1][target_B1T]), strict=True):
            link_BST = np.where(is_unseen_BST, unseen, np.append(link_E, np.float32(0))[index_BST])
            links.append(np.where(is_padding_BST, np.float32(NOTHING), link_BST))
        alike_BST = (source_BS1 == target_B1T) & ~is_padding_BST
        sides = []
        for side, tokens, others in ((0, source_BS, target_BT), (1, target_BT, source_BS)):
            axis, this, that = 2 - side, links[1 - side], links[side]
            columns: list[NDArray[Any]] = [
                this.max(axis),
                np.log(np.exp(this).sum(axis) / (others != PAD).sum(axis=1, keepdims=True)),
                that.max(axis),
                (this + that).max(axis) / 2,
                own_2V[side][tokens],
                own_2V[1 - side][tokens],
                empty_2V[side][tokens],
                4 * alike_BST.any(axis),
            ]
            sides.append(np.stack(columns, axis=-1).astype(np.float32) / 4)  # of about the size of 1
        return sides[0], sides[1]


def learn_lexicon(pairs: Sequence[TokenPair], tokens: int) -> Lexicon:
    """Learns from pairs whose sides have tokens, each below ``tokens``."""
    sources, targets = map(list, zip(*pairs, strict=True))
    models = learn(sources, targets, source_tokens=tokens, target_tokens=tokens, iterations=1)
    forward, backward = models.forward, models.backward
    count_2V = np.stack([np.bincount(np.concatenate(side), minlength=tokens) for side in (sources, targets)]) + 0.5
    token_32V = np.stack([
        count_2V / count_2V.sum(axis=1, keepdims=True),
        np.stack([forward.unseen_U1[:-1], backward.unseen_U1[:-1]]),
        np.stack([backward.empty_V1[:-1], forward.empty_V1[:-1]]),
    ])  # fmt: skip
    link_2E = np.stack([forward.link_E, backward.link_E])
    return Lexicon(models.pair_E.astype(np.int64), np.log(link_2E), np.log(token_32V).astype(np.float32))

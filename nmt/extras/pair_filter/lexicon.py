"""Lexicons: probabilities that tokens of two languages stand for each other, and features of sentence pairs from them.

A lexicon has p(t | s) and p(s | t) of a hidden Markov model of word alignment in both directions (see
``word_aligner.hmm``). The features of a target token t, beside source tokens s_1 ... s_S, are logarithms:

    max over i of p(t | s_i)                    the best explanation of the token
    1/S sum over i of p(t | s_i)                its probability by IBM model 1 (Brown et al. 1993)
    max over i of p(s_i | t)                    the best explanation that it is itself
    sqrt(max over i of p(t | s_i) p(s_i | t))   the best by both directions
    p(t), and p(t as a source token)            a copied or swapped side is improbable in its language (Moore 2002)
    p(t | empty word)                           a token that often stands for nothing needs no explanation

then 1 where a source token is spelt alike, and the log-ratio of the language: the mean over n, the character n-grams
of up to 4 letters in t and t itself, of log p(n in sources) / p(n in targets). Those of a source token are likewise,
with source and target exchanged. Similar features find translations in Munteanu & Marcu 2005 ("Improving Machine
Translation Performance by Exploiting Non-Parallel Corpora") and in Zipporah (Xu & Koehn 2017).

Shapes: B sentence pairs, S source and T target tokens, V tokens of one vocabulary for both sides, E pairs of a source
and a target token that were seen together, F features.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nmt.data.tokenizer import Tokenizer
from nmt.data.vocabulary import PAD
from nmt.extras.pair_filter.wrong_pairs import TokenPair
from nmt.extras.word_aligner.hmm import learn

Floats = NDArray[np.float32]

FEATURES = 9
NOTHING = -20.0
"""The logarithm of a probability at padding."""

LETTERS = 4
"""Of the longest n-grams."""
GRAMS = 1 << 16
"""N-grams are told apart by a hash of 16 bits."""


@dataclass(frozen=True)
class Lexicon:
    """Logarithms of probabilities, learnt from sentence pairs."""

    pair_E: NDArray[np.int64]
    """Source and target tokens that were seen together, sorted, each as source x V + target."""
    link_2E: Floats
    """log p(t | s) and log p(s | t) of each."""
    token_42V: Floats
    """Of each source and target token: the log of its probability, of that of a token of the other side that it was
    never seen with, and of its probability after the empty word; and the log-ratio of its language."""

    def fits(self, tokens: int) -> bool:
        """True where the arrays, perhaps of a damaged file, are those of a lexicon of as many tokens."""
        sorted_pairs = (
            self.pair_E.dtype == np.int64 and self.pair_E.ndim == 1 and bool((np.diff(self.pair_E) > 0).all())
        )
        shapes = self.link_2E.shape == (2, *self.pair_E.shape) and self.token_42V.shape == (4, 2, tokens)
        floats = (self.link_2E, self.token_42V)
        return sorted_pairs and shapes and all(a.dtype == np.float32 and np.isfinite(a).all() for a in floats)

    def features(self, source_BS: NDArray[np.int64], target_BT: NDArray[np.int64]) -> tuple[Floats, Floats]:
        """The features of each token, (B, S, F) and (B, T, F); of padding, anything."""
        own_2V, unseen_2V, empty_2V, language_2V = self.token_42V
        source_BS1, target_B1T = source_BS[:, :, None], target_BT[:, None]
        # Both directions' log-probabilities of all cells. The last entry, for pairs that the lexicon lacks, is not read.
        key_BST = source_BS1 * own_2V.shape[1] + target_B1T
        index_BST = np.searchsorted(self.pair_E, key_BST)
        is_unseen_BST = np.append(self.pair_E, -1)[index_BST] != key_BST
        is_padding_BST = (source_BS1 == PAD) | (target_B1T == PAD)
        links = []
        for link_E, unseen in zip(self.link_2E, (unseen_2V[0][source_BS1], unseen_2V[1][target_B1T]), strict=True):
            link_BST = np.where(is_unseen_BST, unseen, np.append(link_E, np.float32(0))[index_BST])
            links.append(np.where(is_padding_BST, np.float32(NOTHING), link_BST))
        alike_BST = (source_BS1 == target_B1T) & ~is_padding_BST
        sides = []
        for side, (tokens, axis, this, that) in enumerate(
            ((source_BS, 2, links[1], links[0]), (target_BT, 1, links[0], links[1]))
        ):
            others = (target_BT, source_BS)[side]
            count_B1 = (others != PAD).sum(axis=1, keepdims=True)
            columns: list[NDArray[Any]] = [
                this.max(axis),
                np.log(np.exp(this).sum(axis) / count_B1),
                that.max(axis),
                (this + that).max(axis) / 2,
                own_2V[side][tokens],
                own_2V[1 - side][tokens],
                empty_2V[side][tokens],
                4 * alike_BST.any(axis),
                4 * language_2V[side][tokens],
            ]
            sides.append(np.stack(columns, axis=-1).astype(np.float32) / 4)  # of about the size of 1
        return sides[0], sides[1]


def learn_lexicon(pairs: Sequence[TokenPair], tokenizer: Tokenizer) -> Lexicon:
    """Learns from pairs whose sides all have tokens."""
    V = tokenizer.size
    sources, targets = map(list, zip(*pairs, strict=True))
    models = learn(sources, targets, source_tokens=V, target_tokens=V, iterations=1)
    count_2V = np.stack([np.bincount(np.concatenate(side), minlength=V) for side in (sources, targets)])
    own_2V = np.log((count_2V + 0.5) / (count_2V.sum(axis=1, keepdims=True) + 0.5 * V))
    directions = (models.forward, models.backward)
    unseen_2V = np.log([direction.unseen_U1[:-1] for direction in directions])
    empty_2V = np.log([direction.empty_V1[:-1] for direction in reversed(directions)])
    language_2V = np.multiply.outer([1, -1], _language(count_2V, tokenizer.pieces(range(V))))
    return Lexicon(
        models.pair_E.astype(np.int64),
        np.log([direction.link_E for direction in directions]).astype(np.float32),
        np.stack([own_2V, unseen_2V, empty_2V, language_2V]).astype(np.float32),
    )


def _language(count_2V: NDArray[np.int64], pieces: Sequence[str]) -> NDArray[np.float64]:
    """The log-ratio of source and target of each piece, by its n-grams: (V,)."""
    grams = [
        {piece[i : i + n] for n in range(1, LETTERS + 1) for i in range(len(piece) - n + 1)} | {f" {piece}"}
        for piece in pieces
    ]
    size_V = np.array(list(map(len, grams)))
    gram_G = np.array([zlib.crc32(gram.encode()) % GRAMS for each in grams for gram in sorted(each)])
    piece_G = np.repeat(np.arange(len(pieces)), size_V)
    source, target = (
        np.log((np.bincount(gram_G, count_V[piece_G], GRAMS) + 0.3) / (count_V.sum() + 1)) for count_V in count_2V
    )
    return np.bincount(piece_G, (source - target)[gram_G], len(pieces)) / size_V

"""Lexicons: probabilities that tokens of two languages are translations of each other, and features of sentence pairs.

A lexicon has p(t | s) and p(s | t) of a hidden Markov model of word alignment in both directions (see
``aligner.hmm``). The features of a target token t, beside source tokens s_1 ... s_S, are logarithms of

    max over i of p(t | s_i)                    the best explanation of the token
    max over i of p(s_i | t)                    the best explanation that it is itself
    max over i of sqrt(p(s_i as a target token | t as a source token) p(t | s_i likewise))
                                                high in a pair that is swapped; e^-10 where none was seen
    e where a source token is spelt alike, or else 1
    p(t), and p(t as a source token)            a copied or swapped side is improbable in its language (Moore 2002)
    p(t | empty word)                           a token that often stands for nothing needs no explanation

Those of a source token are likewise, with source and target exchanged.
Similar features find translations in Munteanu & Marcu 2005 ("Improving Machine Translation Performance by Exploiting
Non-Parallel Corpora") and in Zipporah (Xu & Koehn 2017).

Shapes: B sentence pairs, S source and T target tokens, V tokens of one vocabulary for both sides, E pairs of a source
and a target token that were seen together, F features.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from nmt.data.vocabulary import PAD
from nmt.extras.aligner.hmm import Tokens, learn

FEATURES = 7
NOTHING = -20.0
"""Logarithm of a probability at padding."""


class Lexicon(NamedTuple):
    """Logarithms of probabilities, learnt from sentence pairs."""

    pair_E: Tensor
    """Pairs of source and target tokens that were seen together, sorted, each as source x V + target."""
    link_2E: Tensor
    """log p(t | s) and log p(s | t) of each pair."""
    token_32V: Tensor
    """Three logarithms for each source and target token: of its probability, of the probability of a token of the other
    side that it was never seen with, and of its probability after the empty word."""

    def fits(self, tokens: int) -> bool:
        """Returns True if the tensors, which may be from a damaged file, are those of a lexicon of that many tokens."""
        shapes = [self.link_2E.shape, self.token_32V.shape] == [(2, *self.pair_E.shape), (3, 2, tokens)]
        return shapes and self.pair_E.dtype == torch.int64 and self.pair_E.numel() > 0 and self.pair_E.ndim == 1

    def features(self, source_BS: Tensor, target_BT: Tensor) -> tuple[Tensor, Tensor]:
        """Computes the features of each token, (B, S, F) and (B, T, F); those of padding are undefined."""
        own_2V, unseen_2V, empty_2V = self.token_32V
        source_BS1, target_B1T = source_BS[:, :, None], target_BT[:, None]
        is_padding_BST = (source_BS1 == PAD) | (target_B1T == PAD)
        # the indices of the cells among the pairs, and of the cells with source and target exchanged
        tokens = own_2V.shape[1]
        keys = torch.stack([source_BS1 * tokens + target_B1T, target_B1T * tokens + source_BS1])
        index_2BST = torch.searchsorted(self.pair_E, keys).clamp_(max=len(self.pair_E) - 1)
        is_seen_2BST = self.pair_E[index_2BST] == keys
        links = [
            torch.where(is_seen_2BST[0], link_E[index_2BST[0]], unseen).masked_fill_(is_padding_BST, NOTHING)
            for link_E, unseen in zip(self.link_2E, (unseen_2V[0][source_BS1], unseen_2V[1][target_B1T]), strict=True)
        ]
        exchanged_BST = self.link_2E.sum(dim=0)[index_2BST[1]] / 2
        exchanged_BST.masked_fill_(~is_seen_2BST[1] | is_padding_BST, NOTHING / 2)
        alike_BST = (source_BS1 == target_B1T) & ~is_padding_BST
        sides = []
        for side, here in enumerate((source_BS, target_BT)):
            axis, this, that = 2 - side, links[1 - side], links[side]
            explained = [this.amax(axis), that.amax(axis), exchanged_BST.amax(axis), alike_BST.any(axis).float()]
            known = [own_2V[side][here], own_2V[1 - side][here], empty_2V[side][here]]
            sides.append(torch.stack([*explained, *known], dim=-1))
        return sides[0], sides[1]


def learn_lexicon(pairs: Sequence[tuple[Tokens, Tokens]], tokens: int) -> Lexicon:
    """Learns from pairs whose sides have tokens, each below ``tokens``."""
    sources, targets = map(list, zip(*pairs, strict=True))
    models = learn(sources, targets, source_tokens=tokens, target_tokens=tokens, iterations=1)
    forward, backward = models.forward, models.backward
    count_2V = np.stack([np.bincount(np.concatenate(side), minlength=tokens) for side in (sources, targets)]) + 0.5
    own_2V = count_2V / count_2V.sum(axis=1, keepdims=True)
    unseen, empty = ([x.unseen_U1[:-1] for x in (forward, backward)], [x.empty_V1[:-1] for x in (backward, forward)])
    arrays = [np.stack([forward.link_E, backward.link_E]), np.stack([own_2V, unseen, empty])]
    pair_E = torch.from_numpy(models.pair_E.astype(np.int64))
    return Lexicon(pair_E, *(torch.from_numpy(x).float().log() for x in arrays))

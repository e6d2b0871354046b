"""Minimum Bayes risk decoding: the candidate that is most similar to all of the candidates (Kumar & Byrne 2004; from
samples, Eikema & Aziz 2020, "Is MAP Decoding All You Need?").

    utility(y) = sum over candidates y' of share(y') u(y, y')

where u is sentence chrF2 or sentence BLEU of y with y' as its reference, as sacreBLEU defines them with its defaults
(BLEU with ``effective_order``, and the tokenizer for the script of the candidates).

Shapes: C candidates, all different; G n-grams of one order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from nmt.data.bleu_tokenizer import bleu_tokenizer, sentence_bleu

Matrix = NDArray[np.float64]

Utility = Literal["chrf", "bleu"]

CHRF_ORDER, BLEU_ORDER = 6, 4
_BETA_SQUARED = 4.0


def consensus(texts: Sequence[str], utility: Utility) -> list[tuple[int, float]]:
    """Ranks the different texts, best first, and returns the first index of each with its utility from 0 to 1. If
    utilities are equal, the text that occurs first is first."""
    counts = Counter(texts)
    different = list(counts)
    share_C = np.array([counts[text] for text in different]) / len(texts)
    matrix_CC = chrf_matrix(different) if utility == "chrf" else bleu_matrix(different)
    utility_C = matrix_CC @ share_C
    first = [texts.index(text) for text in different]
    return [(first[index], float(utility_C[index])) for index in np.argsort(-utility_C, kind="stable").tolist()]


def chrf_matrix(texts: Sequence[str]) -> Matrix:
    """Computes chrF2, from 0 to 1, of each text (rows) with each text as its reference (columns)."""
    characters = [list("".join(text.split())) for text in texts]
    precision_CC, recall_CC, orders_CC = (np.zeros((len(texts), len(texts))) for _ in range(3))
    for order in range(1, CHRF_ORDER + 1):
        matches_CC, total_C = _matches(characters, order)
        is_counted_CC = (total_C[:, None] > 0) & (total_C[None] > 0)
        precision_CC += matches_CC / np.maximum(total_C, 1)[:, None]
        recall_CC += matches_CC / np.maximum(total_C, 1)[None]
        orders_CC += is_counted_CC
    precision_CC, recall_CC = (sum_CC / np.maximum(orders_CC, 1) for sum_CC in (precision_CC, recall_CC))
    weighted_CC = _BETA_SQUARED * precision_CC + recall_CC
    return (1 + _BETA_SQUARED) * precision_CC * recall_CC / np.where(weighted_CC > 0, weighted_CC, 1.0)


def bleu_matrix(texts: Sequence[str]) -> Matrix:
    """Computes sentence BLEU, from 0 to 1, of each text (rows) with each text as its reference (columns)."""
    tokenizer = sentence_bleu(bleu_tokenizer([texts])).tokenizer
    words = [tokenizer(text.rstrip()).split() for text in texts]
    length_C = np.array([len(sentence) for sentence in words], dtype=np.float64)
    log_sum_CC, orders_CC, smoothing_CC = (np.zeros((len(texts), len(texts))) for _ in range(3))
    smoothing_CC += 1.0
    any_match_CC = np.zeros((len(texts), len(texts)), dtype=bool)
    for order in range(1, BLEU_ORDER + 1):
        matches_CC, total_C = _matches(words, order)
        is_counted_CC = np.broadcast_to(total_C[:, None] > 0, matches_CC.shape)
        is_none_CC = is_counted_CC & (matches_CC == 0)
        smoothing_CC = np.where(is_none_CC, 2 * smoothing_CC, smoothing_CC)
        total_C1 = np.maximum(total_C, 1)[:, None]
        precision_CC = np.where(is_none_CC, 1.0 / (smoothing_CC * total_C1), np.maximum(matches_CC, 1) / total_C1)
        log_sum_CC += np.where(is_counted_CC, np.log(precision_CC), 0.0)
        orders_CC += is_counted_CC
        any_match_CC |= matches_CC > 0
    shorter_CC = 1.0 - length_C[None] / np.maximum(length_C, 1)[:, None]
    brevity_CC = np.where(length_C[:, None] < length_C[None], np.exp(np.minimum(shorter_CC, 0.0)), 1.0)
    scores_CC = brevity_CC * np.exp(log_sum_CC / np.maximum(orders_CC, 1))
    return np.where(any_match_CC, np.minimum(scores_CC, 1.0), 0.0)


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

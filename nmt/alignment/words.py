"""From attention between subwords to attention between words.

Shape suffixes: T target pieces, S source pieces, I target words, J source words.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nmt.data.tokenizer import EncodedWords

NO_WORD = -1
"""The word index of a piece that belongs to no word, such as end-of-sentence."""


def to_words(
    weights_TS: ArrayLike,
    target_word_of_piece_T: Sequence[int],
    source_word_of_piece_S: Sequence[int],
    target_words: int,
    source_words: int,
) -> NDArray[np.float64]:
    """Attention between words, `weights_IJ`: summed over a source word's pieces, averaged over a target word's pieces.

        mass_ij    = mean over pieces t of word i of  sum over pieces s of word j of  weights_ts
        weights_ij = mass_ij / sum over j of mass_ij

    The sum is the probability that a target piece looks at any piece of the word; the mean gives each piece of the
    target word the same say. `target_word_of_piece_T` and `source_word_of_piece_S` give each piece's word, counted from
    0, or `NO_WORD` for a piece of no word (end of sentence): such rows and columns are dropped, and the rest of each
    row is rescaled to sum to 1. A piece that spends most of its weight on the end of the sentence thus has less say.

    `target_words` and `source_words` are the numbers of words, hence the shape of the result. Every row sums to 1:

    - A target word without pieces (the tokenizer may remove a lone control character), or one whose whole weight lies
      on dropped columns, gets the uniform row 1/J: nothing is known about it, and this distribution says so. The rules
      of `nmt.alignment.extract` give no link to a row in which no source word stands out.
    - A source word without pieces has weight 0 in every other row, as nothing could look at it.
    - With no target words the shape is (0, J), with no source words (I, 0); only there no row can sum to 1.

    Raises ValueError when the shapes disagree, a word index is out of range, or a weight is negative or not finite.
    """
    return joined(
        weights_TS, _membership(target_word_of_piece_T, target_words), _membership(source_word_of_piece_S, source_words)
    )


def joined(weights_TS: ArrayLike, share_IT: NDArray[np.float64], share_JS: NDArray[np.float64]) -> NDArray[np.float64]:
    """As `to_words`, where a piece may lie in several words, its weight shared between them: `share_IT` and `share_JS`
    say how much of each piece each word has, columns that sum to 1, or to 0 for a piece of no word. Then

        mass_ij = sum over pieces t of share_it  sum over pieces s of share_js  weights_ts

    Raises ValueError when the shapes disagree, or a weight is negative or not finite.
    """
    weights_TS = np.asarray(weights_TS, dtype=np.float64)
    shape = (share_IT.shape[1], share_JS.shape[1])
    if weights_TS.shape != shape:
        raise ValueError(f"weights of shape {weights_TS.shape} for {shape[0]} target and {shape[1]} source pieces")
    if not (np.isfinite(weights_TS).all() and (weights_TS >= 0).all()):
        raise ValueError("attention weights must be finite and not negative")
    # The row is rescaled below, so the mean over a target word's pieces needs no division of its own.
    mass_IJ: NDArray[np.float64] = share_IT @ weights_TS @ share_JS.T
    total_I1 = mass_IJ.sum(axis=1, keepdims=True)
    words_IJ = np.full_like(mass_IJ, 1 / max(len(share_JS), 1))
    np.divide(mass_IJ, total_I1, out=words_IJ, where=total_I1 > 0)
    return words_IJ


def shares(encoded: EncodedWords) -> NDArray[np.float64]:
    """How much of each piece, and in a last column of end-of-sentence, each word has: the part of the characters that
    it covers of all words. A piece that covers none belongs to one word (see `EncodedWords`), end-of-sentence to none.
    """
    word_begins, word_ends = np.array(encoded.word_spans, dtype=np.int64).reshape(-1, 2).T
    piece_begins, piece_ends = np.array(encoded.piece_spans, dtype=np.int64).reshape(-1, 2).T
    ends, begins = np.minimum.outer(word_ends, piece_ends), np.maximum.outer(word_begins, piece_begins)
    covered_WP = np.maximum(ends - begins, 0).astype(np.float64)
    total_P = covered_WP.sum(axis=0)
    alone_WP = _membership(encoded.word_of_piece, len(encoded.words))
    share_WP = np.where(total_P > 0, covered_WP / np.maximum(total_P, 1), alone_WP)
    return np.pad(share_WP, ((0, 0), (0, 1)))


def _membership(word_of_piece: Sequence[int], words: int) -> NDArray[np.float64]:
    """One row per word, one column per piece: 1 where the piece belongs to the word."""
    index = np.asarray(word_of_piece, dtype=np.int64)
    if index.size and (index.min() < NO_WORD or index.max() >= words):
        raise ValueError(f"word indices from {index.min()} to {index.max()}, but there are {words} words")
    belongs: NDArray[np.bool_] = index[None, :] == np.arange(words)[:, None]
    return belongs.astype(np.float64)

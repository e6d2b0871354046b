"""Attention between words, from attention between subwords.

Shape suffixes: T target pieces, S source pieces, I target words, J source words, M and N parts of target and source
pieces.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nmt.alignment import Magnitude
from nmt.data.tokenizer import EncodedWords
from nmt.data.words import is_punctuation

Float = TypeVar("Float", bound=np.floating)

NO_WORD = -1
"""Word index of a piece that belongs to no word, such as end-of-sentence."""


def to_words(
    weights_TS: ArrayLike, target_word_of_piece_T: Sequence[int], source_word_of_piece_S: Sequence[int],
    target_words: int, source_words: int, *, magnitude: Magnitude = "relative",
) -> NDArray[np.float64]:  # fmt: skip
    """Computes the attention between words, `weights_IJ`: summed over a source word's pieces, averaged over a target
    word's pieces.

        mass_ij    = mean over pieces t of word i of  sum over pieces s of word j of  weights_ts
        weights_ij = mass_ij / sum over j of mass_ij

    The sum is the weight of a target piece on all pieces of the word; the mean gives each piece of the target word the
    same weight. `target_word_of_piece_T` and `source_word_of_piece_S` give each piece's word, counted from 0, or
    `NO_WORD` for a piece of no word (end of sentence): such rows and columns are dropped, and the rest of each row is
    rescaled to sum to 1. So a piece that has most of its weight on the end of the sentence counts less.

    `target_words` and `source_words` are the numbers of words, hence the shape of the result. Every row sums to 1:

    - A target word without pieces (the tokenizer may remove a lone control character), or one whose whole weight lies
      on dropped columns, gets the uniform row 1/J: nothing is known about it, and this distribution says so. The rules
      of `nmt.alignment.extract` give no link to a row in which no source word stands out.
    - A source word without pieces has weight 0 in every other row, since no piece gets any.
    - With no target words the shape is (0, J), with no source words (I, 0); only there no row can sum to 1.

    With another magnitude, derivatives are summed over the pieces of both words and not scaled, because the
    log-probability of a word is the sum of the log-probabilities of its pieces; a word without pieces gets 0.

    Raises ValueError when the shapes disagree, a word index is out of range, or a weight is negative or not finite.
    """
    weights_TS = np.asarray(weights_TS, dtype=np.float64)
    shape = (len(target_word_of_piece_T), len(source_word_of_piece_S))
    if weights_TS.shape != shape:
        raise ValueError(f"weights of shape {weights_TS.shape} for {shape[0]} target and {shape[1]} source pieces")
    _check(weights_TS, magnitude)
    belongs_IT = _membership(target_word_of_piece_T, target_words)
    belongs_JS = _membership(source_word_of_piece_S, source_words)
    # a relative row is rescaled, so the mean over a target word's pieces needs no division of its own
    mass_IJ: NDArray[np.float64] = belongs_IT @ weights_TS @ belongs_JS.T
    return normalize_rows(mass_IJ) if magnitude == "relative" else mass_IJ


def word_indices(encoded: EncodedWords) -> list[int]:
    """Returns the word whose alignment each piece counts for, or `NO_WORD` for a piece of punctuation in a word that
    has letters: the comma after a noun aligns with another comma, and says nothing about the noun."""
    pieces = list(zip(encoded.word_of_piece, encoded.written, strict=True))
    has_letters = {word for word, text in pieces if text and not is_punctuation(text)}
    return [NO_WORD if word in has_letters and is_punctuation(text) else word for word, text in pieces]


class PieceParts(NamedTuple):
    """The pieces of a sentence, cut at the ends of words. `piece_N` and `word_N` are the piece and the word of each
    part, `begin_N` and `end_N` its begin and end within the piece, from 0 to 1. End-of-sentence has no part."""

    piece_N: NDArray[np.int64]
    word_N: NDArray[np.int64]
    begin_N: NDArray[np.float64]
    end_N: NDArray[np.float64]
    words: int


def parts(encoded: EncodedWords) -> PieceParts:
    """Divides the pieces of a sentence into parts, in proportion to the characters of words that they cover. A piece
    that covers no characters, which normalisation has added, is a part of the word that it belongs to (see
    `EncodedWords`)."""
    word_begins, word_ends = np.array(encoded.word_spans, dtype=np.int64).reshape(-1, 2).T
    piece_begins, piece_ends = np.array(encoded.piece_spans, dtype=np.int64).reshape(-1, 2).T
    ends, begins = np.minimum.outer(piece_ends, word_ends), np.maximum.outer(piece_begins, word_begins)
    covered_SJ = np.maximum(ends - begins, 0)
    nothing_S = ~covered_SJ.any(axis=1)
    covered_SJ[nothing_S, np.array(encoded.word_of_piece, dtype=np.int64)[nothing_S]] = 1
    share_SJ = covered_SJ / covered_SJ.sum(axis=1, keepdims=True)
    end_SJ = share_SJ.cumsum(axis=1)
    piece_N, word_N = np.nonzero(covered_SJ)
    end_N = end_SJ[piece_N, word_N]
    return PieceParts(piece_N, word_N, end_N - share_SJ[piece_N, word_N], end_N, len(encoded.words))


def to_words_of_parts(
    weights_TS: ArrayLike, target: PieceParts, source: PieceParts, *, magnitude: Magnitude = "relative"
) -> NDArray[np.float64]:
    """Computes the attention between words if a piece may be part of several words, as in scripts without spaces:

        mass_ij    = sum over parts m of word i, n of word j, of pieces t and s, of  overlap_mn weights_ts
        weights_ij = mass_ij / sum over j of mass_ij

    A piece's weight is divided between its words in proportion to their characters. If two aligned pieces both have
    several words, their first words belong together and so do their last ones: overlap_mn is the length that the two
    parts have in common if both pieces have length 1. If no piece has more than one word this is `to_words`.
    """
    weights_TS = np.asarray(weights_TS, dtype=np.float64)
    _check(weights_TS, magnitude)
    ends_MN, begins_MN = np.minimum.outer(target.end_N, source.end_N), np.maximum.outer(target.begin_N, source.begin_N)
    mass_MN = weights_TS[np.ix_(target.piece_N, source.piece_N)] * np.maximum(ends_MN - begins_MN, 0)
    belongs_IM = _membership(target.word_N, target.words)
    mass_IJ: NDArray[np.float64] = belongs_IM @ mass_MN @ _membership(source.word_N, source.words).T
    return normalize_rows(mass_IJ) if magnitude == "relative" else mass_IJ


def _check(weights_TS: NDArray[np.float64], magnitude: Magnitude) -> None:
    if not (np.isfinite(weights_TS).all() and (magnitude == "signed" or (weights_TS >= 0).all())):
        raise ValueError("weights must be finite and, but for signed ones, not negative")


def normalize_rows(weights_TS: NDArray[Float]) -> NDArray[Float]:
    """Scales the rows of a matrix to sum to 1; a row of zeros becomes uniform."""
    total_T1 = weights_TS.sum(axis=1, keepdims=True)
    normalized_TS = np.full_like(weights_TS, 1 / max(weights_TS.shape[1], 1))
    np.divide(weights_TS, total_T1, out=normalized_TS, where=total_T1 > 0)
    return normalized_TS


def _membership(word_of_piece: Sequence[int] | NDArray[np.int64], words: int) -> NDArray[np.float64]:
    """Returns a matrix with one row per word and one column per piece, which is 1 if the piece belongs to the word."""
    index = np.asarray(word_of_piece, dtype=np.int64)
    if index.size and (index.min() < NO_WORD or index.max() >= words):
        raise ValueError(f"word indices from {index.min()} to {index.max()}, but there are {words} words")
    belongs: NDArray[np.bool_] = index[None, :] == np.arange(words)[:, None]
    return belongs.astype(np.float64)

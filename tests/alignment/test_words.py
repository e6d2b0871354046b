from __future__ import annotations

import math
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.alignment.words import NO_WORD, parts, to_words, to_words_of_parts, word_indices
from nmt.data.tokenizer import EncodedWords


def oracle(weights, target_of, source_of, target_words, source_words):  # type: ignore[no-untyped-def]
    """The definition in plain loops: sum over source pieces, mean over target pieces, rows rescaled."""
    rows = np.zeros((target_words, source_words))
    for i, j in np.ndindex(rows.shape):
        pieces = [t for t, word in enumerate(target_of) if word == i]
        sums = [sum(weights[t][s] for s, word in enumerate(source_of) if word == j) for t in pieces]
        rows[i, j] = sum(sums) / len(sums) if sums else 0.0
    return [row / row.sum() if row.sum() > 0 else np.full(source_words, 1 / source_words) for row in rows]


@st.composite
def cases(draw):  # type: ignore[no-untyped-def]
    target_words, source_words = draw(st.integers(0, 4)), draw(st.integers(1, 4))
    target_of = draw(st.lists(st.integers(NO_WORD, target_words - 1), max_size=7))
    source_of = draw(st.lists(st.integers(NO_WORD, source_words - 1), max_size=7))
    seed = draw(st.integers(0, 9))
    scores = np.random.default_rng(seed).normal(0, 3, (len(target_of), len(source_of)))
    weights = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    return weights, target_of, source_of, target_words, source_words


@settings(max_examples=50, deadline=None)
@given(cases())
def test_equals_plain_loops_and_rows_sum_to_one(case) -> None:  # type: ignore[no-untyped-def]
    words = to_words(*case)
    assert words.shape == (case[3], case[4])
    np.testing.assert_allclose(words, np.array(oracle(*case)).reshape(words.shape), atol=1e-12)
    np.testing.assert_allclose(words.sum(axis=1), 1, atol=1e-12)


@pytest.mark.parametrize(
    ("line", "pieces", "words"),
    [
        ("room. Then", "▁ro om . ▁Then", [0, 0, NO_WORD, 1]),
        ("„ Das “ ist ... ?!", "▁„ ▁Das ▁“ ▁ist ▁.. . ▁? !", [0, 1, 2, 3, 4, 4, 5, 5]),
        ("20% $5,", "▁20 % ▁$ 5 ,", [0, 0, 1, 1, NO_WORD]),
        ("don't I", "▁don ' t ▁ I", [0, NO_WORD, 0, 1, 1]),
        ("हिन्दी।", "▁ह ि न्द ी ।", [0, 0, 0, 0, NO_WORD]),
        ("... !", "▁ ... ▁ !", [0, 0, 1, 1]),
        ("a. b.", "▁a . ▁b.", [0, NO_WORD, 1]),
    ],
)
def test_punctuation_speaks_for_no_word_with_letters(line: str, pieces: str, words: list[int]) -> None:
    word_of_piece = np.cumsum([piece.startswith("▁") for piece in pieces.split()]) - 1
    written = tuple(piece.removeprefix("▁") for piece in pieces.split())
    encoded = EncodedWords(tuple(range(len(written))), tuple(line.split()), tuple(word_of_piece.tolist()), written)
    assert word_indices(encoded) == words


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        # Source: "Schwebe" "balken" </s>; target: "balance" "be" "am" </s>. Second row: (0.35, 0.4), rescaled by 0.75.
        (
            ([[0.5, 0.3, 0.2], [0.1, 0.8, 0.1], [0.6, 0.0, 0.4], [0, 0, 1]], [0, 1, 1, -1], [0, 1, -1], 2, 2),
            [[0.625, 0.375], [0.35 / 0.75, 0.4 / 0.75]],
        ),
        # a row that has its weight on the end of the sentence is uniform
        (([[0, 0, 1], [0.25, 0.75, 0]], [0, 1], [0, 1, -1], 2, 2), [[0.5, 0.5], [0.25, 0.75]]),
        # words without pieces
        (([[0.25, 0.75]], [1], [0, 2], 2, 3), [[1 / 3, 1 / 3, 1 / 3], [0.25, 0, 0.75]]),
        # empty sides
        ((np.full((1, 4), 0.25), [-1], [0, 1, 2, -1], 0, 3), np.zeros((0, 3))),
        ((np.ones((4, 1)), [0, 1, 2, -1], [-1], 3, 0), np.zeros((3, 0))),
        # float32 weights sum to 1 in float64
        ((np.full((1, 3000), 1 / 3000, np.float32), [0], range(3000), 1, 3000), np.full((1, 3000), 1 / 3000)),
    ],
)
def test_cases_by_hand(arguments: Any, expected: Any) -> None:
    found = to_words(*arguments)
    assert found.shape == np.shape(expected)
    np.testing.assert_allclose(found, expected, atol=1e-12)


@pytest.mark.parametrize(
    ("weights", "target_of", "source_of", "message"),
    [
        ([[1.0]], [0, 0], [0], r"shape \(1, 1\) for 2 target and 1 source pieces"),
        ([[1.0]], [1], [0], "word indices from 1 to 1, but there are 1 words"),
        ([[1.0]], [0], [-2], "word indices from -2"),
        ([[math.nan]], [0], [0], "finite"),
        ([[-0.1]], [0], [0], "negative"),
    ],
)
def test_disagreements_raise(weights: object, target_of: list[int], source_of: list[int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        to_words(weights, target_of, source_of, 1, 1)  # type: ignore[arg-type]


# ---------------------------------------------------------------------------------------- pieces of more than one word


def encoded(spans: list[tuple[int, int]], pieces: list[tuple[int, int]], of_piece: list[int]) -> EncodedWords:
    count = len(pieces)
    return EncodedWords((0,) * count, ("",) * len(spans), tuple(of_piece), ("",) * count, tuple(spans), tuple(pieces))


@st.composite
def sentences(draw: st.DrawFn) -> EncodedWords:
    """Words of up to three characters, and pieces that are cut anywhere, or hold nothing."""
    lengths = draw(LENGTHS)
    word_of_character = [word for word, length in enumerate(lengths) for _ in range(length)]
    spans, size = list(pairwise([0, *accumulate(lengths)])), sum(lengths)
    cuts = sorted(draw(st.lists(st.integers(0, size - 1), max_size=4)))
    pieces = list(zip([0, *cuts], [*cuts, size], strict=True))
    return encoded(spans, pieces, [word_of_character[begin] for begin, _ in pieces])


LENGTHS = st.lists(st.integers(1, 3), min_size=1, max_size=4)


def characters(sentence: EncodedWords) -> list[list[int]]:
    """The word of each character of each piece."""
    words = {place: word for word, span in enumerate(sentence.word_spans) for place in range(*span)}
    return [
        [words[place] for place in range(*span)] or [sentence.word_of_piece[piece]]
        for piece, span in enumerate(sentence.piece_spans)
    ]


@settings(max_examples=50)
@given(sentences(), sentences(), st.integers(0, 9))
def test_pieces_of_several_words_equal_plain_loops(target: EncodedWords, source: EncodedWords, seed: int) -> None:
    weights = np.random.default_rng(seed).dirichlet(np.ones(len(source.ids) + 1), len(target.ids) + 1)
    mass = np.zeros((len(target.words), len(source.words)))
    for t, of_target in enumerate(characters(target)):
        for s, of_source in enumerate(characters(source)):
            steps = len(of_target) * len(of_source)  # both pieces walked through from end to end, at one pace
            for step in range(steps):
                i, j = of_target[step // len(of_source)], of_source[step // len(of_target)]
                mass[i, j] += weights[t, s] / steps
    for i, row in enumerate(mass):
        mass[i] = row / row.sum() if row.sum() else 1 / len(row)
    np.testing.assert_allclose(to_words_of_parts(weights, parts(target), parts(source)), mass, atol=1e-12)


def test_a_sentence_without_words_has_no_parts() -> None:
    assert to_words_of_parts(np.ones((1, 1)), parts(encoded([], [], [])), parts(encoded([], [], []))).shape == (0, 0)

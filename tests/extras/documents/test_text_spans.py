"""Words and punctuation marks as units, and weights between them."""

from __future__ import annotations

import numpy as np
import pytest

from nmt.extras.documents.markup import extract
from nmt.extras.documents.text_spans import PieceWeights, to_units, units

UNITS = [
    ("Der Hund, der's 3-mal z.B. sah!", ["Der", "Hund", ",", "der's", "3-mal", "z.B", ".", "sah", "!"]),
    ("狗在 睡", ["狗", "在", "睡"]),
    ("यह एक", ["यह", "एक"]),
    ("  ", []),
]


@pytest.mark.parametrize(("text", "expected"), UNITS)
def test_units(text: str, expected: list[str]) -> None:
    assert [text[begin:end] for begin, end in units(text)] == expected


def test_units_end_at_tags_and_kept_words_are_one() -> None:
    marked = extract("Haus<b>tür</b> www.a.b/c.")
    spans = units(marked.text, marked)
    assert [marked.text[begin:end] for begin, end in spans] == ["Haus", "tür", "www.a.b/c", "."]


def test_weights_of_pieces_become_weights_of_units() -> None:
    # pieces "Hund|," and "狗睡" over units Hund , / 狗 睡; the last row and column are end-of-sentence
    weights = PieceWeights(np.array([[0.6, 0.2, 0.2], [0.1, 0.8, 0.1]], dtype=np.float32), ((0, 2),), ((0, 4), (4, 5)))
    assert to_units(weights, [(0, 1), (1, 2)], [(0, 4), (4, 5)]) == pytest.approx(np.array([[0.75, 0.25]] * 2))
    expected = np.array([[0.375, 0.375, 0.25], [0.0, 0.0, 0.0]])
    assert to_units(weights, [(0, 1), (5, 6)], [(0, 2), (2, 4), (4, 5)]) == pytest.approx(expected)

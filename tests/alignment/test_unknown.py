"""Unknown words copied from the source."""

from __future__ import annotations

import numpy as np
import pytest

from nmt.alignment.unknown import copied, with_copies
from nmt.data.tokenizer import EncodedWords

UNK = 1
SOURCE = EncodedWords(
    ids=(7, UNK, 8, 9, UNK),
    words=("Otto☃", "schläft", "Żółć"),
    word_of_piece=(0, 0, 1, 1, 2),
    written=("Otto", "☃", "sch", "läft", "Żółć"),
)


def looking_at(*positions: int) -> np.ndarray:
    weights_TS = np.full((len(positions), len(SOURCE.ids) + 1), 0.01, np.float32)
    weights_TS[np.arange(len(positions)), list(positions)] = 0.5
    weights_TS[:, -1] = 0.9  # the end of the sentence gets most, and is not a word
    return weights_TS


@pytest.mark.parametrize(("position", "text"), [(0, "Otto☃"), (1, "☃"), (2, "schläft"), (3, "schläft"), (4, "Żółć")])
def test_a_piece_that_is_unknown_itself_or_else_the_word(position: int, text: str) -> None:
    assert copied(SOURCE, [5, UNK, 6], looking_at(0, position, 2), unknown=UNK) == [text]


def test_each_unknown_token_looks_for_itself() -> None:
    assert copied(SOURCE, [UNK, 5, UNK], looking_at(4, 0, 2), unknown=UNK) == ["Żółć", "schläft"]
    assert copied(SOURCE, [5, 6], looking_at(4, 0), unknown=UNK) == []


def test_marks_are_replaced_in_order() -> None:
    assert with_copies("⁇ a ⁇ .", ["x", "y"]) == "x a y ."
    assert with_copies("a", []) == "a"
    assert with_copies("⁇ a ⁇", ["x"]) == "⁇ a ⁇"  # one of them is a word of the vocabulary: nobody knows which

"""Long texts in pieces."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt.data.segments import SourceLengths, split_long


def words(text: str) -> int:
    return len(text.split())


def pieces(text: str, usual: int, longest: int) -> list[str]:
    return [text[begin:end] for begin, end in split_long(text, words, SourceLengths(usual, longest))]


def test_what_is_usual_stays_whole() -> None:
    assert pieces("  Eins. Zwei. Drei. ", 3, 3) == ["Eins. Zwei. Drei."]


def test_a_longer_text_is_split_at_all_its_sentence_ends() -> None:
    assert pieces("Eins. Zwei drei. Vier!", 3, 9) == ["Eins.", "Zwei drei.", "Vier!"]


def test_a_sentence_is_split_only_where_it_is_longer_than_any() -> None:
    assert pieces("Eins, zwei, drei, vier. Ende.", 3, 4) == ["Eins, zwei, drei, vier.", "Ende."]
    assert pieces("Eins, zwei, drei, vier. Ende.", 3, 3) == ["Eins, zwei,", "drei, vier.", "Ende."]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a b c; d e, f g h", ["a b c;", "d e, f g h"]),  # a semicolon goes before a comma
        ("a b c, d e, f g h", ["a b c, d e,", "f g h"]),  # of two equally near to the middle the later one
        ("a b c – d e f g", ["a b c –", "d e f g"]),
        ("a, b c d e f g h i", ["a, b c d e", "f g h i"]),  # not at a comma that leaves too short a part
        ("a b c d e f", ["a b c", "d e f"]),
        ("一，二三四五，六", ["一，二三四五，六"]),  # one word for this count
    ],
)
def test_the_best_place_is_taken(text: str, expected: list[str]) -> None:
    assert pieces(text, 5, 5) == expected


def test_punctuation_splits_without_white_space_where_the_script_has_none() -> None:
    spans = split_long("一二三四，五六七八", len, SourceLengths(5, 5))
    assert spans == [(0, 5), (5, 9)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("aa bbbbbbbb c", ["aa", "bbbb", "bbbb", "c"]),  # white space first, however short a part it leaves
        ("www.ab/cd#efg", ["www", ".ab", "/cd", "#efg"]),
        ("一二三四五六七八", ["一二三四", "五六七八"]),
        ("😀😀👍🏽👍🏽", ["😀😀", "👍🏽👍🏽"]),  # a tone of skin is part of its emoji
        ("e\u0301" * 5, ["e\u0301" * 2, "e\u0301", "e\u0301" * 2]),  # an accent is part of its letter
        ("\u0301" * 6, ["\u0301" * 6]),  # nowhere
    ],
)
def test_a_word_longer_than_any_text_is_split(text: str, expected: list[str]) -> None:
    spans = split_long(text, len, SourceLengths(4, 4))
    assert [text[begin:end] for begin, end in spans] == expected


@given(st.text(alphabet="ab .,;:–!?。，\t\u00a0"), st.integers(1, 6), st.integers(0, 6))
def test_pieces_fit_and_lose_nothing(text: str, usual: int, more: int) -> None:
    lengths = SourceLengths(usual, usual + more)
    last = 0
    for begin, end in split_long(text, words, lengths):
        assert not text[last:begin].strip()
        assert text[begin:end] == text[begin:end].strip() != ""
        assert words(text[begin:end]) <= lengths.longest
        last = end
    assert not text[last:].strip()

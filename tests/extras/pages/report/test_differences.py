"""Words that differ."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt.extras.pages.report.differences import marked

MARKED = [
    ("the dog sleeps", "the cat sleeps", ("the ", "dog", " sleeps")),
    ("the dog sleeps", "the dog sleeps", ("the dog sleeps",)),
    ("the dog", "", ("", "the dog")),
    ("", "the dog", ("",)),
    ("a b c d", "b d", ("", "a", " b ", "c", " d")),
    ("a b", "a b c", ("a b",)),
    ("x a", "a y", ("", "x", " a")),
]


@pytest.mark.parametrize(("text", "other", "expected"), MARKED)
def test_what_the_other_has_not_is_marked(text: str, other: str, expected: tuple[str, ...]) -> None:
    assert marked(text, other) == expected


WORDS = st.lists(st.sampled_from(["a", "b", "c", "dd"]), max_size=8)


@given(WORDS, WORDS)
def test_the_parts_are_the_text_and_what_is_not_marked_is_in_the_other(text: list[str], other: list[str]) -> None:
    parts = marked(" ".join(text), " ".join(other))
    assert "".join(parts) == " ".join(text)
    assert all(parts[1::2])
    left = iter(other)  # unmarked words stand in the other, in their order
    assert all(word in left for word in "".join(parts[0::2]).split())
    assert len(" ".join(parts[1::2]).split()) + len("".join(parts[0::2]).split()) == len(text)

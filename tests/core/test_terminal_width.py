"""Text in the cells of a terminal."""

from __future__ import annotations

import pytest

from nmt.core.terminal_width import clusters, cut, isolated, printable, width


@pytest.mark.parametrize(
    ("text", "cells"),
    [
        ("", 0),
        ("Hund", 4),
        ("日本語", 6),
        ("e\u0301", 1),  # e and its accent
        ("한국", 4),
        ("שלום", 4),
        ("\U0001f469\u200d\U0001f680", 2),  # woman, joiner, rocket: one astronaut
        ("\U0001f44d\U0001f3fd", 2),  # a thumb and its skin
        ("a\u200bb", 2),
        ("ｶﾅ", 2),  # half width
    ],
)
def test_width(text: str, cells: int) -> None:
    assert width(text) == cells


def test_marks_stay_with_what_they_are_on() -> None:
    assert list(clusters("ne\u0301n")) == ["n", "e\u0301", "n"]
    assert list(clusters("\u0301a")) == ["\u0301", "a"]


@pytest.mark.parametrize(
    ("text", "cells", "shown"),
    [
        ("Hund", 4, "Hund"),
        ("Hunde", 4, "Hun…"),
        ("日本語", 5, "日本…"),
        ("日本語", 4, "日…"),
        ("ee\u0301e\u0301e", 3, "ee\u0301…"),
        ("a\x1b[31m\nb", 20, "a\ufffd[31m\ufffdb"),
        ("\u202eevil", 9, "\ufffdevil"),
    ],
)
def test_cut(text: str, cells: int, shown: str) -> None:
    assert cut(text, cells) == shown
    assert width(cut(text, cells)) <= cells


def test_only_what_runs_from_right_to_left_is_isolated() -> None:
    assert isolated("Hund 3") == "Hund 3"
    assert isolated("שלום") == "\u2068שלום\u2069"
    assert width(isolated("שלום")) == 4
    assert printable("שלום\u0085") == "שלום\ufffd"

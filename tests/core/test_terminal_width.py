"""Text in the cells of a terminal."""

from __future__ import annotations

import pytest
from rich.cells import cell_len

from nmt.core.terminal_width import clusters, cut, isolated, printable


def test_marks_stay_with_what_they_are_on() -> None:
    assert clusters("ne\u0301n") == ["n", "e\u0301", "n"]
    assert clusters("\u0301a") == ["\u0301", "a"]
    assert clusters("\U0001f469\u200d\U0001f680\U0001f44d\U0001f3fd") == [
        "\U0001f469\u200d\U0001f680",
        "\U0001f44d\U0001f3fd",
    ]


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
    assert cell_len(cut(text, cells)) <= cells


def test_only_what_runs_from_right_to_left_is_isolated() -> None:
    assert isolated("Hund 3") == "Hund 3"
    assert isolated("שלום") == "\u2068שלום\u2069"
    assert cell_len(isolated("שלום")) == 4
    assert printable("שלום\u0085") == "שלום\ufffd"

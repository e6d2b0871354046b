"""Alignments in a notebook."""

from __future__ import annotations

import re

import numpy as np
import pytest

from nmt.alignment.formats import Alignment
from nmt.alignment.notebook import MOST_TOKENS
from tests.core.test_notebook import HARD, page_of, seen


def test_an_alignment_is_a_heatmap_of_its_weights() -> None:
    sources, targets = HARD[:3], HARD[3:]
    weights_TS = np.array([[0.25, 0.75, 0.0], [0.125, 0.25, 0.625]])
    alignment = Alignment(tuple(sources), tuple(targets), ((1, 0), (2, 1)), weights_TS)
    page = page_of(alignment)
    assert page.heads() == seen([*sources, *targets])
    cells = [(attributes, text) for tag, attributes, text in page.cells if tag == "td" and "title" in attributes]
    assert len(cells) == 6
    for (attributes, text), (row, column) in zip(cells, np.ndindex(2, 3), strict=True):
        weight, linked = weights_TS[row, column], (column, row) in alignment.links
        pair = f"{sources[column]} – {targets[row]}"
        assert attributes["title"] == f"{seen([pair])[0]}: {weight:.3f}{', linked' if linked else ''}"
        (alpha,) = re.findall(r"background: rgba\(\d+, \d+, \d+, ([\d.]+)\)", attributes["style"])
        assert float(alpha) == pytest.approx(weight, abs=0.0051)
        assert text == ("•" if linked else "")


def test_of_subwords_no_links_are_shown_and_a_blank_side_has_no_cells() -> None:
    page = page_of(Alignment(("ab",), ("c",), ((0, 0),), np.array([[0.5, 0.5]]), "subword", ("a", "b"), ("c",)))
    assert page.heads() == ["a", "b", "c"]
    assert "•" not in page.text
    assert not any("linked" in attributes.get("title", "") for _, attributes in page.tags)
    assert page_of(Alignment((), ("c",), (), np.zeros((1, 0)))).heads() == ["c"]
    assert page_of(Alignment((), (), (), np.zeros((0, 0)))).heads() == []


def test_of_long_sides_the_first_words_are_shown() -> None:
    count = MOST_TOKENS + 1
    words = tuple(f"w{number}" for number in range(count))
    page = page_of(Alignment(words, words[:2], (), np.full((2, count), 1 / count)))
    assert page.heads() == [*words[:MOST_TOKENS], *words[:2]]
    assert page.text.endswith(f"the first {MOST_TOKENS} of {count} on the source side")

"""Counts against plain loops."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt.data.filters import DROPPED, Verdict
from nmt.data.report import LineCount
from nmt.data.store import Ragged
from nmt.data.tally import PERCENTILES, CorpusTally, LineTally, SideTally
from nmt.data.vocabulary import UNK


@given(st.lists(st.lists(st.sampled_from(list(Verdict)), max_size=15), max_size=4))
def test_verdicts_are_counted_with_their_first_ten_lines(blocks: list[list[Verdict]]) -> None:
    tally, verdicts = CorpusTally("a", 2.0), [verdict for block in blocks for verdict in block]
    first = 1
    for block in blocks:
        near = np.array([verdict is Verdict.KEPT for verdict in block], bool)
        tally.add(first, np.array(block, np.uint8), near)
        first += len(block)

    def lines(verdict: Verdict) -> LineCount:
        found = [number for number, each in enumerate(verdicts, 1) if each is verdict]
        return LineCount(pairs=len(found), first_lines=tuple(found[:10]))

    report = tally.report()
    assert (report.name, report.weight, report.pairs) == ("a", 2.0, len(verdicts))
    assert report.kept == tally.kept == verdicts.count(Verdict.KEPT)
    assert report.near_duplicates == lines(Verdict.KEPT)
    assert report.dropped == {verdict.label: lines(verdict) for verdict in DROPPED}


@given(st.lists(st.lists(st.lists(st.integers(0, 3), max_size=9), max_size=5), max_size=4))
def test_tokens_are_counted_with_the_percentiles_of_lengths(blocks: list[list[list[int]]]) -> None:
    tally = SideTally(99)
    for rows in blocks:
        tally.add(Ragged.of([np.array(row, np.int64) for row in rows]), words=3)
    tokens = [token for rows in blocks for row in rows for token in row]
    report = tally.report(rare=5)
    assert (report.vocabulary, report.rare, report.tokens, report.words) == (99, 5, len(tokens), 3 * len(blocks))
    assert report.unknown == tally.unknown == tokens.count(UNK) / max(len(tokens), 1)
    assert report.tokens_per_word == len(tokens) / max(3 * len(blocks), 1)
    lengths = [len(row) for rows in blocks for row in rows] or [0]
    expected = [np.percentile(lengths, percent, method="inverted_cdf") for percent in PERCENTILES]
    assert list(report.lengths) == ["least", "25%", "median", "75%", "95%", "99%", "most"]
    assert list(report.lengths.values()) == expected


@pytest.mark.parametrize(("repeats", "step"), [(1, 1), (1000, 3)])
def test_lines_with_several_sentences_or_no_letters_are_counted_in_a_sample(repeats: int, step: int) -> None:
    lines = ["Ein Hund. Noch einer.", "3, 5 %", "z. B. er", ""] * repeats
    tally, sample = LineTally("de"), lines[::step]
    tally.add(lines)
    assert tally.lines == len(sample)
    assert tally.several == sample.count(lines[0])
    assert tally.letterless == sample.count(lines[1]) + sample.count("")

"""Formats of numbers, learnt from pairs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nmt.extras.documents.number_formats import learn, rewritten, written
from tests.workflows.runs import loaded

GERMAN = [("1.000 Euro für 3,5 m", "1,000 euros for 3.5 m")] * 3


@pytest.mark.parametrize(
    ("pairs", "formats"),
    [
        (GERMAN, {".000": ",", ",0": ".", ",000": "."}),
        ([(target, source) for source, target in GERMAN], {",000": ".", ".0": ",", ".000": ","}),
        ([("3,5", "3.5")] * 3, {",0": ".", ",000": ".", ".000": ","}),  # what follows from it
        ([("3,5", "3,5")] * 3, {",0": ","}),
        ([("3,5", "3.5"), ("1,500", "1,500")] * 3, {",0": ".", ",000": ",", ".000": ","}),
        (GERMAN[:2], {}),  # too few
        ([*GERMAN, *[("Version 3,5", "version 3,5")] * 3], {".000": ","}),  # half of them stay
        ([("1.000", text) for text in ("1 000", "1 000", "1\u00a0000")], {".000": " "}),
        ([("1.000", "1,001"), ("3,5", "35"), ("2.5.1", "2,5,1"), ("1.2.2026", "1/2/2026")] * 9, {}),
        ([("10'000,25 CHF", "CHF 10,000.25")] * 3, {"'000": ",", ",0": ".", ",000": ".", ".000": ","}),
    ],
)
def test_separators_that_change_are_learnt(pairs: list[tuple[str, str]], formats: dict[str, str]) -> None:
    assert learn(pairs) == formats


@pytest.mark.parametrize(
    ("source", "copied", "expected"),
    [
        ("25.300", "25.300!", "25,300!"),
        ("1.500.000,25 €", "€1.500.000,25", "€1,500,000.25"),
        ("0,75m", "0,75m", "0.75m"),
        ("3,5", "3.5 and 7,5", "3.5 and 7,5"),  # not of the source
        ("1.000.000.000", "1.000.000.000 and 1.000.000,000", "1,000,000,000 and 1,000,000,000"),
        ("12,345 von 0,125", "12345 of 0125", "12.345 of 0.125"),  # the model has lost the points
        ("25.300 €", "25300 or 253.00", "25300 or 25,300"),
        ("1.234.567,89", "1.234.567.89", "1,234,567.89"),
        ("1,5 von 15 oder 15", "1,5 of 15", "1.5 of 15"),
        ("3,14 und 31,4", "3,14, 31,4, 314", "3.14, 31.4, 314"),
        *[(same, same, same) for same in ("089 123", "1,5:2,5", "1.000x2.000", "10.100.1.1 in 101.0011")],
        *[
            (same, same, same)
            for same in ("192.168.100.200", "10.100.1.1", "1.2.3", "21.11.2026", "1,5,7", "v1.000", "7.30")
        ],
        *[(same, same, same) for same in ("1234.567.890", "12.000:30", "a.b/1,5.html")],
    ],
)
def test_copied_numbers_are_written_anew(source: str, copied: str, expected: str) -> None:
    assert rewritten(source, copied, learn(GERMAN)) == expected
    assert rewritten(source, copied, {}) == copied


def test_both_numbers_of_a_range_are_written_anew() -> None:
    assert written("1.000–2.500,5", learn(GERMAN)) == "1,000–2,500.5"


def test_a_run_knows_the_formats_of_its_pairs(numbered: Path) -> None:
    assert json.loads((numbered / "run" / "number-formats.json").read_text(encoding="utf-8")) == {
        ",0": ".", ",000": ".", ".000": ",",
    }  # fmt: skip
    translator = loaded(numbered)
    found = translator.translate("Hund 17,5 und 4.5.6")
    assert "17.5" in found.text
    assert "17,5" not in found.text
    score = translator.score("Hund 17,5 und 4.5.6", found.text)
    assert (found.log_prob, found.tokens) == (pytest.approx(score.log_prob, abs=1e-3), score.tokens[:-1])
    text = loaded(numbered, "search.markup=true").translate("Hund <b>17,5</b> und 4.5.6").text
    assert ("17.5" in text, "4.5.6" in text) == (True, True)
    text = loaded(numbered, "search.numbers=false", "search.markup=true").translate("Hund 17,5").text
    assert "17,5" in text

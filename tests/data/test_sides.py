"""Doubts about corpora with planted faults; the corpus that ships has none."""

from __future__ import annotations

import codecs
from pathlib import Path

import pytest

from nmt.data.sides import doubts
from tests.data.conftest import Pairs

CORPUS = Path(__file__).resolve().parents[2] / "data" / "de-en"


@pytest.fixture(scope="module")
def pairs() -> Pairs:
    source, target = ((CORPUS / f"train.{side}").read_text(encoding="utf-8").splitlines() for side in ("de", "en"))
    return list(zip(source, target, strict=True))[:2000]


def test_a_usual_corpus_raises_no_doubts(pairs: Pairs) -> None:
    assert doubts(pairs) == doubts(pairs[:100]) == []
    assert doubts([("", ""), ("猫", "cat")] * 200) == []


def test_swapped_pairs_are_counted(pairs: Pairs) -> None:
    planted = [(target, source) if row % 50 == 0 else (source, target) for row, (source, target) in enumerate(pairs)]
    (doubt,) = doubts(planted)
    assert doubt.startswith("2.0% of its pairs, by a sample, look swapped; nmt languages")


def test_another_language_is_noticed(pairs: Pairs) -> None:
    for side in (0, 1):
        planted = [list(pair) for pair in pairs]
        for row in range(0, len(pairs), 10):
            planted[row][side] = codecs.encode(planted[row][side], "rot13")  # a language of its own
        found = doubts([(source, target) for source, target in planted])
        assert any(f"have a {('source', 'target')[side]} unlike the others" in doubt for doubt in found)


def test_html_entities_are_counted(pairs: Pairs) -> None:
    planted = [(f"{s} &quot;", t) if row % 80 == 0 else (f"{s} & AT&T;", t) for row, (s, t) in enumerate(pairs)]
    (doubt,) = doubts(planted)
    assert doubt.startswith("1.2% of its pairs, by a sample, have HTML entities such as &quot;, and unescape: true")


@pytest.mark.parametrize(("true", "read"), [("utf-8", "latin-1"), ("utf-8", "cp1252"), ("cp1252", "latin-1")])
def test_a_wrong_encoding_is_noticed(pairs: Pairs, true: str, read: str) -> None:
    planted = [(f"{source} – „für“ «NÃO», Â, SEÑOR", target) for source, target in pairs]
    assert not [doubt for doubt in doubts(planted) if "encoding" in doubt]
    planted = [(source.encode(true, "ignore").decode(read, "ignore"), target) for source, target in planted]
    assert "100.0% of its pairs, by a sample, were once read in a wrong encoding (Ã¤ for ä); convert the" in str(
        doubts(planted)
    )

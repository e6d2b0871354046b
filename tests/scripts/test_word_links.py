"""Links without a model, on the corpus that ships and on one whose lexicon is known."""

from __future__ import annotations

from pathlib import Path

import pytest

from nmt.alignment.error_rate import score
from nmt.alignment.formats import parse_pharaoh, read_gold
from scripts.word_links import main

DATA = Path(__file__).parents[2] / "data" / "de-en"


def test_links_are_few_and_mostly_right(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(DATA / "valid.de"), str(DATA / "valid.en")]) == 0
    found = score(list(map(parse_pharaoh, capsys.readouterr().out.splitlines())), read_gold(DATA / "valid.align"))
    assert found.precision > 0.93
    assert found.recall > 0.6


def test_a_known_lexicon_is_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Where case and punctuation do not count, and a blank line keeps its place."""
    (tmp_path / "x.de").write_text("Hund!\nKatze Hund\n\nVogel katze.\nhund Vogel\n", encoding="utf-8")
    (tmp_path / "x.en").write_text("dog\nthe dog, cat\n\nCat bird\nbird dog.\n", encoding="utf-8")
    assert main([str(tmp_path / "x.de"), str(tmp_path / "x.en")]) == 0
    assert capsys.readouterr().out == "0-0\n0-2 1-1\n\n0-1 1-0\n0-1 1-0\n"


def test_files_that_do_not_go_together_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "x.de").write_text("Hund\nKatze\n", encoding="utf-8")
    (tmp_path / "x.en").write_text("dog\n", encoding="utf-8")
    assert main([str(tmp_path / "x.de"), str(tmp_path / "x.en")]) == 2
    assert capsys.readouterr().err == f"error: {tmp_path / 'x.de'} has 2 lines but {tmp_path / 'x.en'} has 1\n"
    assert main([str(tmp_path / "y.de"), str(tmp_path / "x.en")]) == 2
    assert capsys.readouterr().err == f"error: {tmp_path / 'y.de'}: no such file\n"

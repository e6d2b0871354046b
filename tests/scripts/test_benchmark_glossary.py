"""The measurement of glossaries: the terms that references have, and a run on a tiny model."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from nmt.extras.documents.glossary import Term
from tests.workflows.runs import trained, write_corpus

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

import benchmark_glossary  # noqa: E402

__all__ = ["trained"]


def test_a_term_is_a_word_whose_references_always_have_a_linked_word() -> None:
    sources = ["Der Hund bellt.", "Ein Hund, eine Katze.", "Katze und Hase."]
    references = ["The dog barks.", "A hound, a cat.", "A kitten and a rabbit."]
    targets = {"Hund": ("dog", "hound", "mutt"), "Katze": ("cat",), "Hase": ("rabbit",), "Ein": ("A",)}
    assert benchmark_glossary.gold_glossary(sources, references, targets).terms == (
        Term("Hund", ("dog", "hound")),
        Term("Hase", ("rabbit",)),
    )


def test_a_glossary_of_the_training_pairs_has_their_frequent_nouns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(benchmark_glossary, "MIN_NOUNS", 2)
    lines = ["Der Hund bellt.", "Ein Hund schläft, die Katze.", "die Katze.", "Hund, Maus.", "Die Maus, Hund."]
    assert benchmark_glossary.frequent_nouns(lines) == {"Hund", "Katze"}  # Maus once behind a word
    pairs = [("Der Hund bellt", "The dog barks"), ("Der Hund schläft", "The hound sleeps"), ("Der Tag", "The day")]
    pairs = [*pairs, ("Ein Hund schläft", "A dog sleeps"), ("Ein Tag", "A day")] * 10
    found = dict(benchmark_glossary.linked(pairs, 0.1))
    assert found["Hund"] == ("dog", "hound")
    assert found["Tag"] == ("day",)


def test_a_measurement_prints_a_line_for_each_figure(
    trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_corpus(tmp_path)
    files = [str(tmp_path / name) for name in ("test.de", "test.en", "train.de", "train.en")]
    monkeypatch.setattr(sys, "argv", ["x", str(trained / "run"), *files, "--max-loss", "100,1"])
    benchmark_glossary.main()
    figures = {each["name"]: each["value"] for each in map(json.loads, capsys.readouterr().out.splitlines())}
    assert figures["occurrences"] >= figures["terms"] > 0
    assert figures["max_loss 100: term recall"] > figures["without: term recall"]
    least, most = (figures[f"max_loss 100: gain in BLEU, {end}"] for end in ("least", "most"))
    assert least <= figures["max_loss 100: BLEU"] - figures["without: BLEU"] <= most
    assert {f"{name}: {each}" for name in ("without", "max_loss 1") for each in ("BLEU", "time")} <= figures.keys()

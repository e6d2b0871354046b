"""Pairs with a side in another language: the decision by hand, the command, and what py3langid finds."""

from __future__ import annotations

import importlib.util
import random
from collections.abc import Mapping
from pathlib import Path

import pytest

from nmt.core.installation import install_command
from nmt.extras.corpus.languages import find_languages
from nmt.extras.corpus.languages.identify import Scores, fault, language
from tests.workflows.runs import Command, in_process

ROOT = Path(__file__).resolve().parents[3]
HAS_MODEL = importlib.util.find_spec("py3langid") is not None


def scores(**given: float) -> Mapping[str, float]:
    return {"de": -9.0, "en": -9.0, "es": -9.0, "zxx": -9.0} | given


@pytest.mark.parametrize(
    ("source", "target", "found"),
    [
        (scores(de=-3), scores(en=-3), None),
        (scores(en=-3), scores(de=-3), "swapped"),
        (scores(de=-4, en=-3), scores(de=-3, en=-5), "swapped"),  # the sides together
        (scores(es=-1, en=-5), scores(de=-3), "source"),  # a third language
        (scores(es=-3), scores(en=-3), "source"),
        (scores(de=-3), scores(es=-3), "target"),
        (scores(en=-3), scores(en=-3), "source"),  # not translated
        (scores(de=-5, es=-3), scores(en=-3), None),  # within the margin
        (scores(de=-5.1, es=-3), scores(en=-3), "source"),
        (scores(zxx=-1), scores(en=-3), None),
        (scores(), scores(), None),
    ],
)
def test_a_fault_is_a_margin_between_languages(source: Scores, target: Scores, found: str | None) -> None:
    assert fault(source, target, ("de", "en"), 2.0) == found


def test_a_text_without_letters_is_in_no_language() -> None:
    assert (language(scores()), language(scores(en=-3))) == ("zxx", "en")


class ByFirstWord:
    """A model of texts that begin with the code of their language."""

    languages = frozenset({"de", "en", "es"})

    def scores(self, text: str) -> Scores:
        return scores(**{text[:2]: -1.0} if text[:2] in self.languages else {})


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    pairs = [(f"de {n}", f"en {n}") for n in range(20)]
    pairs[3], pairs[5], pairs[8], pairs[9] = ("en x", "de\tx"), ("es x", "en 5"), ("de 8", "es 8"), ("", "12")
    (tmp_path / "x.de").write_text("".join(f"{source}\n" for source, _ in pairs), encoding="utf-8")
    (tmp_path / "x.en").write_text("".join(f"{target}\n" for _, target in pairs), encoding="utf-8")
    return tmp_path


@pytest.fixture
def languages(capsys: pytest.CaptureFixture[str]) -> Command:
    return in_process(capsys, "languages")


SUMMARY = (
    "pairs     3 of 20 are not de and en: 1 swapped, 1 with a source in another language, "
    "1 with a target in another language"
)


def test_a_report_and_the_pairs(here: Path, languages: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(find_languages, "Identifier", ByFirstWord)
    report = languages("--source", "x.de", "--target", "x.en").stdout.splitlines()
    assert sorted(report[0].removeprefix("source    ").split(", ")) == ["de 85.0%", "en 5.0%", "es 5.0%", "zxx 5.0%"]
    examples = ["swapped   en: en x | de: de\tx", "source    es: es x | en: en 5", "target    de: de 8 | es: es 8"]
    assert report[2:] == [SUMMARY, *examples]
    faults = languages("--source", "x.de", "--target", "x.en", "--format", "faults")
    rows = ["4\tswapped\ten\tde\ten x\tde x", "6\tsource\tes\ten\tes x\ten 5", "9\ttarget\tde\tes\tde 8\tes 8"]
    assert faults.stdout.splitlines() == rows
    assert faults.stderr.splitlines() == [SUMMARY]
    assert languages("--source", "x.de", "--target", "x.en", "--format", "kept", "-o", "kept.tsv").code == 0
    kept = Path("kept.tsv").read_text(encoding="utf-8").splitlines()
    assert kept == [f"de {n}\ten {n}" if n != 9 else "\t12" for n in range(20) if n not in (3, 5, 8)]
    of_pairs = languages("--tsv", "kept.tsv", "--expected", "de_AT,en-GB")
    assert of_pairs.stdout.splitlines()[2:] == [SUMMARY.replace("3 of 20", "0 of 17").replace("1 ", "0 ")]
    turned = languages("--source", "x.de", "--target", "x.en", "--expected", "en,de", "--format", "faults").stdout
    assert len([line for line in turned.splitlines() if "swapped" in line]) == 16


def test_the_languages_are_guessed_where_no_ending_names_them(
    here: Path, languages: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(find_languages, "Identifier", ByFirstWord)
    Path("x.de").rename("x.src")
    assert languages("--source", "x.src", "--target", "x.en").stdout.splitlines()[2] == SUMMARY
    unclear = languages("--source", "x.src", "--target", "x.src").error
    assert unclear.endswith("the languages are not clear; name them with --expected, such as de,en")
    for named in ("", "de", "de,xx", "de,en,es"):
        error = languages("--source", "x.src", "--target", "x.en", "--expected", named).error
        assert error.startswith(f"--expected {named}: is not two of the languages that py3langid knows, source first")
    assert languages("--source", "none", "--target", "x.en").error == "none: no such file"
    assert languages("--source", "x.src", "--target", "x.en", "-o", "x.en").error.startswith("--output x.en: ")


@pytest.mark.skipif(HAS_MODEL, reason="the extra language-id is installed")
def test_without_the_extra_it_says_what_to_install(here: Path, languages: Command) -> None:
    error = languages("--source", "x.de", "--target", "x.en").error
    assert error == f"py3langid is not installed: {install_command('language-id')}"


@pytest.mark.skipif(not HAS_MODEL, reason="needs the extra language-id")
def test_what_is_found_among_german_and_english(tmp_path: Path, languages: Command) -> None:
    sides = [(ROOT / f"data/de-en/test.{end}").read_text(encoding="utf-8").splitlines()[:200] for end in ("de", "en")]
    wrong = random.Random(1).sample(range(200), 20)
    for number, row in enumerate(wrong):
        if number % 2:
            sides[0][row], sides[1][row] = sides[1][row], sides[0][row]
        else:
            sides[number % 4 // 2][row] = "El perro negro corre por la playa con una pelota."
    for side, end in zip(sides, ("de", "en"), strict=True):
        (tmp_path / f"x.{end}").write_text("".join(f"{line}\n" for line in side), encoding="utf-8")
    files = ("--source", tmp_path / "x.de", "--target", tmp_path / "x.en", "--format", "faults")
    found = [
        {int(line.split("\t")[0]) - 1 for line in languages(*files, "--margin", margin).stdout.splitlines()}
        for margin in ("2", "4")
    ]
    assert found[1] == set(wrong) <= found[0]
    assert len(found[0]) <= 22

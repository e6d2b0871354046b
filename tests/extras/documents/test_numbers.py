"""Numbers that a translation has lost, and what a model that has learnt nothing is made to say."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from nmt.extras.documents import terminology
from nmt.extras.documents.glossary import Glossary
from nmt.extras.documents.numbers import lost_items, may_count
from nmt.extras.documents.terminology import GlossaryTerminology
from nmt.search.hypothesis import Hypothesis
from nmt.translator.translator import Candidate, EncodedSentences, Translator
from tests.workflows.runs import loaded


@pytest.mark.parametrize(
    ("source", "translation", "lost"),
    [
        ("Er kam 1492.", "He came at 2:30.", ["1492"]),
        ("1.000,50 Euro um 8.30", "1,000.50 euros at 8:30", []),
        ("3,14 von 1.000.000", "31,4 of 1000000", ["3,14"]),
        ("Werte 1,2,3,4", "values 1,23,4", ["1,2,3,4"]),
        ("1.234.567,5 am 21.11.26 um 8.30.15", "1234567.5 on 21.11.26 at 8:30:15", []),
        ("10 lakh are 10,00,000", "10 Lakh sind 1.000.000", []),
        ("im 19. Jahrhundert, in den 80ern", "in the 19th century, in the 80s", []),
        ("Drücken Sie F11 oder A4", "Press F11", ["A4"]),
        ("3 mal 3", "3 times 2", ["3"]),
        ("von 2010-2012", "from 2010 to 2012", []),
        ("siehe https://a.org/1.html oder x1@b.org", "see https://a.org/1.html", ["x1@b.org"]),
        ("Hund", "dog 7", []),
        ("3 Hunde", "dogs", []),
        ("عام ١٤٩٢", "in 1492", []),
        (f"{'9' * 5000} Hunde", "dogs", ["9" * 5000]),
        ("13 Hunde", "dogs", ["13"]),
        ("我有42只狗，13只猫。", "I have 42 dogs.", ["13"]),
        ("42 dogs, 13 cats", "42只狗，3只猫", ["13"]),
        ("彼は１２歳", "He is 13", ["１２"]),
        ("买A4纸", "Buy paper", ["A4"]),
        ("و15 امرأة", "15 women", []),
        ("제42장", "chapter 42", []),
        ("3月5日有5万人", "50,000 people on 5 March", []),
        ("50,000 people on 5 March", "3月5日有5万人", []),
        ("42 dogs and 5,000,000 cats", "500万只猫", ["42"]),
        ("3월 15일 12시 30분, 15 만 명", "150,000 people, March 15, 12:30", []),
        ("12:30", "12時30分", []),
        ("كان ١٬٢٣٤٫٥ دولار", "It was 1,234.5 dollars", []),
        ("10\u202f000 Mann am 21.11.2026", "10,000 men on November 21, 2026", []),
        ("on 11/21/2026", "am 21.11.2026", []),
        ("am 23.12.2026", "on 12.22.2026", ["23"]),
        ("Version 2.13.0", "version 2.14.0", ["2.13.0"]),
        ("two dogs and 1 cat", "2 Hunde und eine Katze", ["1"]),
        ("1.000.000 m²", "1,000", ["1.000.000"]),
        ("½ Liter, 1½ und 2 ¾", "12 litres, 1½ and 2¾", ["½"]),
        ("½ Liter", "½ litre", []),
        ("½ Liter", "a litre", ["½"]),
        ("bei -12 Grad", "at 12 degrees", ["-12"]),
        ("bei −12 Grad", "at minus 12 degrees", []),
        ("bei minus 12 Grad", "at -12 degrees", []),
        ("Seiten 5-10, 5–10", "pages 5 to 10 and 5 to 10", []),
    ],
)
def test_what_is_lost(source: str, translation: str, lost: list[str]) -> None:
    assert [source[slice(*each.span)] for each in lost_items(source, translation)] == lost


def test_words_are_numbers_in_a_known_language() -> None:
    found = [lost_items("3 Hunde", text, (None, "en")) for text in ("three dogs", "Three dogs", "two dogs", "dogs")]
    assert [len(lost) for lost in found] == [0, 0, 1, 1]
    for source in ("1 Hund", "1. Mai", "1, eine", "<b>1</b> Hund"):
        assert not lost_items(source, "a dog", (None, "en-GB"))
    for source in ("wenn x = 1 ist", "x ≥1", "0 Hunde", "Wert 0"):  # no article is meant
        assert len(lost_items(source, "a dog", (None, "en"))) == 1
    for source, translation in (
        ("7, wenn 1 Hund bellt, 0", "0, 7 a dog"), ("1-2 Tage", "one to two days"),
        ("am 5. Mai 2020, 1 Woche danach", "on May 5, 2020, a week later"),
    ):  # fmt: skip
        assert lost_items(source, translation, (None, "en")) == []
    assert lost_items("1, 3 und 5 sind", "one, three and five are") == []
    assert not lost_items("0 Hunde", "zero dogs", (None, "en"))
    # a word that translates a word does not stand for digits
    for translation, count in (("two dogs in 2", 0), ("two dogs", 1), ("2 dogs in two", 0), ("two in two", 0)):
        assert len(lost_items("zwei Hunde in 2", translation, ("de", "en"), said=True)) == count
    assert lost_items("عام ١٤٩٢", "in the year")[0].term.targets == ("1492", "١٤٩٢")


@pytest.mark.parametrize(
    ("languages", "source", "translation", "count"),
    [
        (("de", "en"), "die in Schritt 1 gewählten", "selected again", 1),  # without a word that may stand for it
        (("de", "en"), "ein Hund in Zelle 1", "a dog in the cell", 1),  # "a" translates "ein"
        (("de", "en"), "ein Hund und 1 Katze", "a dog and a cat", 0),
        (("de", "en"), "1 Hund und 1 Katze", "a dog and the cat", 1),
        (("de", "en"), "um 1 erhöht, es tritt ein.", "was raised. Once more", 1),
        (("de", "en"), "Es tritt ein. 1 Hund", "It happens. A dog", 0),  # the prefix of a verb
        (("en", "de"), "1 dog", "den ersten Hund", 0),
        (("es", "fr"), "un perro en 1", "un chien dans la cellule", 1),
        (("cs", "en"), "1 pes", "a dog", 0),
        (("de", "en"), "Nur 1 Mal.", "Only once.", 0),
        (("en", "es"), "at 1", "a la una", 0),
        (("cs", "en"), "prvního května", "May 1", 0),
    ],
)
def test_a_word_for_one_stands_for_digits_unless_it_translates_another(
    languages: tuple[str, str], source: str, translation: str, count: int
) -> None:
    assert len(lost_items(source, translation, languages)) == count


@pytest.mark.parametrize(
    ("language", "text", "may"),
    [
        ("de", "Ein Hund, einmal", False), ("de", "um halb drei", True), ("de", "Einundzwanzig Hunde", True),
        ("de", "Ludwig XIV. kam", True), ("de", "Mitternacht", True), ("en", "I see a dog", False),
        ("en", "the twelfth dog", True), ("es", "veintidós perros", True), ("fr", "le onzième chien", True),
        ("de", "Elisabeth I.", True), ("de", "Anzahl der m²", True), ("de", "Schritt ①", True), ("de", "三只狗", True),
        ("es", "Es la una", False), ("cs", "čtyřech", True), ("fr", "un chien", False),
        ("tr", "bir", True), (None, "dog", True),
    ],
)  # fmt: skip
def test_a_text_may_have_a_number_without_digits(language: str | None, text: str, may: bool) -> None:
    assert may_count(text, language) is may


def test_a_number_may_be_written_as_a_time_or_with_other_separators() -> None:
    def ways(source: str) -> list[tuple[str, ...]]:
        return [each.term.targets for each in lost_items(source, "then")]

    assert ways("um 6.52 Uhr") == [("6.52", "6,52", "6:52")]
    assert ways("kl. 6.52") == [("6.52", "6,52", "6:52")]
    assert ways("6.52 Meter") == [("6.52", "6,52")]
    learnt = lost_items("4.99, 3,5", "then", formats={",0": "."})
    assert [each.term.targets for each in learnt] == [("4.99",), ("3,5", "3.5")]
    assert ways("1.000,50 und 3,25 und 7:30") == [("1.000,50", "1,000.50"), ("3,25", "3.25"), ("7:30",)]
    assert ways("Version 7.4.10 in 163.25") == [("7.4.10",), ("163.25", "163,25")]


def test_other_numbers_count_against_a_translation(numbered: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = {"dog 5, 42": -1.0, "dog 42 42": -2.0, "dog 42": -3.0, "dog 4": -0.1}
    candidates = [Candidate(text, Hypothesis((5,), log_prob, log_prob)) for text, log_prob in texts.items()]
    monkeypatch.setattr(GlossaryTerminology, "_constrained", Mock(return_value={0: candidates}))
    translator = replace(loaded(numbered), terminology=GlossaryTerminology(Glossary(())))
    assert translator.translate("Hund 42").text == "dog 42"


@pytest.mark.parametrize(("free", "best"), [("dog 42 17", "dog 42"), ("dog 42", "dog 42"), ("dog 42.", "dog 42.")])
def test_a_translation_that_invents_a_number_is_searched_again(
    numbered: Path, free: str, best: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(terminology, "with_stand_ins", Mock(return_value=[(0, "dog 42"), (0, "dog")]))
    translator, improbable = loaded(numbered), Hypothesis((5,), -99.0, -99.0)
    sentences = EncodedSentences(
        ["Hund 42"], translator.trained.tokenizers.source.encode_batch(["Hund 42"]), None, None
    )
    (found,) = GlossaryTerminology(Glossary(())).revised(translator, sentences, [[Candidate(free, improbable)]])
    assert found[0].text == best
    monkeypatch.setattr(terminology, "WORDS", {})  # where words of the source may be numbers, who knows
    (found,) = GlossaryTerminology(Glossary(())).revised(translator, sentences, [[Candidate(free, improbable)]])
    assert found[0].text == free


def test_a_one_that_may_be_an_article_is_the_second_choice() -> None:
    texts = {"dog 1, 42": -1.0, "a dog 42": -2.0, "dog 42 7": -0.1}
    candidates = [Candidate(text, Hypothesis((5,), log_prob, log_prob)) for text, log_prob in texts.items()]
    found = terminology._with_numbers("ein Hund und eine Katze 42", ("de", "en"), [], candidates[2:], candidates[:2])
    assert [each.text for each in found] == ["a dog 42", "dog 1, 42", "dog 42 7"]


@pytest.mark.parametrize(
    ("source", "free", "given", "is_without"),
    [
        ("Hund", "dog 17", {}, True),
        ("zwei Hund", "dog 17", {}, False),
        ("Hund", "dog DEC2BIN", {}, False),
        ("Hund", "17 dog", {"prefixes": ["17"]}, False),
        ("Hund 3", "17 dog 3", {"prefixes": ["17"]}, False),
    ],
)
def test_a_translation_of_no_number_has_none(
    numbered: Path, source: str, free: str, given: dict[str, Any], is_without: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = Candidate(free, Hypothesis((5,), -99.0, -99.0))
    monkeypatch.setattr(Translator, "_search", Mock(return_value=[[found]]))
    (text,) = (each.text for each in loaded(numbered).translate([source], **given))
    assert (text == free) is not is_without
    assert is_without is not any(map(str.isdecimal, text))


@pytest.mark.parametrize("kind", ["prefixes", "constraints"])
def test_a_word_that_another_line_must_have_leaves_the_format(numbered: Path, kind: str) -> None:
    translator, sources = loaded(numbered), ["Hund", "Hund 17,5"]
    ids = translator.trained.tokenizers.source.encode_batch(sources)
    given = {"prefixes": None, "constraints": None} | {kind: [[5], []]}
    sentences = EncodedSentences(sources, ids, **given)  # type: ignore[arg-type]
    free = [[Candidate(text, Hypothesis((5,), -9.0, -9.0))] for text in ("dog", "dog 17,5")]
    (_, found) = GlossaryTerminology(Glossary(())).revised(translator, sentences, free)
    assert found[0].text == "dog 17.5"


@pytest.mark.parametrize("beam", [1, 3])
def test_a_number_comes_back(numbered: Path, beam: int, monkeypatch: pytest.MonkeyPatch) -> None:
    translator = loaded(numbered)
    search = translator.search.model_copy(update={"beam": beam, "n_best": 1})
    kept, free = (replace(translator, search=search.model_copy(update={"numbers": on})) for on in (True, False))
    texts = ["ein Hund", "zwei Hund 42", "drei Katze 3,5 und 7"]
    found = [each.text for each in kept.translate(texts)]
    assert not lost_items(texts[1], found[1])
    assert not lost_items(texts[2], found[2])
    without = [each.text for each in free.translate(texts)]
    assert found[0] == without[0]
    assert lost_items(texts[1], without[1])
    monkeypatch.setattr(terminology, "with_stand_ins", Mock(return_value=[]))
    address = "www.b.org"  # which nothing is too improbable for
    assert address in kept.translate(f"zwei Hund und {address}").text
    assert address not in free.translate(f"zwei Hund und {address}").text

"""Digits in place of numbers, with a search whose translations are given."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import pytest
import torch

from nmt.data.context import Sentence
from nmt.extras.documents.numbers import lost_items
from nmt.extras.documents.stand_ins import TRIES, _digits, with_stand_ins
from nmt.extras.documents.terminology import follow_words
from nmt.search.engine import TorchEngine
from nmt.search.hypothesis import Hypothesis
from nmt.translator.translator import Candidate, EncodedSentences, Translator
from tests.workflows.runs import loaded

Found = list[tuple[int, str]]


@pytest.fixture
def through(trained: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Found]:
    """Translates sources, all of whose numbers are lost, with a function in place of the model."""

    def found(translate: Callable[[str], str], *sources: str, language: str | None = "en") -> Found:
        def texts(
            translator: Translator, sentences: EncodedSentences, hypotheses: Sequence[tuple[Hypothesis, ...]]
        ) -> list[list[Candidate]]:
            return [
                [Candidate(translate(text), each[0])] for text, each in zip(sentences.texts, hypotheses, strict=True)
            ]

        monkeypatch.setattr(Translator, "with_texts", texts)
        sentences = EncodedSentences(sources, [[5]] * len(sources), None, None)
        lost = {row: lost_items(source, "-") for row, source in enumerate(sources)}
        return list(with_stand_ins(loaded(trained), sentences, lost, language))

    return found


def test_numbers_come_back_in_each_way_of_writing_them(through: Callable[..., Found]) -> None:
    read = list[str]()

    def translate(text: str) -> str:
        read.append(text)
        return text.replace("Er kam", "He came")

    found = through(translate, "Hund", "Er kam 1492 um 13,5 zu 7.")
    assert {*found} == {(1, "He came 1492 um 13,5 zu 7."), (1, "He came 1492 um 13.5 zu 7.")}
    assert len({*read}) == TRIES
    for text in read:
        digits = [each for each in text if each.isdecimal()]
        assert len(digits) == len({*digits}) == 3
    assert "6" in read[0]  # and 8, which no number has
    assert "8" in read[0]


WORDS = dict(zip("23456789", ["two", "three", "four", "five", "six", "seven", "eight", "nine"], strict=True))


@pytest.mark.parametrize(
    ("translation", "language", "expected"),
    [
        ("{word} dogs", "en-GB", {"42 dogs"}),
        ("{word} dogs", None, set()),
        ("{digit}, dogs", None, {"42, dogs"}),
        ("May {digit}th", "en", {"May 42nd"}),
        ("May {digit}rd", "en", {"May 42nd"}),
        ("{digit} of {digit} dogs", "en", set()),
        ("{digit} of {word} dogs", "en", set()),
        ("at {digit}:30, 1{digit}, {digit}.1", "en", set()),
        ("dogs", "en", set()),
    ],
)
def test_a_digit_must_appear_once(
    through: Callable[..., Found], translation: str, language: str | None, expected: set[str]
) -> None:
    def translate(text: str) -> str:
        return translation.format(digit=text[-1], word=WORDS[text[-1]].title())

    assert {text for _, text in through(translate, "Hunde 42", language=language)} == expected


@pytest.mark.parametrize(("number", "ordinal"), [("21", "21st"), ("112", "112th"), ("22", "22nd"), ("1003", "1003rd")])
def test_an_english_ordinal_ends_as_its_number_does(through: Callable[..., Found], number: str, ordinal: str) -> None:
    def translate(text: str) -> str:
        return f"on the {text.split()[0][0]}th dog"

    assert {text for _, text in through(translate, f"{number}. Hund")} == {f"on the {ordinal} dog"}


def test_a_sentence_keeps_its_context_and_needs_free_digits(through: Callable[..., Found]) -> None:
    previous = list[tuple[str, ...]]()

    def translate(text: str) -> str:
        assert isinstance(text, Sentence)
        previous.append(text.previous)
        return text

    assert through(translate, Sentence("Hund 42", ["Katze"])) == [(0, "Hund 42")] * TRIES
    assert previous == [("Katze",)] * TRIES
    assert through(translate, "2 x 3 x 4 x 5 x 6 x 7 x 8 x 9 und 42") == []


@pytest.mark.parametrize(
    ("source", "read"),
    [
        ("Siehe =SUMME(A1:B7;(C2)).", "Siehe {}."),
        ("({=WENN(A1:A3>0;4)} oder B1:B3)", "({} oder {})"),
        ("Seiten 13-16, 7;90.", "Seiten {}, {}."),
        ("von 1990–1999 und 17.02.98!", "von {} und {}!"),
        ("„v1.6“ mit A7", "„{}“ mit {}"),
        ("um 2:30 für 1.000,50 und 3,4,5", None),
        ("A7 (Spalte 2)", None),
        ("7x(8", None),
        ('<font size=1> bis <a href="A7">3', "{} bis {}{}"),
        ("2 < 5 und b > 3", None),
        ("a <b, und 5 mal 7, falls c> 3", None),
        ("Er kam 1990. 1995 ging er.", None),
        ("Spalten A1, B2,\tAB3; (C4 7)!", "Spalten {}; ({})!"),
        ("1 000 000,5 Euro", "{} Euro"),
        ("1 x " * 9000 + "x1" + "2" * 20_000 + " x", None),
        ("." * 20_000 + "(a" * 9000 + "1" * 20_000, None),
    ],
)
def test_one_digit_stands_for_an_expression(through: Callable[..., Found], source: str, read: str | None) -> None:
    """A model that keeps what it reads gives each source back."""
    texts = list[str]()

    def translate(text: str) -> str:
        texts.append(text)
        return text

    found = through(translate, source)
    whole = [text for text in texts if read and re.fullmatch(re.escape(read).replace(r"\{\}", "[2-9]"), text)]
    assert len(whole) == (0 if read is None else TRIES)
    assert len(texts) <= TRIES + len(whole)
    if read is not None:
        assert (0, source) in found


def test_a_digit_whose_word_is_in_the_text_stands_for_nothing(through: Callable[..., Found]) -> None:
    texts = list[str]()
    found = through(lambda text: texts.append(text) or text, "Zwei, three, quatre, cinq, seis und 1492")  # type: ignore[func-returns-value]
    assert {re.sub(r"\D", "", text) for text in texts} == {"7", "8", "9"}
    assert len(found) == TRIES


def test_some_numbers_are_better_than_none(through: Callable[..., Found]) -> None:
    found = through(lambda text: f"{text.split()[0]} and more", "1492 oder 3000")
    assert found == [(0, "1492 and more")] * TRIES


@pytest.mark.parametrize("forced", ["digits", "words"])
def test_a_forced_translation_has_its_numbers_and_no_others(numbered: Path, forced: str) -> None:
    translator, sources = loaded(numbered), ["Hund 42", "Hund 111, 112.", "Hund www.b.org 7", "5万 und 42"]
    encoded = EncodedSentences(sources, translator.trained.tokenizers.source.encode_batch(sources), None, None)
    follows_V = follow_words(translator.trained.tokenizers.target, translator.trained.compute.device, "1")
    assert isinstance(translator.engine, TorchEngine)
    translator = replace(translator, engine=replace(translator.engine, follows_word_V=follows_V))
    lost = {row: lost_items(source, "", articles=True) for row, source in enumerate(sources)}
    found = list(with_stand_ins(translator, encoded, lost, "en", forced))
    assert {row for row, _ in found} == {0, 1, 2}  # and not 3, which has digits that no number may stand for
    for row, text in found:
        if re.search(r"\d(st|nd|rd)", text):  # in which no number is put
            continue
        assert sorted(re.findall(r"\d+", text)) == [["42"], ["111", "112"], ["7"]][row]
        if forced == "words":
            assert not re.search(r"[a-z]\d", text)


def test_bytes_are_no_digits() -> None:
    pieces = ["<0xC3>", "<0x31>", "\u25814", "a", "10", "2", "\u25812"]
    tokenizer = Mock(size=len(pieces), pieces=lambda _: pieces)
    phrases, is_digit_V = _digits(tokenizer, torch.device("cpu"), "digits")
    assert is_digit_V.tolist() == [False, True, True, False, True, True, True]
    assert (phrases["2"], phrases["4"], phrases["5"]) == (((5,), (6,)), ((2,),), ())

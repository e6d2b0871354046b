"""Words of a line: what white space parts, and those of ordinary text."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from nmt.data.words import successive, text_words, white_space_words
from tests.data.scripts import SCRIPTS

ANYTHING = st.text(st.one_of(st.characters(exclude_categories=()), st.sampled_from(SCRIPTS)), max_size=30)


@settings(max_examples=100)
@given(ANYTHING)
@example("\u200b")
@example(" \u0301 \u200d\u200b ")
@example("\ud800\U0001f1e9")
def test_every_character_but_white_space_is_in_exactly_one_word(text: str) -> None:
    covered = [0] * len(text)
    last = 0
    for begin, end in text_words(text):
        assert last <= begin < end
        last = end
        for place in range(begin, end):
            covered[place] += 1
    assert covered == [0 if character.isspace() else 1 for character in text]


@settings(max_examples=60)
@given(ANYTHING)
def test_white_space_words_are_those_of_split(text: str) -> None:
    assert [text[begin:end] for begin, end in white_space_words(text)] == text.split()


@settings(max_examples=60)
@given(ANYTHING)
def test_a_mark_is_never_parted_from_a_letter_before_it(text: str) -> None:
    begins = {begin for begin, _ in text_words(text)}
    for place in range(1, len(text)):
        if unicodedata.category(text[place])[0] == "M" and unicodedata.category(text[place - 1])[0] == "L":
            assert place not in begins


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Er sagt: „Ja!“", "Er|sagt|:|„|Ja|!|“"),
        ("Die E-Mail-Adresse von Müller's Hund", "Die|E-Mail-Adresse|von|Müller's|Hund"),
        ("don’t -x x- a--b dogs' 'tis", "don’t|-|x|x|-|a|-|-|b|dogs|'|'|tis"),
        ("z.B. 1.000,50 € a,b 3,5% 10:30", "z.B|.|1.000,50|€|a|,|b|3,5|%|10|:|30"),
        ("snake_case a·b x@y.de", "snake_case|a·b|x|@|y.de"),
        ("cafe\u0301s \u0915\u094d\u0937\u093f", "cafe\u0301s|\u0915\u094d\u0937\u093f"),
        ("Привет, мир", "Привет|,|мир"),
        ("שָׁלוֹם، مرحبا؟", "שָׁלוֹם|،|مرحبا|؟"),
        ("日本語のテキスト、コーヒー2杯。", "日|本|語|の|テキスト|、|コーヒー2|杯|。"),
        ("สวัสดี เที่ยว น้ำ", "ส|วั|ส|ดี|เที่|ย|ว|น้ำ"),
        ("ខ្មែរ မြန်မာ", "ខ្មែ|រ|မြ|န်|မာ"),
        ("👩\u200d🚀❤\ufe0f\u200d🔥👍🏽🇩🇪🇫🇷 1\ufe0f\u20e3", "👩\u200d🚀|❤\ufe0f\u200d🔥|👍🏽|🇩🇪|🇫🇷|1\ufe0f\u20e3"),
        ("Ｆｕｌｌ！ ﬁn ½", "Ｆｕｌｌ|！|ﬁn|½"),
        ("Don\u00adau\u2060dampf", "Don\u00adau\u2060dampf"),
        ("a\u200bb c\u200b \u200b", "a|\u200bb|c\u200b|\u200b"),
        ("a\u00a0b\u2028c\u3000d", "a|b|c|d"),
        ("", ""),
        (" \t", ""),
    ],
    ids=lambda value: None if "|" in value else ascii(value)[:12],
)
def test_words_of_ordinary_text(text: str, words: str) -> None:
    assert "|".join(text[begin:end] for begin, end in text_words(text)) == words


def test_successive_numbers_are_in_one_run() -> None:
    assert successive([]) == []
    assert successive([0, 1, 2, 5, 7, 8]) == [(0, 3), (5, 6), (7, 9)]

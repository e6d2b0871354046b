"""Names, adverbials, numbers and other small words, each with its one English counterpart; see words.yaml."""

from __future__ import annotations

from dataclasses import dataclass

from corpus_de_en.lexicon.tables import rows, word_lists

_WORDS = word_lists("words.yaml")

MEN: tuple[str, ...] = tuple(_WORDS["MEN"])
WOMEN: tuple[str, ...] = tuple(_WORDS["WOMEN"])
SURNAMES: tuple[str, ...] = tuple(_WORDS["SURNAMES"])
CITIES: dict[str, str] = _WORDS["CITIES"]
COUNTRIES: dict[str, str] = _WORDS["COUNTRIES"]
LANGUAGES: dict[str, str] = _WORDS["LANGUAGES"]
NUMBERS: dict[str, str] = _WORDS["NUMBERS"]
WEEKDAYS: dict[str, str] = _WORDS["WEEKDAYS"]
MONTHS: dict[str, str] = _WORDS["MONTHS"]
SEASONS: dict[str, str] = _WORDS["SEASONS"]
MANNER: dict[str, str] = _WORDS["MANNER"]
FREQUENCY: dict[str, str] = _WORDS["FREQUENCY"]
SENTENCE_ADVERBS: dict[str, str] = _WORDS["SENTENCE_ADVERBS"]
NUMERAL_UNITS: dict[str, tuple[str, str]] = {
    name: (dative, english) for name, (dative, english) in _WORDS["NUMERAL_UNITS"].items()
}


@dataclass(frozen=True)
class TimeWord:
    """A fixed time expression; ``links`` pairs word positions, ``?`` marking a possible one."""

    german: str
    english: str
    links: str
    tenses: frozenset[str]


TIME_WORDS = tuple(
    TimeWord(german, english, links, frozenset(tenses.split()))
    for german, english, links, tenses in rows("time_words.tsv", 4)
)

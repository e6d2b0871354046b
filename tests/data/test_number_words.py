"""The words of numbers."""

from __future__ import annotations

from nmt.data.number_words import NEGATION, WORDS


def test_each_language_has_the_same_numbers_and_negations() -> None:
    facts = {language: set(words.values()) for language, words in WORDS.items()}
    assert set(facts) == {"cs", "de", "en", "es", "fr"}
    assert len({frozenset(of_one) for of_one in facts.values()}) == 1
    assert {*map(str, range(2, 21)), NEGATION} <= facts["en"]

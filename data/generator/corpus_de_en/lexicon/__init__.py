"""The word tables of the corpus grammar."""

from __future__ import annotations

from corpus_de_en.lexicon.adjectives import ADJECTIVES
from corpus_de_en.lexicon.function_words import FREQUENCY, LANGUAGES, MANNER, NUMBERS, SENTENCE_ADVERBS, WEEKDAYS
from corpus_de_en.lexicon.nouns import NOUNS
from corpus_de_en.lexicon.verbs import VERBS


def content_lemmas() -> set[str]:
    """All German content lemmas: nouns, verbs, adjectives, adverbs and numerals; no names."""
    lemmas = {noun.lemma for noun in NOUNS}
    lemmas |= {verb.full_infinitive for verb in VERBS}
    lemmas |= {adjective.german for adjective in ADJECTIVES}
    for table in (FREQUENCY, LANGUAGES, MANNER, NUMBERS, SENTENCE_ADVERBS, WEEKDAYS):
        lemmas |= set(table)
    return lemmas

"""The nouns: gender, genitive, plural, English and semantic classes; see nouns.tsv and places.tsv."""

from __future__ import annotations

from dataclasses import dataclass

from corpus_de_en.lexicon.tables import rows, word_lists
from corpus_de_en.morphology import english_plural

_WORDS = word_lists("words.yaml")


@dataclass(frozen=True)
class Noun:
    """A German noun with its English counterpart."""

    lemma: str
    gender: str
    genitive: str
    plural: str
    english: tuple[str, ...]
    english_plural: tuple[str, ...]
    classes: frozenset[str]
    weak: bool = False

    @property
    def mass(self) -> bool:
        """True if the noun has no plural and takes no indefinite article."""
        return not self.plural

    @property
    def plural_only(self) -> bool:
        """True if the noun is only used in the plural (die Eltern)."""
        return self.gender == "pl"


def _closure(classes: str) -> frozenset[str]:
    """All classes named in ``classes`` and, transitively, their super-classes."""
    closure: set[str] = set()
    todo = classes.split()
    while todo:
        name = todo.pop()
        if name not in closure:
            closure.add(name)
            todo.extend(_WORDS["SUPERCLASSES"].get(name, ()))
    return frozenset(closure)


def _noun(gender: str, lemma: str, genitive: str, plural: str, english: str, classes: str) -> Noun:
    singular, _, irregular = english.partition("/")
    words, weak = tuple(singular.split()), gender == "w"
    plural_words = tuple(irregular.split()) or (*words[:-1], english_plural(words[-1]))
    return Noun(
        lemma,
        "m" if weak else gender,
        genitive,
        plural,
        words,
        words if gender == "pl" else plural_words,
        _closure(classes),
        weak,
    )


NOUNS = tuple(_noun(*row) for row in rows("nouns.tsv", 6))
NOUN = {noun.lemma: noun for noun in NOUNS}


@dataclass(frozen=True)
class Place:
    """A noun as a place (dative) and as a goal, in both languages.

    ``to_zu`` marks a goal that German expresses with *zu* and the dative (zum Bahnhof).  A
    bare English place drops its article (at school).
    """

    noun: Noun
    at_de: str
    at_en: str
    to_de: str
    to_en: str
    bare: bool = False


PLACE_OF = {
    lemma: Place(NOUN[lemma], at_de, at_en, to_de, to_en, bare == "bare")
    for lemma, at_de, at_en, to_de, to_en, bare in rows("places.tsv", 6)
}

WHEREABOUTS: dict[str, tuple[str, ...]] = {group: tuple(names) for group, names in _WORDS["WHEREABOUTS"].items()}
"""Named sets of places that fit a kind of activity; each place is also a set of its own."""
WHEREABOUTS["goal"] = tuple(name for name in PLACE_OF if name not in {"Haus", "Wohnung", "Hotelzimmer", "Stadt"})
WHEREABOUTS |= {name: (name,) for name in PLACE_OF}

PART_OF: dict[str, tuple[str, ...]] = {part: tuple(wholes) for part, wholes in _WORDS["PART_OF"].items()}
"""Wholes that a part may belong to (das Dach des Hauses)."""

"""Sets of words that go together, for one kind of sentence each; see situations.yaml."""

from __future__ import annotations

from corpus_de_en.lexicon.tables import word_lists

_LISTS = word_lists("situations.yaml")


def _words(name: str) -> tuple[str, ...]:
    return tuple(_LISTS[name])


def _set(name: str) -> frozenset[str]:
    return frozenset(_LISTS[name])


def _pairs(name: str) -> tuple[tuple[str, str], ...]:
    return tuple((first, second) for first, second in _LISTS[name])


MODAL_NAMES = _words("MODAL_NAMES")
ANIMAL_MODALS = _words("ANIMAL_MODALS")
SUBJECT_PRONOUNS = _words("SUBJECT_PRONOUNS")
HINDRANCES = _pairs("HINDRANCES")
EVALUATIONS = _pairs("EVALUATIONS")
PRICES = _words("PRICES")
QUESTION_ADVERBS = {name: (german, english) for name, (german, english) in _LISTS["QUESTION_ADVERBS"].items()}
TEMPORAL: dict[str, str] = _LISTS["TEMPORAL"]
REASONS: dict[str, str] = _LISTS["REASONS"]
AWKWARD = frozenset(_pairs("AWKWARD"))
ONCE = _set("ONCE")
YOUNGER = _set("YOUNGER")
DAILY = _set("DAILY")
LONG_UNITS = _set("LONG_UNITS")
UNFORGETTABLE = _set("UNFORGETTABLE")
PAST_ONLY = _set("PAST_ONLY")
STATIVE = _set("STATIVE")
TIMED = _set("TIMED")
DURATIVE = _set("DURATIVE")
MOMENTS = _set("MOMENTS")
REACTIONS = _set("REACTIONS")
ALONE = _set("ALONE")
VISITS = _set("VISITS")
PAID = _set("PAID")
INDOORS = _set("INDOORS")
OUTDOORS = _set("OUTDOORS")
RESTING = _set("RESTING")
SHOPPING = _set("SHOPPING")
ERRANDS = _set("ERRANDS")
JOURNEYS = _set("JOURNEYS")
OMITTED = _set("OMITTED")
FORBIDDEN = _set("FORBIDDEN")
ORDERED_NEW = _set("ORDERED_NEW")
GLADLY = _set("GLADLY")
SINCE_FRAMES = _set("SINCE_FRAMES")
FIXED_PREPOSITION = _set("FIXED_PREPOSITION")
SINGLE = _set("SINGLE")
COUNTED = _set("COUNTED")
ACQUIRED = _set("ACQUIRED")
WANTED = _set("WANTED")
CLEANING = _set("CLEANING")
REPAIRING = _set("REPAIRING")
EXCESSIVE = _set("EXCESSIVE")
DEFINITE_ONLY = _set("DEFINITE_ONLY")
BARE_PLURAL = _set("BARE_PLURAL")
SORTS = _words("SORTS")
TOPICS: dict[str, frozenset[str]] = {name: frozenset(verbs) for name, verbs in _LISTS["TOPICS"].items()}
EXISTENCE: dict[str, tuple[str, ...]] = {place: tuple(nouns) for place, nouns in _LISTS["EXISTENCE"].items()}
SCENES: dict[str, tuple[frozenset[str], ...]] = {
    name: tuple(map(frozenset, stages)) for name, stages in _LISTS["SCENES"].items()
}
FAMILIAR = _words("FAMILIAR")
LISTABLE = _set("LISTABLE")
PLEASURES = _set("PLEASURES")
MANY_AT_ONCE = _set("MANY_AT_ONCE")
OVERLAPPING = _pairs("OVERLAPPING")
TOO_LONG = LONG_UNITS | {"damals", "Jahr", "Frühling", "Sommer", "Herbst", "Winter"}
"""Times that nobody would give for everyday work."""
TOO_SHORT = _set("TOO_SHORT")

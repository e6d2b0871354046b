"""Damages translations, each in a way that its words show: what is learnt from and measured with.

Shapes: I target words.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from nmt.data.words import is_punctuation, text_words
from nmt.extras.trust.checks import NUMBERS

MIN_WORDS = 5
"""Least number of words of a translation that is damaged in a part."""
INSERTED = 3
"""Number of words that are inserted."""


@dataclass(frozen=True)
class Damage:
    """A damaged translation."""

    text: str
    wrong: frozenset[int] = frozenset()
    """The words of the damaged text that are wrong, by their indices."""
    dropped: frozenset[int] = frozenset()
    """The words of the whole translation that the damaged text lacks."""


def drop(text: str, other: str, random: np.random.Generator) -> Damage | None:
    """Leaves out a third of the words, a run of at least two."""
    return _without(text, random, lambda words: max(2, round(words / 3)))


def omit(text: str, other: str, random: np.random.Generator) -> Damage | None:
    """Leaves out one word."""
    return _without(text, random, lambda words: 1)


def _without(text: str, random: np.random.Generator, count_of: Callable[[int], int]) -> Damage | None:
    spans = text_words(text)
    words = len(spans) - (bool(spans) and is_punctuation(text[slice(*spans[-1])]))
    if words < MIN_WORDS:
        return None
    count = count_of(words)
    first = int(random.integers(0, words - count + 1))
    begin, end = spans[first][0], spans[first + count - 1][1]
    kept = f"{text[:begin].rstrip()}{' ' * text[end : end + 1].isspace()}{text[end:].lstrip()}"
    return Damage(kept.strip(), dropped=frozenset(range(first, first + count)))


def insert(text: str, other: str, random: np.random.Generator) -> Damage | None:
    """Inserts successive words of another translation before a word."""
    spans, others = text_words(text), text_words(other)
    if min(len(spans), len(others)) < MIN_WORDS:
        return None
    begin = int(random.integers(0, len(others) - INSERTED))
    words = other[others[begin][0] : others[begin + INSERTED - 1][1]]
    place = int(random.integers(1, len(spans)))
    before = spans[place][0]
    damaged = f"{text[:before].rstrip()} {words} {text[before:]}"
    return Damage(damaged, frozenset(range(place, place + len(text_words(words)))))


def repeat(text: str, other: str, random: np.random.Generator) -> Damage | None:
    """Repeats two to four successive words after themselves."""
    spans = text_words(text)
    body = len(spans) - 1
    if body < MIN_WORDS:
        return None
    count = int(random.integers(2, 5))
    first = int(random.integers(0, body - count + 1))
    end = first + count
    words = text[spans[first][0] : spans[end - 1][1]]
    damaged = f"{text[: spans[end - 1][1]]} {words}{text[spans[end - 1][1] :]}"
    return Damage(damaged, frozenset(range(end, end + count)))


def substitute(text: str, other: str, random: np.random.Generator) -> Damage | None:
    """Replaces a word by one of another translation."""
    spans, others = text_words(text), text_words(other)
    words = [place for place, span in enumerate(spans) if not is_punctuation(text[slice(*span)])]
    candidates = {other[slice(*span)] for span in others} - {text[slice(*span)] for span in spans}
    candidates = {word for word in candidates if not is_punctuation(word)}
    if len(words) < MIN_WORDS or not candidates:
        return None
    place = int(random.choice(words))
    word = str(random.choice(sorted(candidates)))
    begin, end = spans[place]
    return Damage(text[:begin] + word + text[end:], frozenset([place]))


def change_number(text: str, other: str, random: np.random.Generator) -> Damage | None:
    """Changes the first number, in digits or as an English word."""
    names = list(NUMBERS["en"])
    for place, (begin, end) in enumerate(text_words(text)):
        word = text[begin:end]
        if word.isdecimal():
            changed = str(int(word) + int(random.integers(1, 9)))
        elif word.lower() in names:
            changed = str(random.choice([name for name in names if name != word.lower()]))
            changed = changed.capitalize() if word[0].isupper() else changed
        else:
            continue
        return Damage(text[:begin] + changed + text[end:], frozenset([place]))
    return None


def exchange(text: str, other: str, random: np.random.Generator) -> Damage | None:
    """Returns the translation of another sentence."""
    if not text or not other or text == other:
        return None
    return Damage(other, frozenset(range(len(text_words(other)))))


Kind = Callable[[str, str, np.random.Generator], Damage | None]

KINDS: Mapping[str, Kind] = {
    "dropped": drop,
    "omitted": omit,
    "inserted": insert,
    "repeated": repeat,
    "substituted": substitute,
    "number": change_number,
    "another": exchange,
}
"""The kinds of damage, by name."""


def damaged(kind: Kind, targets: Sequence[str], *, seed: int = 1) -> list[Damage | None]:
    """Damages each translation, where the kind applies to it; another translation is drawn for each."""
    random = np.random.default_rng(seed)
    others = random.permutation(len(targets))
    return [kind(text, targets[other], random) for text, other in zip(targets, others, strict=True)]

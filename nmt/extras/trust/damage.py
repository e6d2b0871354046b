"""Damages translations, each in a way that its words show: what is learnt from and measured with.

Shapes: I target words.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import numpy as np

from nmt.data.number_words import NEGATION, WORDS
from nmt.data.words import Span, is_punctuation, text_words

MIN_WORDS = 5
"""Least number of words of a translation that is damaged in a part."""

_NEGATIONS = "|".join(word for words in WORDS.values() for word, fact in words.items() if fact == NEGATION)
_NEGATION = re.compile(rf"(?<!ca)n't\b|'t\b|\b({_NEGATIONS})\b *", re.IGNORECASE)
_NUMBERS = [word for word, fact in WORDS["en"].items() if fact != NEGATION]


@dataclass(frozen=True)
class Damage:
    """A damaged translation."""

    text: str
    wrong: frozenset[int] = frozenset()
    """The words of the damaged text that are wrong, by their indices."""
    dropped: frozenset[int] = frozenset()
    """The words of the whole translation that the damaged text lacks."""


Damages: TypeAlias = Sequence[Damage | None]
"""Damaged translations; None where a kind of damage does not apply."""


def drop(text: str, other: str, random: np.random.Generator, *, share: float) -> Damage | None:
    """Leaves out a share of the words, a run of at least two, or one word if ``share`` is 0."""
    spans = _body(text)
    if len(spans) < MIN_WORDS:
        return None
    count = max(2, round(len(spans) * share)) if share else 1
    first = int(random.integers(0, len(spans) - count + 1))
    begin, end = spans[first][0], spans[first + count - 1][1]
    space = " " * text[end : end + 1].isspace()
    kept = f"{text[:begin].rstrip()}{space}{text[end:].lstrip()}".strip()
    return Damage(kept, dropped=frozenset(range(first, first + count)))


def insert(text: str, other: str, random: np.random.Generator) -> Damage | None:
    """Inserts three successive words of another translation after a word."""
    return _inserted(text, other, int(random.integers(0, max(1, len(_body(other)) - 3))), 3, random)


def repeat(text: str, other: str, random: np.random.Generator) -> Damage | None:
    """Repeats two to four successive words after themselves."""
    count = int(random.integers(2, 5))
    first = int(random.integers(0, max(1, len(_body(text)) - count + 1)))
    return _inserted(text, text, first, count, None)


def _inserted(text: str, other: str, first: int, count: int, random: np.random.Generator | None) -> Damage | None:
    """Inserts words of another text after a random word or, without ``random``, after the same words of the text."""
    spans, others = _body(text), _body(other)[first : first + count]
    if len(spans) < MIN_WORDS or len(others) < count:
        return None
    place = first + count if random is None else int(random.integers(1, len(spans) + 1))
    end = spans[place - 1][1]
    words = other[others[0][0] : others[-1][1]]
    return Damage(f"{text[:end]} {words}{text[end:]}", frozenset(range(place, place + count)))


def substitute(text: str, other: str, random: np.random.Generator) -> Damage | None:
    """Replaces a word by one of another translation."""
    spans = text_words(text)
    own = [text[begin:end] for begin, end in spans]
    strange = {other[begin:end] for begin, end in text_words(other)} - set(own)
    others = sorted(word for word in strange if not is_punctuation(word))
    places = [place for place, word in enumerate(own) if not is_punctuation(word)]
    if len(places) < MIN_WORDS or not others:
        return None
    return _replaced(text, spans, int(random.choice(places)), str(random.choice(others)))


def change_number(text: str, other: str, random: np.random.Generator) -> Damage | None:
    """Changes the first number, in digits or as an English word."""
    spans = text_words(text)
    for place, (begin, end) in enumerate(spans):
        word = text[begin:end]
        if word.isdecimal():
            return _replaced(text, spans, place, str(int(word) + int(random.integers(1, 9))))
        if word.lower() in _NUMBERS:
            changed = str(random.choice([name for name in _NUMBERS if name != word.lower()]))
            return _replaced(text, spans, place, changed.capitalize() if word[0].isupper() else changed)
    return None


def negate(text: str, other: str, random: np.random.Generator) -> Damage | None:
    """Leaves out the first negation: a word, or n't."""
    changed = _NEGATION.sub("", text, count=1)
    return Damage(changed.strip()) if changed != text else None


def exchange(text: str, other: str, random: np.random.Generator) -> Damage | None:
    """Returns the translation of another sentence."""
    return Damage(other, frozenset(range(len(text_words(other))))) if other and text != other else None


def _replaced(text: str, spans: Sequence[Span], place: int, word: str) -> Damage:
    begin, end = spans[place]
    return Damage(text[:begin] + word + text[end:], frozenset([place]))


def _body(text: str) -> list[Span]:
    """Returns the words without a punctuation mark at the end."""
    spans = text_words(text)
    return spans[:-1] if spans and is_punctuation(text[slice(*spans[-1])]) else spans


Kind = Callable[[str, str, np.random.Generator], Damage | None]

KINDS: Mapping[str, Kind] = {
    "dropped": partial(drop, share=1 / 3),
    "omitted": partial(drop, share=0),
    "inserted": insert,
    "repeated": repeat,
    "substituted": substitute,
    "number": change_number,
    "negation": negate,
    "another": exchange,
}
"""The kinds of damage, by name."""


def damaged(kind: Kind, targets: Sequence[str], *, seed: int = 1) -> list[Damage | None]:
    """Damages each translation, where the kind applies to it; another translation is drawn for each."""
    random = np.random.default_rng(seed)
    others = random.permutation(len(targets))
    return [kind(text, targets[other], random) for text, other in zip(targets, others, strict=True)]

"""Decides which sides of sentence pairs are in another language than that of the corpus.

py3langid computes log P(x, L) of a text x in each language L by naive Bayes over byte n-grams (Lui & Baldwin 2012,
"langid.py: An Off-the-shelf Language Identification Tool"). It counts n-grams that overlap as independent, so that the
logarithms are divided by the root of the number of bytes:

    s(x, L) = log P(x, L) / sqrt(bytes of x)

With source x of expected language L, target y of M, and a margin m, a pair is

    swapped   where (s(x, M) - s(x, L)) + (s(y, L) - s(y, M)) > m, and no side is most probably in a third language
    source    else, where max over L' of s(x, L') - s(x, L) > m: the source is in another language; target likewise

A side that is most probably no language (numbers, mark-up) is in no other one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Literal, TypeAlias

from nmt.core.installation import missing

Scores: TypeAlias = Mapping[str, float]
"""s(x, L) of a text by language."""

Fault: TypeAlias = Literal["swapped", "source", "target"]

NO_LANGUAGE = "zxx"
"""The code of ISO 639 for text without a language."""

MAX_CHARACTERS = 1000
"""Maximum number of characters of a text that are read; more of them take time and add no certainty."""


class Identifier:
    """Identifies languages with a model of py3langid. Raises InputError if py3langid is missing."""

    def __init__(self) -> None:
        try:
            from py3langid.langid import MODEL_FILE, LanguageIdentifier
        except ImportError:
            raise missing("py3langid is", "language-id") from None
        self._model = LanguageIdentifier.from_model_file(MODEL_FILE)
        self.languages = frozenset(self._model.labels) - {NO_LANGUAGE}

    def scores(self, text: str) -> Scores:
        """Scores a text, most probable language first."""
        text = text[:MAX_CHARACTERS]
        root = math.sqrt(len(text.encode()) or 1)
        return {language: score / root for language, score in self._model.rank(text)}


def language(scores: Scores) -> str:
    """Returns the most probable language; `NO_LANGUAGE` if all are equally probable, as for a blank text."""
    best = max(scores, key=scores.__getitem__)
    return best if scores[best] > min(scores.values()) else NO_LANGUAGE


def fault(source: Scores, target: Scores, expected: tuple[str, str], margin: float) -> Fault | None:
    """Names the fault of a pair; returns None if both sides may be in their languages."""
    own, other = expected
    gain = source[other] - source[own] + target[own] - target[other]
    if gain > margin and {language(source), language(target)} <= {own, other}:
        return "swapped"
    sides: tuple[tuple[Fault, Scores, str], ...] = (("source", source, own), ("target", target, other))
    for side, scores, usual in sides:
        found = language(scores)
        if found != NO_LANGUAGE and scores[found] - scores[usual] > margin:
            return side
    return None

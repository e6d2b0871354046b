"""Checks of a translation that need no model: numbers and negations of one side alone, and repetitions."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise

from nmt.data.number_words import BEGINNINGS, WORDS, usual_digits
from nmt.data.words import is_punctuation, is_unspaced

_DIGITS = re.compile(r"\d+")
_THOUSANDS = re.compile(r"(?<=\d)[.,'’](?=\d{3}(?!\d))")

FARTHEST = 8
"""Maximum number of words from a pair of words to its repetition."""


def one_sided(source: Sequence[str], target: Sequence[str], languages: Sequence[str]) -> tuple[list[str], list[str]]:
    """Finds the numbers and ``NEGATION`` that only the source words have, and those that only the target words have.
    Words are known if both ``languages`` are in ``WORDS``, digits always."""
    is_known = len(languages) == 2 and all(language in WORDS for language in languages)
    sides = zip((source, target), languages if is_known else ("", ""), strict=True)
    (of_source, maybe_source), (of_target, maybe_target) = (_facts(words, language) for words, language in sides)
    only_source, only_target = of_source - of_target - maybe_target, of_target - of_source - maybe_source
    return sorted(only_source.elements()), sorted(only_target.elements())


def _facts(words: Sequence[str], language: str) -> tuple[Counter[str], Counter[str]]:
    """Counts the numbers and negations of a side, and those that further words may stand for."""
    of_words = [_of_word(word, language) for word in words]
    return Counter(x for known, _ in of_words for x in known), Counter(x for _, maybe in of_words for x in maybe)


@lru_cache(maxsize=1 << 16)
def _of_word(word: str, language: str) -> tuple[list[str], list[str]]:
    """Finds the numbers, without zeros at their beginning, or the negation of a word, and what it may stand for."""
    known = WORDS.get(language, {})
    name = "not" if word.endswith(("n't", "n’t")) else word.lower()
    if name in known:
        return [known[name]], []
    numbers = [number.lstrip("0") for number in _DIGITS.findall(_THOUSANDS.sub("", usual_digits(word)))]
    beginnings = {**known, **BEGINNINGS.get(language, {})}.items()
    return [*filter(None, numbers)], [fact for beginning, fact in beginnings if name.startswith(beginning)]


def repetition(source: Sequence[str], target: Sequence[str]) -> tuple[int, int] | None:
    """Finds the first two successive words that soon follow again, without punctuation, and returns the indices of the
    second occurrence; None if there is none, or if the source repeats itself, too. Two characters of a script without
    spaces do not count: they are often one word."""
    repeats = [_repeated(words) for words in (source, target)]
    return repeats[1] if repeats[0] is None else None


def _repeated(words: Sequence[str]) -> tuple[int, int] | None:
    last: dict[tuple[str, str], int] = {}
    for index, pair in enumerate(pairwise(word.lower() for word in words)):
        if any(map(is_punctuation, pair)) or all(map(is_unspaced, pair)):
            continue
        if pair in last and 2 <= index - last[pair] <= FARTHEST:
            return index, index + 1
        last[pair] = index
    return None

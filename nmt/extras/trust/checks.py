"""Checks of a translation that need no model: numbers that differ, and repetitions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from nmt.data.words import is_punctuation

_WORDS = {
    "cs": "dva tři čtyři pět šest sedm osm devět deset jedenáct dvanáct",
    "de": "zwei drei vier fünf sechs sieben acht neun zehn elf zwölf",
    "en": "two three four five six seven eight nine ten eleven twelve",
    "es": "dos tres cuatro cinco seis siete ocho nueve diez once doce",
    "fr": "deux trois quatre cinq six sept huit neuf dix onze douze",
}
NUMBERS: Mapping[str, Mapping[str, str]] = {
    language: {word: str(value) for value, word in enumerate(words.split(), 2)} for language, words in _WORDS.items()
}
"""The numbers from 2 to 12 in words, by language. 1 is often an article."""

FARTHEST = 8
"""Maximum number of words from a pair of words to its repetition."""


def differing_numbers(
    source: Sequence[str], target: Sequence[str], languages: Sequence[str]
) -> tuple[list[str], list[str]]:
    """Finds the numbers that only the source words have, and those that only the target words have. Numbers in words
    are known if both ``languages`` are in ``NUMBERS``."""
    is_known = len(languages) == 2 and all(language in NUMBERS for language in languages)
    names = [NUMBERS[language] for language in languages] if is_known else [{}, {}]
    counts = [
        Counter(filter(None, (_value(word, name) for word in words)))
        for words, name in zip((source, target), names, strict=True)
    ]
    return sorted((counts[0] - counts[1]).elements()), sorted((counts[1] - counts[0]).elements())


def _value(word: str, numbers: Mapping[str, str]) -> str:
    """Returns the digits of a number, or "" for another word."""
    if word[:1].isdigit():
        return "".join(filter(str.isdigit, word))
    return numbers.get(word.lower(), "")


def repetition(source: Sequence[str], target: Sequence[str]) -> tuple[int, int] | None:
    """Finds the first two successive words that soon follow again, without punctuation, and returns the indices of the
    second occurrence; None if there is none, or if the source repeats itself, too."""
    repeats = [_repeated(words) for words in (source, target)]
    return repeats[1] if repeats[0] is None else None


def _repeated(words: Sequence[str]) -> tuple[int, int] | None:
    last: dict[tuple[str, str], int] = {}
    for index, pair in enumerate(zip((lower := [word.lower() for word in words]), lower[1:], strict=False)):
        if any(map(is_punctuation, pair)):
            continue
        if pair in last and 2 <= index - last[pair] <= FARTHEST:
            return index, index + 1
        last[pair] = index
    return None

"""Suspicious sentence pairs of a corpus, which are probably not translations of each other.

The score of a pair is higher the less probable its words and its length are:

    score = nll + z² / 2

    nll  the negative log-probability per token of the target given the source; with a model of each direction, the mean
         of it and that of the source given the target
    z    how far the lengths l_s and l_t, in characters without white space, are from what is usual in the corpus (Gale
         & Church 1993, "A Program for Aligning Sentences in Bilingual Corpora", section 3.1):

         z = (l_t - c l_s) / sqrt(v m)       c = sum of l_t / sum of l_s       m = (l_s + l_t / c) / 2
                                             v = mean over all pairs of (l_t - c l_s)² / m

z² / 2 is, up to a constant, the negative log-probability of a normally distributed z, so that both terms are in nats.
Here m is the mean of both lengths, where the paper has l_s, so that a blank source is not a division by zero. A pair
is suspicious by any of these kinds:

    unlikely  the score is at least a threshold
    length    |z| is above 3
    unlinked  of one side, more than 40 % of the words that hold a letter or digit have no link
    numbers   a number, a code, a URL or an e-mail address of one side is missing in the other; one up to 12, which is
              often written out, counts only where the other side has a number that is missing too
    copied    both sides have the same words, two at least, regardless of case
    blank     one side is blank
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from nmt.alignment.formats import Alignment
from nmt.extras.documents.numbers import lost_items

Kind: TypeAlias = Literal["unlikely", "length", "unlinked", "numbers", "copied", "blank"]

MIN_SCORE = 4.0
MAX_Z = 3.0
MAX_UNLINKED = 0.4


@dataclass(frozen=True)
class UsualLengths:
    """The usual lengths of a corpus."""

    ratio: float
    """c: target characters for each source character."""
    variance: float
    """v"""

    def z(self, source: str, target: str) -> float:
        """Computes the deviation of a pair from the usual lengths; it is below 0 if the target is short."""
        if self.ratio * self.variance == 0:
            return 0.0
        l_s, l_t = length(source), length(target)
        m = (l_s + l_t / self.ratio) / 2
        return (l_t - self.ratio * l_s) / math.sqrt(self.variance * m) if m else 0.0


def usual_lengths(pairs: Iterable[tuple[int, int]]) -> UsualLengths:
    """Estimates the usual lengths from all pairs, except those with two blank sides."""
    counts = Counter((l_s, l_t) for l_s, l_t in pairs if l_s or l_t)
    source_total = sum(l_s * count for (l_s, _), count in counts.items())
    target_total = sum(l_t * count for (_, l_t), count in counts.items())
    if source_total == 0 or target_total == 0:
        return UsualLengths(0.0, 0.0)
    c = target_total / source_total
    squares = sum(count * 2 * (l_t - c * l_s) ** 2 / (l_s + l_t / c) for (l_s, l_t), count in counts.items())
    return UsualLengths(c, squares / counts.total())


def length(text: str) -> int:
    """Counts the characters that are not white space."""
    return sum(map(len, text.split()))


@dataclass(frozen=True)
class Suspect:
    """A sentence pair that is suspicious."""

    line: int
    """Number of the line, from 1."""
    score: float
    kinds: tuple[Kind, ...]
    nll: float
    z: float
    source_words: tuple[str, ...]
    """Words without a link, then numbers that are missing on the other side."""
    target_words: tuple[str, ...]
    source: str
    """The source sentence, with single spaces."""
    target: str


def suspect(
    line: int, source: str, target: str, alignment: Alignment, *, nll: float, lengths: UsualLengths,
    min_score: float = MIN_SCORE,
) -> Suspect | None:  # fmt: skip
    """Searches for faults of a sentence pair; returns None if there are none, for two blank sides, and if ``nll`` is
    NaN because the pair is too long to be scored."""
    source, target = " ".join(source.split()), " ".join(target.split())
    if not (source or target) or math.isnan(nll):
        return None
    z = lengths.z(source, target)
    score = nll + z * z / 2
    source_loose, target_loose = unlinked(alignment)
    numbers = [tuple(each.term.source for each in lost_items(*pair)) for pair in ((source, target), (target, source))]
    found: dict[Kind, bool] = {
        "unlikely": score >= min_score,
        "length": abs(z) > MAX_Z,
        "unlinked": unlinked_share(alignment) > MAX_UNLINKED,
        "numbers": any(numbers),
        "copied": " " in source and source.casefold() == target.casefold(),
        "blank": not (source and target),
    }
    kinds = tuple(kind for kind, is_so in found.items() if is_so)
    words = source_loose + numbers[0], target_loose + numbers[1]
    return Suspect(line, score, kinds, nll, z, *words, source, target) if kinds else None


def unlinked(alignment: Alignment) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Lists the words of each side that hold a letter or digit and have no link."""
    loose = []
    for side, words in enumerate((alignment.source_words, alignment.target_words)):
        linked = {link[side] for link in alignment.links}
        loose.append(tuple(word for place, word in enumerate(words) if place not in linked and _counts(word)))
    return loose[0], loose[1]


def unlinked_share(alignment: Alignment) -> float:
    """Computes the share of unlinked words among those with a letter or digit, on the side where it is larger."""
    sides = zip(unlinked(alignment), (alignment.source_words, alignment.target_words), strict=True)
    return max(len(loose) / max(sum(map(_counts, words)), 1) for loose, words in sides)


def _counts(word: str) -> bool:
    return any(map(str.isalnum, word))

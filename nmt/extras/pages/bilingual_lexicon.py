"""A bilingual lexicon from word alignments, with the number of times that words and phrases were linked.

The links of a sentence pair join its words to groups: the connected components of the graph whose edges are the links.
A group is a unit of the source and a unit of the target, one entry of the lexicon: `Hund` - `dog`, and of more words
`Schwebebalken` - `balance beam`. A word that no link reaches is a unit by itself, whose other side is empty. So every
word of the corpus counts once, whatever is above or below it, and with n the numbers of groups

    p(target | source) = n(source, target) / sum over t of n(source, t)          t also the empty unit
    p(source | target) = n(source, target) / sum over s of n(s, target)          s also the empty unit
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import dropwhile, pairwise
from typing import TypeAlias

from nmt.alignment import Links
from nmt.alignment.formats import Alignment
from nmt.data.words import is_punctuation_mark, is_unspaced, text_words

GAP = "…"
"""Mark in a unit for words in between that do not belong to it: `steht … auf` - `gets up`."""

Group: TypeAlias = tuple[tuple[int, ...], tuple[int, ...]]
"""Indices of source words and of target words, each in order."""


@dataclass(frozen=True)
class Entry:
    """A unit of the source and one of the target that belong together; a unit is empty if a word has no link."""

    source: str
    target: str
    count: int
    target_given_source: float | None
    """p(target | source); None for an entry without a source unit."""
    source_given_target: float | None
    lines: tuple[int, ...]
    """Numbers, from 1, of the first pairs that have the entry."""


class BilingualLexicon:
    """Takes alignments one by one. Memory grows with the number of different entries, not with that of pairs."""

    def __init__(self, *, lowercase: bool = False, examples: int = 3) -> None:
        self._lowercase = lowercase
        self._examples = examples
        self._counts: Counter[tuple[str, str]] = Counter()
        self._lines: defaultdict[tuple[str, str], list[int]] = defaultdict(list)

    def add(self, alignment: Alignment, line: int) -> None:
        """Counts the entries of a sentence pair; ``line`` is its number."""
        sources, targets = alignment.source_words, alignment.target_words
        if self._lowercase:
            sources, targets = (tuple(word.lower() for word in side) for side in (sources, targets))
        for source_places, target_places in groups(alignment.links, len(sources), len(targets)):
            entry = unit(sources, source_places), unit(targets, target_places)
            self._counts[entry] += 1
            lines = self._lines[entry]
            if len(lines) < self._examples and line not in lines[-1:]:
                lines.append(line)

    def entries(self, *, min_count: int = 1) -> Iterator[Entry]:
        """Lists the entries of at least ``min_count``, in alphabetical order of the source regardless of case, most
        frequent first; at the end target words without a link."""
        of_source: Counter[str] = Counter()
        of_target: Counter[str] = Counter()
        for (source, target), count in self._counts.items():
            of_source[source] += count
            of_target[target] += count
        for source, target in sorted(self._counts, key=self._order):
            count = self._counts[source, target]
            if count >= min_count:
                shares = count / of_source[source] if source else None, count / of_target[target] if target else None
                yield Entry(source, target, count, *shares, tuple(self._lines[source, target]))

    def _order(self, entry: tuple[str, str]) -> tuple[bool, str, str, int, str]:
        source, target = entry
        return not source, source.casefold(), source, -self._counts[entry], target


def groups(links: Links, source_words: int, target_words: int) -> Iterator[Group]:
    """Finds the groups that links form from all words of a sentence pair: groups with source words in the order of
    their first one, then target words without a link."""
    targets_of: defaultdict[int, list[int]] = defaultdict(list)
    sources_of: defaultdict[int, list[int]] = defaultdict(list)
    for source, target in links:
        targets_of[source].append(target)
        sources_of[target].append(source)
    met: set[int] = set()
    for first in range(source_words):
        if first in met:
            continue
        sources, targets, new = set[int](), set[int](), {first}
        while new:
            sources |= new
            reached = {target for source in new for target in targets_of[source]} - targets
            targets |= reached
            new = {source for target in reached for source in sources_of[target]} - sources
        met |= sources
        yield tuple(sorted(sources)), tuple(sorted(targets))
    for target in range(target_words):
        if not sources_of[target]:
            yield (), (target,)


def unit(words: Sequence[str], places: Sequence[int]) -> str:
    """Joins the words at some indices to one text, with a gap mark for words in between, and without white space
    between neighbouring characters of a script without spaces. Punctuation at both ends is removed, unless the text
    has nothing else."""
    is_word = [not all(map(is_punctuation_mark, words[place])) for place in places]
    if True in is_word:
        places = places[is_word.index(True) : len(is_word) - is_word[::-1].index(True)]
    texts = [words[place] for place in places]
    if True in is_word:
        texts[0] = "".join(dropwhile(is_punctuation_mark, texts[0]))
        texts[-1] = texts[-1][: len("".join(dropwhile(is_punctuation_mark, reversed(texts[-1]))))]
    is_character = [is_unspaced(word) and len(text_words(word)) == 1 for word in words]
    gaps = [
        f" {GAP} " if following > place + 1 else " " * (not (is_character[place] and is_character[following]))
        for place, following in pairwise(places)
    ]
    return "".join(text + gap for text, gap in zip(texts, [*gaps, ""], strict=False))

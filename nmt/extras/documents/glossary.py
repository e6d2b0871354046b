"""Terms and their translations: their file, their occurrences in a text, and their recall in a translation.

A text is compared word by word (``nmt.data.words.text_words``, also divided at apostrophes and after digits, so that
`l'eau` contains `eau`, `dog's` contains `dog` and `19th` contains `19`). White space, the kind of apostrophe and
Unicode's normalization form make no difference. A term in lower case matches any case, a term with a capital only
itself, both in the source and in the translation.
"""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple, Self

from nmt.core import log
from nmt.core.errors import InputError
from nmt.core.files import read_whole, reading
from nmt.data.words import Span, text_words
from nmt.evaluation.report import TermRecall

MAX_BYTES = 64 << 20
"""Maximum size of a glossary."""

LONGEST = 500
"""Maximum number of characters of a term or variant."""

_BORDERS = re.compile(r"['’]|(?<=\d)(?=[^\W\d_])")
"""Borders within words."""


@dataclass(frozen=True)
class Words:
    """The words of a text in the forms that are compared."""

    spans: tuple[Span, ...]
    written: tuple[str, ...]
    folded: tuple[str, ...]
    """The words without case."""

    @classmethod
    def of(cls, text: str) -> Self:
        """Finds the words of a text."""
        spans: list[Span] = []
        for begin, end in text_words(text):
            marks = [match.span() for match in _BORDERS.finditer(text, begin, end)]
            cuts = [begin, *(offset for span in marks for offset in span), end]
            spans += [(first, last) for first, last in pairwise(cuts) if first < last]
        written = [unicodedata.normalize("NFC", text[slice(*span)]).replace("’", "'") for span in spans]
        return cls(tuple(spans), tuple(written), tuple(word.casefold() for word in written))

    def __len__(self) -> int:
        return len(self.spans)

    @cached_property
    def is_lower(self) -> bool:
        """Returns True if no word has a capital."""
        return all(word == word.lower() for word in self.written)

    def match_at(self, text: Words, first: int) -> bool:
        """Returns True if these words are those of a text from its word ``first`` on."""
        part = slice(first, first + len(self))
        return self.folded == text.folded[part] and (self.is_lower or self.written == text.written[part])


_words = lru_cache(maxsize=1 << 16)(Words.of)
"""Finds the words of a term."""


@dataclass(frozen=True)
class Term:
    """A term of the source language, and its translations: variants, the first of which is preferred."""

    source: str
    targets: tuple[str, ...]

    @property
    def spellings(self) -> tuple[str, ...]:
        """Returns the variants; those in lower case also with a capital, as at the beginning of a sentence."""
        capitals = [target[0].upper() + target[1:] for target in self.targets if _words(target).is_lower]
        return tuple(dict.fromkeys([*self.targets, *capitals]))


class Occurrence(NamedTuple):
    """A term in a source text, from one character to another."""

    term: Term
    span: Span


@dataclass(frozen=True)
class Glossary:
    """Terms, no two of which have the same source."""

    terms: tuple[Term, ...]

    def find(self, text: str) -> list[Occurrence]:
        """Finds the terms in a source text, from left to right. If terms overlap, it takes the one that begins first;
        of those the one with the most words, and of equal ones the one with capitals."""
        words, found, end = Words.of(text if self.terms else ""), list[Occurrence](), 0
        for at, folded in enumerate(words.folded):
            candidates = self._by_first_word.get(folded, ()) if at >= end else ()
            term = next((term for term in candidates if _words(term.source).match_at(words, at)), None)
            if term is not None:
                end = at + len(_words(term.source))
                found.append(Occurrence(term, (words.spans[at][0], words.spans[end - 1][1])))
        return found

    @cached_property
    def _by_first_word(self) -> dict[str, list[Term]]:
        terms = defaultdict[str, list[Term]](list)
        for term in sorted(self.terms, key=lambda term: (-len(_words(term.source)), _words(term.source).is_lower)):
            terms[_words(term.source).folded[0]].append(term)
        return terms


def find_variants(translation: str, terms: Sequence[Term]) -> list[Span | None]:
    """Finds the span of a variant of each term in a translation, without overlap; None for a term that is missing.
    Terms with the fewest spans choose first."""
    words = Words.of(translation if terms else "")
    places = {term: _places(words, term) for term in terms}
    free, spans = [True] * len(words), [None] * len(terms)  # type: list[bool], list[Span | None]
    for number in sorted(range(len(terms)), key=lambda number: len(places[terms[number]])):
        for begin, end in places[terms[number]]:
            if all(free[begin:end]):
                free[begin:end] = [False] * (end - begin)
                spans[number] = words.spans[begin][0], words.spans[end - 1][1]
                break
    return spans


def _places(text: Words, term: Term) -> list[Span]:
    """Finds the first word of each variant in a text and the one after its last, the longest first."""
    variants = [_words(target) for target in term.targets]
    spans = {(at, at + len(each)) for each in variants for at in range(len(text)) if each.match_at(text, at)}
    return sorted(spans, key=lambda span: (span[0] - span[1], span))


def term_recall(glossary: Glossary, sources: Iterable[str], translations: Iterable[str]) -> TermRecall:
    """Counts the terms that occur in the sources, and those of them that the translations contain, each at a place of
    its own."""
    found = total = 0
    for source, translation in zip(sources, translations, strict=True):
        terms = [occurrence.term for occurrence in glossary.find(source)]
        total += len(terms)
        found += sum(span is not None for span in find_variants(translation, terms)) if terms else 0
    return TermRecall(found, total)


def read_glossary(path: Path) -> Glossary:
    """Reads a file. Raises InputError for one that cannot be read, and as ``parse_glossary``."""
    with reading(f"--glossary {path}"):
        return parse_glossary(read_whole(path, most=MAX_BYTES), str(path))


def parse_glossary(data: bytes, name: str) -> Glossary:
    """Parses lines ``source term TAB target term`` in UTF-8; the target may be several variants, separated by ``|``.
    Blank lines and lines that begin with ``#`` are skipped. Raises InputError, with the ``name`` of the file, for a
    malformed line, and for a second line of a term with other targets."""
    terms: dict[tuple[str, ...], tuple[int, Term]] = {}  # with the numbers of their lines
    for number, line in enumerate(data.removeprefix(b"\xef\xbb\xbf").split(b"\n"), 1):
        try:
            text = line.decode().removesuffix("\r")
            if not text.strip() or text.startswith("#"):
                continue
            term = _parsed(text)
        except ValueError as error:
            fault = "is not UTF-8; save the file as UTF-8" if isinstance(error, UnicodeDecodeError) else str(error)
            raise InputError(f"{name}:{number}: {fault}") from None
        first, other = terms.setdefault(_words(term.source).written, (number, term))
        if set(other.targets) != set(term.targets):
            what = f"{term.source!r} has other targets than in line {first}; put all in one line, with | between"
            raise InputError(f"{name}:{number}: {what}")
    if not terms:
        log.warning(f"{name}: has no terms")
    return Glossary(tuple(term for _, term in terms.values()))


def _parsed(line: str) -> Term:
    """Parses the term of a line. Raises ValueError for a malformed line."""
    cells = [cell.strip() for cell in line.split("\t")]
    if len(cells) != 2:
        found = "no TAB" if len(cells) == 1 else f"{len(cells) - 1} TABs"
        raise ValueError(f"has {found}; write a source term, one TAB and a target term")
    source, targets = cells[0], [target.strip() for target in cells[1].split("|")]
    if max(map(len, [source, *targets])) > LONGEST:
        raise ValueError(f"has a term of more than {LONGEST} characters; leave it out")
    if not _words(source).spans:
        raise ValueError("has no source term; write one before the TAB, or leave the line out")
    if not all(_words(target).spans for target in targets):
        what = "an empty variant" if len(targets) > 1 else "no target term"
        raise ValueError(f"has {what}; write a target term after the TAB, and one on each side of |")
    return Term(source, tuple(dict.fromkeys(targets)))

"""Division of a text into segments that are short enough for a model: at sentence ends, then at punctuation, then at
white space, then anywhere."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nmt.core import log
from nmt.data.sentences import sentence_spans

if TYPE_CHECKING:
    from nmt.data.words import Span

_BREAKS = (re.compile(r"[;:](?=\s)|[；：]"), re.compile(r"\s[–—-](?=\s)|[–—,،、](?=\s)|[，、]"), re.compile(r"(?=\s)"))
"""Breaks within a sentence, the best first: a segment ends at the end of a match."""

_MARGIN = 0.2
"""Share of a text's length: punctuation nearer to its ends splits it only if nothing else does."""


@dataclass(frozen=True)
class SourceLengths:
    """The source lines that a model was trained on: their lengths in subwords, and shares of them. A share is None if
    an earlier version of `nmt prepare` has not counted it."""

    usual: int
    """Length that 99 of 100 lines do not exceed."""
    longest: int
    several: float | None = None
    """Share of lines with a sentence end inside."""
    letterless: float | None = None
    """Share of lines without a letter."""


def left_blank(lines: tuple[int, ...], reason: str) -> None:
    """Warns of sentence pairs that are too long to be scored or aligned, with their line numbers: their output is
    blank, and the others are processed. Each model or method that leaves them out calls this."""
    if lines:
        numbers, more = ", ".join(map(str, lines[:10])), f" and {len(lines) - 10} more" if len(lines) > 10 else ""
        log.warning(f"line{'s' * (len(lines) > 1)} {numbers}{more}: left blank: {reason}")


def split_long(
    text: str,
    count: Callable[[str], int],
    lengths: SourceLengths | None,
    language: str | None = None,
    by_sentence: bool = False,
) -> list[Span]:
    """Divides a text into segments, in order, without the white space around them; the segments and the white space
    make up the text. A blank text has no segments.

    A text of at most ``lengths.usual`` subwords, as counted by ``count``, is one segment, and so is any text if
    ``lengths`` is None; ``by_sentence`` overrides both. Any other text is split at all its sentence ends, which depend
    on its ``language``. A sentence of more than ``lengths.longest`` subwords is halved until no part is longer: at the
    best punctuation that leaves neither part too short, at the position nearest to its middle, or else at the white
    space nearest to it. A longer word is halved, too, between two characters.
    """
    begin, end = len(text) - len(text.lstrip()), len(text.rstrip())
    if not by_sentence and (begin >= end or lengths is None or count(text) <= lengths.usual):
        return [(begin, end)] if begin < end else []
    spans = sentence_spans(text, language)
    if lengths is None:
        return spans
    return [each for span in spans for each in split_in_half(text, span, count, lengths.longest)]


def split_in_half(text: str, span: Span, count: Callable[[str], int], longest: int) -> list[Span]:
    """Divides a sentence into parts of at most ``longest`` subwords each, unless a single character has more."""
    segments: list[Span] = []
    waiting = [span]
    while waiting:
        begin, end = waiting.pop()
        if count(text[begin:end]) <= longest or (split := _middle_break(text, begin, end)) is None:
            segments.append((begin, end))
            continue
        first = begin + len(text[begin:split].rstrip())
        second = end - len(text[split:end].lstrip())
        waiting += [(second, end), (begin, first)]
    return segments


def _middle_break(text: str, begin: int, end: int) -> int | None:
    """Finds the best position to split the text, strictly between ``begin`` and ``end``."""
    middle = (begin + end) / 2
    for margin in (_MARGIN, 0.0):
        least, most = begin + margin * (end - begin), end - margin * (end - begin)
        for breaks in _BREAKS:
            ends = [match.end() for match in breaks.finditer(text, begin, end) if begin < match.end() < end]
            ends = [offset for offset in ends if least <= offset <= most]
            if ends:
                return min(ends, key=lambda offset: (abs(offset - middle), -offset))
    # text without white space is split at a word, such as those in a script without spaces or in an address, or else
    # between two characters, but not before an accent or vowel sign
    from nmt.data.words import text_words

    words = [begin + first for first, _ in text_words(text[begin:end]) if first > 0]
    inside = words or [at for at in range(begin + 1, end) if unicodedata.category(text[at])[0] not in "MC"]
    return min(inside, key=lambda offset: abs(offset - middle), default=None)

"""A text in pieces that a model can bear: at sentence ends, then at punctuation, then at white space."""

from __future__ import annotations

import re
from collections.abc import Callable

from nmt.data.sentences import Span, sentence_spans

_BREAKS = (
    re.compile(r"[;:](?=\s)|[；：]"),
    re.compile(r"\s[–—-](?=\s)|[–—,،、](?=\s)|[，、]"),
    re.compile(r"(?=\s)"),
)
"""Where to split what is no sentence end, the best places first: a piece ends where a match does."""

_MARGIN = 0.2
"""Of a text's length: punctuation nearer to its ends than that splits it only where there is no other way."""


def split_long(text: str, fits: Callable[[str], bool]) -> list[Span]:
    """The pieces of a text, in order, without the white space around them; between them there is nothing else. None for
    a blank text.

    A text that ``fits`` is one piece. Any other is split at all its sentence ends; a sentence that does not fit is
    halved at the best punctuation that leaves neither part too short, at the place nearest to its middle, or else at
    the white space nearest to it, until all parts fit. A single word is never split.
    """
    begin = len(text) - len(text.lstrip())
    whole = (begin, begin + len(text.strip()))
    if whole[0] == whole[1]:
        return []
    if fits(text):
        return [whole]
    return [piece for sentence in sentence_spans(text) for piece in _halved(text, sentence, fits)]


def _halved(text: str, span: Span, fits: Callable[[str], bool]) -> list[Span]:
    """Parts of ``span`` that fit, as far as there is white space."""
    pieces: list[Span] = []
    waiting = [span]
    while waiting:
        begin, end = waiting.pop()
        if fits(text[begin:end]) or (place := _middle_break(text, begin, end)) is None:
            pieces.append((begin, end))
            continue
        first = begin + len(text[begin:place].rstrip())
        second = end - len(text[place:end].lstrip())
        waiting += [(second, end), (begin, first)]
    return pieces


def _middle_break(text: str, begin: int, end: int) -> int | None:
    """The best place to split the text between ``begin`` and ``end``, neither of which it is."""
    middle = (begin + end) / 2
    for margin in (_MARGIN, 0.0):
        least, most = begin + margin * (end - begin), end - margin * (end - begin)
        for breaks in _BREAKS:
            places = [match.end() for match in breaks.finditer(text, begin, end) if begin < match.end() < end]
            places = [place for place in places if least <= place <= most]
            if places:
                return min(places, key=lambda place: (abs(place - middle), -place))
    return None

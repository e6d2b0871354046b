"""Builds the marked text of a block from the pieces of a file: text, and inline elements with numbered tags."""

from __future__ import annotations

import re
import textwrap
import unicodedata
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from typing import Literal, TypeAlias, TypeVar

from nmt.extras.documents.files.document import MARKUP, Block, Span, as_markup
from nmt.extras.documents.markup import partners_of

SPACES = " \t\r\n\f"
"""White space that may be collapsed; a no-break space is not."""

SPACE = re.compile(f"[{SPACES}]+")
_VALUE = re.compile(r"%[^$(<]*\Z")
"""A placeholder like ``%d``, by whose order a program puts in values; its tag is ``<x1./>``."""


Kind: TypeAlias = Literal["text", "open", "close", "alone"]


@dataclass(frozen=True)
class Fragment:
    """A part of a file inside a block.

    Attributes:
        kind: Text, the beginning or the end of an inline element, or a thing between words, such as an image.
        begin, end: Its characters in the file.
        text: The text, with ``&``, ``<`` and ``>`` as entities.
        name: The name of the element.
    """

    kind: Kind
    begin: int
    end: int
    text: str = ""
    name: str = ""


AnyPiece = TypeVar("AnyPiece", bound=Fragment)


def fragments(text: str, begin: int, end: int, markup: re.Pattern[str]) -> Iterator[Fragment]:
    """Divides a part of a file into text and what a pattern finds in it: the beginnings and ends of elements, with
    their names in its groups ``open`` and ``close``, and things."""
    for match in [*markup.finditer(text, begin, end), None]:
        last = match.start() if match else end
        if begin < last:
            yield Fragment("text", begin, last, as_markup(text[begin:last]))
        if match:
            begin, name = match.end(), match[match.lastgroup or 0]
            kind: Kind = "open" if match.lastgroup == "open" else "close" if match.lastgroup == "close" else "alone"
            yield Fragment(kind, *match.span(), name=name)


def spans_of(pieces: Sequence[Fragment], place: str) -> list[Span]:
    """Returns the span of a block without white space, things and elements around all of its text; none if there is no
    letter or digit. White space is collapsed, as HTML and XML show it."""
    pieces = stripped(pieces)
    if not has_words(pieces):
        return []
    text, tags = numbered(pieces)
    first, last = pieces[0], pieces[-1]
    begin = first.begin + len(first.text) - len(first.text.lstrip(SPACES))
    end = last.end - (len(last.text) - len(last.text.rstrip(SPACES)))
    return [Span(begin, end, Block(text, place), {tag: (piece.begin, piece.end) for tag, piece in tags.items()})]


def with_lines(span: Span, text: str, pieces: Sequence[Fragment], spell: Callable[[str], str] = str) -> Span:
    """Returns a span of a file that has lines where the source has some: where there are pieces called "break". They
    are about as long as those of the source, and each is spelt by itself."""
    breaks = [piece for piece in pieces if piece.name == "break" and span.begin < piece.begin < span.end]
    line_begins = [span.begin, *(piece.end for piece in breaks)]
    line_ends = [*(piece.begin for piece in breaks), span.end]
    width = max(end - begin for begin, end in zip(line_begins, line_ends, strict=True))
    between = [text[piece.begin : piece.end] for piece in breaks]

    def spelt(translation: str) -> str:
        lines = [translation]
        if between:
            lines = textwrap.wrap(translation, width, break_long_words=False, break_on_hyphens=False)
        begins = ["", *between, *between[-1:] * len(lines)]
        return "".join(begin + spell(line) for begin, line in zip(begins, lines, strict=False))

    return replace(span, spell=spelt)


def has_words(pieces: Sequence[Fragment]) -> bool:
    """Returns True if there is a letter or digit in a text."""
    return any(character.isalnum() for piece in pieces for character in piece.text)


def numbered(pieces: Sequence[AnyPiece]) -> tuple[str, dict[str, AnyPiece]]:
    """Returns the marked text of a block, with numbered tags, and the piece of each tag."""
    partners = partners_of((piece.kind, piece.name) for piece in pieces)
    parts, tags = list[str](), dict[str, AnyPiece]()
    for index, piece in enumerate(pieces):
        if piece.kind == "text":
            parts.append(piece.text)
            continue
        # the tag of a pair has the number of its beginning
        partner = partners.get(index)
        number = min(index, index if partner is None else partner)
        mark = "." if _VALUE.match(piece.name) else ""
        tag = f"<x{number}{mark}/>" if partner is None else f"<x{number}>" if partner > index else f"</x{number}>"
        parts.append(tag)
        tags[tag] = piece
    return SPACE.sub(" ", "".join(parts)).strip(" "), tags


def stripped(pieces: Sequence[AnyPiece]) -> Sequence[AnyPiece]:
    """Removes pieces and pairs without text at both ends, and pairs of tags around everything."""
    partners, first, last = partners_of((piece.kind, piece.name) for piece in pieces), 0, len(pieces) - 1
    texts = [0, *accumulate(piece.kind == "text" and bool(piece.text.strip(SPACES)) for piece in pieces)]
    while first <= last:
        # an element at an end goes with its other tag, if there is no text between the two
        after, before = partners.get(first, first), partners.get(last, last)
        if after == last > first:
            first, last = first + 1, last - 1
        elif texts[first] == texts[after + 1]:
            first = after + 1
        elif texts[before] == texts[last + 1]:
            last = before - 1
        else:
            break
    return pieces[first : last + 1]


def length(marked: str) -> int:
    """Counts the characters of a marked text that are seen."""
    return len(MARKUP.sub(lambda match: "" if match.group()[0] == "<" else "x", marked))


def cut(marked: str, sizes: Sequence[int]) -> list[str]:
    """Cuts a marked text at white space, or between characters of a script without it, into parts with about the given
    shares of its length. Parts for which nothing is left are empty."""
    marked = marked.strip(SPACES)
    cuts = [match.span() for match in SPACE.finditer(marked)]
    if len(cuts) < len(sizes) - 1:
        is_wide = [unicodedata.east_asian_width(character) in "WF" for character in marked]
        cuts = [(index, index) for index in range(1, len(marked)) if is_wide[index - 1] and marked[index].isalnum()]
    begins = [0, *(begin for begin, _ in cuts), len(marked)]
    lengths = [*accumulate(length(marked[begin:end]) for begin, end in pairwise(begins))]
    total = max(sum(sizes), 1)
    parts, last, first = list[str](), 0, 0
    for index, size in enumerate(accumulate(sizes[:-1]), 1):
        # as many cuts are left over as there are parts to come
        end = len(cuts) - (len(sizes) - 1 - index)
        if first < end:
            aim = lengths[-1] * size / total
            best = min(bisect_left(lengths, aim, first, end), end - 1)
            if best > first and aim - lengths[best - 1] < lengths[best] - aim:
                best -= 1
            parts.append(marked[last : cuts[best][0]])
            last, first = cuts[best][1], best + 1
    parts.append(marked[last:])
    return [*parts, *[""] * (len(sizes) - len(parts))]

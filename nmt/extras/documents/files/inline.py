"""Builds the marked text of a block from the pieces of a file: text, and inline elements with numbered tags."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from nmt.extras.documents.files.document import Block, Span

_SPACE = re.compile(r"[ \t\r\n\f]+")


@dataclass(frozen=True)
class Piece:
    """A part of a file inside a block.

    Attributes:
        kind: Text, the beginning or the end of an inline element, or a thing between words, such as an image.
        begin, end: Its characters in the file.
        text: The text, with ``&``, ``<`` and ``>`` as entities.
        name: The name of the element.
    """

    kind: Literal["text", "open", "close", "alone"]
    begin: int
    end: int
    text: str = ""
    name: str = ""


def spans_of(pieces: Sequence[Piece], place: str) -> list[Span]:
    """Returns the span of a block without white space, things and elements around all of its text; none if there is no
    letter or digit. White space is collapsed, as HTML and XML show it."""
    pieces = _stripped(pieces)
    if not any(character.isalnum() for piece in pieces for character in piece.text):
        return []
    partners = _partners(pieces)
    parts, tags = list[str](), dict[str, tuple[int, int]]()
    for index, piece in enumerate(pieces):
        if piece.kind == "text":
            parts.append(piece.text)
            continue
        # the tag of a pair has the number of its beginning
        partner = partners.get(index)
        number = min(index, index if partner is None else partner)
        tag = f"<x{number}/>" if partner is None else f"<x{number}>" if partner > index else f"</x{number}>"
        parts.append(tag)
        tags[tag] = (piece.begin, piece.end)
    text = _SPACE.sub(" ", "".join(parts))
    begin = pieces[0].begin + len(pieces[0].text) - len(pieces[0].text.lstrip(" \t\r\n\f"))
    end = pieces[-1].end - (len(pieces[-1].text) - len(pieces[-1].text.rstrip(" \t\r\n\f")))
    return [Span(begin, end, Block(text.strip(" "), place), tags)]


def _stripped(pieces: Sequence[Piece]) -> Sequence[Piece]:
    """Removes pieces without text at both ends, and pairs of tags around everything."""
    partners, first, last = _partners(pieces), 0, len(pieces) - 1
    while first <= last:
        if partners.get(first) == last:
            first, last = first + 1, last - 1
        elif _is_blank(pieces[first]) or (pieces[first].kind != "text" and first not in partners):
            first += 1
        elif _is_blank(pieces[last]) or (pieces[last].kind != "text" and last not in partners):
            last -= 1
        else:
            break
    return pieces[first : last + 1]


def _is_blank(piece: Piece) -> bool:
    return piece.kind == "text" and not piece.text.strip(" \t\r\n\f")


def _partners(pieces: Sequence[Piece]) -> dict[int, int]:
    """Pairs the end of each element with the last beginning of its name, and the reverse; the others have none."""
    opened, names, partners = list[int](), Counter[str](), dict[int, int]()
    for index, piece in enumerate(pieces):
        if piece.kind == "open":
            opened.append(index)
            names[piece.name] += 1
        elif piece.kind == "close" and names[piece.name]:
            while pieces[beginning := opened.pop()].name != piece.name:
                names[pieces[beginning].name] -= 1
            names[piece.name] -= 1
            partners |= {beginning: index, index: beginning}
    return partners

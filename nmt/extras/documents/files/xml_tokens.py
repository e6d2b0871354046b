"""XML as a sequence of tokens with their places, so that what is not translated keeps its bytes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from html import unescape
from itertools import accumulate, pairwise
from typing import Any, Literal, TypeAlias
from xml.parsers import expat
from xml.sax.saxutils import escape

from nmt.extras.documents.files.document import DamagedFile

Kind: TypeAlias = Literal["text", "cdata", "open", "close", "alone", "other"]

MOST_NESTED = 1000
"""Maximum depth of elements."""

MOST_TOKENS = 3_000_000
"""Maximum number of tokens: a thousand pages or two, in about a gigabyte of memory."""

_NO_ATTRIBUTES: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class Token:
    """A tag, a text or something else between two others.

    Attributes:
        kind: "open" and "close" are the two tags of an element; ``<a/>``, without content, is "alone". Characters in
            a "text" are written as in XML, in "cdata" as they are.
        begin, end: Its characters in the file.
        name: The name of an element as it is written, with its prefix (``w:p``).
        attributes: Those of an element, by their names as they are written, without entities.
    """

    kind: Kind
    begin: int
    end: int = 0
    name: str = ""
    attributes: Mapping[str, str] = field(default_factory=dict)


def tokens(text: str) -> list[Token]:
    """Divides a well-formed text into tokens, without gaps. Raises DamagedFile for any other, and for one that declares
    entities, which could expand to anything."""
    data = text.encode("utf-8", "surrogatepass")
    parser, found, depth = expat.ParserCreate("utf-8"), list[Token](), 0
    text_kind: Kind = "text"

    def add(kind: Kind, name: str = "", attributes: Mapping[str, str] | None = None) -> None:
        nonlocal depth
        depth += (kind == "open") - (kind == "close")
        if depth > MOST_NESTED:
            raise DamagedFile("nests its elements too deep to be a document")
        if not (found and kind == found[-1].kind and kind in ("text", "cdata")):
            found.append(Token(kind, parser.CurrentByteIndex, name=name, attributes=attributes or _NO_ATTRIBUTES))
        if len(found) > MOST_TOKENS:
            raise DamagedFile("is too long to be translated at once; divide it")

    def refuse(*_: Any) -> None:
        raise DamagedFile("declares entities of its own, which is not safe to read; save it without them")

    def section(kind: Kind) -> None:
        nonlocal text_kind
        text_kind = kind
        add("other")

    parser.StartElementHandler, parser.EndElementHandler = partial(add, "open"), partial(add, "close")
    parser.CharacterDataHandler = lambda _: add(text_kind)
    parser.SkippedEntityHandler = lambda *_: add("text")
    parser.StartCdataSectionHandler, parser.EndCdataSectionHandler = lambda: section("cdata"), lambda: section("text")
    parser.EntityDeclHandler = refuse
    for handler in ("CommentHandler", "ProcessingInstructionHandler", "StartDoctypeDeclHandler", "XmlDeclHandler"):
        setattr(parser, handler, lambda *_: add("other"))
    try:
        parser.Parse(data, True)
    except expat.ExpatError as error:
        raise DamagedFile(f"is not well-formed XML, line {error.lineno}: {expat.ErrorString(error.code)}") from None
    return _placed(found, data)


def _placed(found: list[Token], data: bytes) -> list[Token]:
    """Turns the bytes where tokens begin into characters, adds their ends, and joins the tags of ``<a/>``."""
    parts = (data[slice(*span)] for span in pairwise([0, *(token.begin for token in found), len(data)]))
    borders = list(accumulate(len(part.decode("utf-8", "surrogatepass")) for part in parts))
    placed = list[Token]()
    for token, (begin, end) in zip(found, pairwise(borders), strict=True):
        is_empty = token.kind == "close" and data[token.begin - 2 : token.begin] == b"/>"
        if is_empty and placed and placed[-1].kind == "open":
            placed[-1] = replace(placed[-1], kind="alone", end=end)
        else:
            placed.append(replace(token, begin=begin, end=end))
    return placed


def marked(text: str) -> str:
    """Returns characters of XML as in a block, where only ``&``, ``<`` and ``>`` are entities."""
    return escape(unescape(text))

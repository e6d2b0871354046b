"""XLIFF 1.2 and 2.

The source of a unit is translated into its target if that is missing or empty, or is still a copy of the source by its
state. Other targets, approved units and what ``translate="no"`` encloses stay. A new target has the state of a machine
translation that nobody has read: in 1.2 "needs-review-translation", with the qualifier "leveraged-mt"; in 2, which has
no such state, its segment is "translated". Inline elements of the source are copied. Everything else keeps its bytes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from xml.sax.saxutils import escape

from nmt.extras.documents.files.bilingual import BilingualDocument, TranslationUnit, message_spans
from nmt.extras.documents.files.document import DamagedFile, DocumentFile, TextDocument, decoded, line_names
from nmt.extras.documents.files.inline import Fragment, Kind
from nmt.extras.documents.files.xml_tokens import Token, tokens

_PAIRS = frozenset(("g", "pc", "mrk"))
"""Inline elements that enclose text. What others enclose is code."""

_MARK = re.compile(
    r"(?:(?P<open>(?:bpt|bx|sc|sm) |x START_)|(?P<close>(?:ept|ex|ec|em) |x CLOSE_))(?P<pair>.*?)(?:_\d+)?\Z"
)
"""The names and numbers of inline elements that are themselves the beginning or the end of something, and those of
Angular."""

_CDATA = re.compile(r"<!\[CDATA\[((?:(?!\]\]>).)*+)(?:\]\]>|\Z)", re.DOTALL)
_STATE = re.compile(r"""\s(?:state|state-qualifier|subState)\s*=\s*(?:"[^"]*"|'[^']*')""")
_UNTRANSLATED = frozenset(("", "new", "needs-translation", "initial"))


@dataclass
class _XmlElement:
    """An element, with its children by their names.

    Attributes:
        opening, closing: Its tags.
        is_kept: True if it is not translated, by its attributes or those of an element around it.
        has_lines: True if the line breaks in it are text.
    """

    opening: Token
    closing: Token
    is_kept: bool = False
    has_lines: bool = False
    children: dict[str, _XmlElement] = field(default_factory=dict)


def read(data: bytes) -> DocumentFile:
    """Reads a file. Raises DamagedFile."""
    text, encoding = decoded(data)
    found = tokens(text)
    root = next(token for token in found if token.kind in ("open", "alone"))
    version = root.attributes.get("version", "")[:2]
    if _local(root) != "xliff" or version not in ("1.", "2."):
        raise DamagedFile("is not XLIFF of version 1.2 or 2")
    line_of, units = line_names(text), list[TranslationUnit]()
    for element in _elements(found, "trans-unit" if version == "1." else "segment"):
        units += _unit(text, element, version == "1.", line_of(element.opening.begin))
    if any(after.begin < before.end for before, after in pairwise(units)):
        raise DamagedFile("has a unit inside another one")
    return BilingualDocument(text, units, encoding)


def _local(token: Token) -> str:
    """Returns the name of an element without its prefix."""
    return token.name.rpartition(":")[2]


def _elements(found: Sequence[Token], name: str) -> Iterator[_XmlElement]:
    """Yields the elements of a name that are to be translated."""
    opened = [_XmlElement(found[0], found[0])]
    for token in found:
        if token.kind in ("open", "alone"):
            element, attributes = replace(opened[-1], opening=token, children={}), token.attributes
            if "translate" in attributes:
                element.is_kept = attributes["translate"] == "no"
            if "xml:space" in attributes:
                element.has_lines = attributes["xml:space"] == "preserve"
            opened[-1].children[_local(token)] = element
            opened.append(element)
        if token.kind in ("close", "alone"):
            element = opened.pop()
            element.closing = token
            if _local(token) == name and not element.is_kept and element.opening.attributes.get("approved") != "yes":
                yield element


def _unit(text: str, element: _XmlElement, is_version_1: bool, place: str) -> Iterator[TranslationUnit]:
    """Yields the unit of an element if it has no translation."""
    opening, source, target = element.opening, element.children.get("source"), element.children.get("target")
    if source is None:
        return
    source = element.children.get("seg-source", source)
    content = text[source.opening.end : source.closing.begin]
    if target is None:
        begin = end = source.closing.end
        before = text[text.rfind(">", 0, source.opening.begin) + 1 : source.opening.begin]  # the indentation
        name = source.opening.name.replace(_local(source.opening), "target")
        tag = f"<{name}>"
    else:
        begin, end, before, name = target.opening.begin, target.closing.end, "", target.opening.name
        tag, inside = text[begin : target.opening.end], text[target.opening.end : target.closing.begin]
        state = (target.opening if is_version_1 else opening).attributes.get("state", "")
        is_copy = inside == content and (state or not is_version_1)
        if state not in _UNTRANSLATED or not (is_copy or not re.sub("<[^<>]*>", "", inside).strip()):
            return
    if is_version_1:
        before += _opening(tag, ' state="needs-review-translation" state-qualifier="leveraged-mt"')
    else:
        # the state is that of the segment, whose tag is before the source
        segment = _opening(text[opening.begin : opening.end], ' state="translated"')
        before = segment + text[opening.end : begin] + before + _opening(tag)
        begin = opening.begin
    yield TranslationUnit(
        begin, end, _source(content, place, source.has_lines), lambda content: f"{before}{content[3:-4]}</{name}>"
    )


def _opening(tag: str, attributes: str = "") -> str:
    """Returns an opening tag with another state."""
    return _STATE.sub("", tag).rstrip("/> \t\r\n") + attributes + ">"


def _source(content: str, place: str, has_lines: bool) -> TextDocument:
    """Returns the content of a source in an element of its own, with its blocks."""
    text = _CDATA.sub(lambda match: escape(match[1]), f"<s>{content}</s>")
    pieces, depth = list[Fragment](), 0
    for token in tokens(text)[1:-1]:
        name, attributes = _local(token), token.attributes
        number = next((attributes[key] for key in ("rid", "startRef", "id") if key in attributes), "")
        mark = _MARK.match(f"{name} {number}")
        if depth:  # in a code
            depth += (token.kind == "open") - (token.kind == "close")
            pieces[-1] = replace(pieces[-1], end=token.end)
        elif token.kind == "text":
            pieces.append(Fragment("text", token.begin, token.end))
        elif token.kind == "close" or (token.kind == "open" and name in _PAIRS and attributes.get("translate") != "no"):
            pieces.append(Fragment(token.kind, token.begin, token.end, name=name))
        else:
            kind: Kind = "alone" if mark is None else "open" if mark["open"] else "close"
            pieces.append(Fragment(kind, token.begin, token.end, name=f"mark {mark['pair'] if mark else ''}"))
            depth = int(token.kind == "open")
    return TextDocument(text, message_spans(text, pieces, place, has_lines))

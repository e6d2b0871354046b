"""XLIFF 1.2 and 2.

The source of a unit is translated into its target if that is missing or empty, or is still a copy of the source by its
state. Other targets, approved units and what ``translate="no"`` encloses stay. A new target has the state of a machine
translation that nobody has read: in 1.2 "needs-review-translation", with the qualifier "leveraged-mt"; in 2, which has
no such state, its segment is "translated". Inline elements of the source are copied. Everything else keeps its bytes.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from nmt.extras.documents.files.bilingual import BilingualDocument, Unit, message_spans
from nmt.extras.documents.files.document import DamagedFile, Document, Span, TextDocument, as_markup, spell_as
from nmt.extras.documents.files.inline import SPACES, Kind, Piece
from nmt.extras.documents.files.xml_tokens import Token, decoded, tokens

_PAIRS = frozenset(("g", "pc", "mrk"))
"""Inline elements that enclose text. What others enclose is code."""

_MARKS: Mapping[str, Kind] = {"bpt": "open", "bx": "open", "sc": "open", "sm": "open"} | dict.fromkeys(
    ("ept", "ex", "ec", "em"), "close"
)
"""Inline elements that are themselves the beginning or the end of something."""

_UNTRANSLATED = frozenset(("", "new", "needs-translation", "initial"))


@dataclass
class _Element:
    """An element, by the indices of its tags, with its children and what elements around it say of it."""

    name: str
    begin: int
    end: int
    is_kept: bool = False
    has_lines: bool = False
    children: list[_Element] = field(default_factory=list)


def read(data: bytes) -> Document:
    """Reads a file. Raises DamagedFile."""
    text, encoding = decoded(data)
    found = tokens(text)
    root = next(token for token in found if token.kind in ("open", "alone"))
    version = root.attributes.get("version", "")[:2]
    if _local(root.name) != "xliff" or version not in ("1.", "2."):
        raise DamagedFile("is not XLIFF of version 1.2 or 2")
    newlines = [match.start() for match in re.finditer("\n", text)]
    elements = _elements(found, "trans-unit" if version == "1." else "segment")
    units = [
        unit
        for element in elements
        for line in [bisect_right(newlines, found[element.begin].begin) + 1]
        for unit in _units(text, found, element, version, f"line {line}")
    ]
    return BilingualDocument(text, units, encoding)


def _local(name: str) -> str:
    return name.rpartition(":")[2]


def _elements(found: Sequence[Token], name: str) -> list[_Element]:
    """Returns the elements of a name."""
    opened, elements = [_Element("", 0, 0)], list[_Element]()
    for index, token in enumerate(found):
        if token.kind in ("open", "alone"):
            parent, says = opened[-1], token.attributes
            element = _Element(_local(token.name), index, index, parent.is_kept, parent.has_lines)
            if "translate" in says:
                element.is_kept = says["translate"] == "no"
            if "xml:space" in says:
                element.has_lines = says["xml:space"] == "preserve"
            parent.children.append(element)
            opened.append(element)
            if element.name == name:
                elements.append(element)
        if token.kind in ("close", "alone"):
            opened.pop().end = index
    return elements


def _units(text: str, found: Sequence[Token], element: _Element, version: str, place: str) -> Iterator[Unit]:
    """Yields the unit of an element if it is to be translated."""
    children = {child.name: child for child in element.children}
    opening, source, target = found[element.begin], children.get("source"), children.get("target")
    if source is None or element.is_kept or opening.attributes.get("approved") == "yes":
        return
    source = children.get("seg-source", source)
    content = text[found[source.begin].end : found[source.end].begin]
    if target is not None:
        state = (found[target.begin] if version == "1." else opening).attributes.get("state", "")
        inside = found[target.begin + 1 : target.end]
        is_empty = all(_local(token.name) == "mrk" or not text[token.begin : token.end].strip() for token in inside)
        is_copy = text[found[target.begin].end : found[target.end].begin] == content and (state or version == "2.")
        if state not in _UNTRANSLATED or not (is_empty or is_copy):
            return
    spans = _spans(content, found[source.begin + 1 : source.end], found[source.begin].end, place, source.has_lines)
    if not spans:
        return
    tag, end = found[source.begin], found[source.end].end
    before, name = found[source.begin - 1], tag.name.replace(_local(tag.name), "target")
    indent = text[before.begin : before.end] if before.kind == "text" else ""
    written, begin, raw = f"<{name}>", end, ""
    if target is not None:
        begin, end, indent = found[target.begin].begin, found[target.end].end, ""
        written, name = text[begin : found[target.begin].end], found[target.begin].name
    if version == "1.":
        written = _with(written, state="needs-review-translation", **{"state-qualifier": "leveraged-mt"})
    else:
        # the state is that of the segment, whose tag is before the source
        raw = _with(text[opening.begin : opening.end], state="translated") + text[opening.end : begin]
        written, begin = _with(written), opening.begin
    yield Unit(begin, end, [TextDocument(content, spans)], lambda texts: f"{raw}{indent}{written}{texts[0]}</{name}>")


def _with(tag: str, **attributes: str) -> str:
    """Returns an opening tag with other attributes; its state in detail, which goes with the former one, goes."""
    for name in (*attributes, "subState"):
        tag = re.sub(rf"""\s+{name}\s*=\s*(?:"[^"]*"|'[^']*')""", "", tag)
    return tag.rstrip("/> \t\r\n") + "".join(f' {name}="{value}"' for name, value in attributes.items()) + ">"


def _spans(content: str, inside: Sequence[Token], shift: int, place: str, has_lines: bool) -> list[Span]:
    """Returns the spans of the content of a source, which begins at an offset of the file: of its segments, if it has
    some."""
    if any(token.kind == "cdata" for token in inside):
        # text with tags of HTML; not between other text, which is written in another way
        texts = [token for token in inside if content[token.begin - shift : token.end - shift].strip(SPACES)]
        if [token.kind for token in texts] != ["other", "cdata", "other"]:
            return []
        begin, end = texts[1].begin - shift, texts[1].end - shift
        spell = spell_as(content[begin:end])
        return message_spans(
            content, [Piece("text", begin, end)], place, has_lines=has_lines, has_tags=True,
            spell_text=lambda text: spell(text).replace("]]>", "]] >"),
        )  # fmt: skip
    groups, in_segment = [list[Piece]()], 0
    has_segments = any(token.attributes.get("mtype") == "seg" for token in inside)
    for piece in _pieces(content, inside, shift):
        if piece.name == "seg":
            in_segment += 1 if piece.kind == "open" else -1
            groups.append([])
        elif in_segment or not has_segments:
            groups[-1].append(piece)
    return [span for group in groups for span in message_spans(content, group, place, has_lines=has_lines)]


def _pieces(content: str, inside: Sequence[Token], shift: int) -> Iterator[Piece]:
    """Yields the text and the inline elements of a source; those of a pair, and the two marks of one, have a name of
    their own."""
    names, code, depth = list[str](), Piece("alone", 0, 0), 0
    for index, token in enumerate(inside):
        begin, end, name, says = token.begin - shift, token.end - shift, _local(token.name), token.attributes
        if depth:
            depth += (token.kind == "open") - (token.kind == "close")
            if depth == 0:
                yield replace(code, end=end)
        elif token.kind == "text":
            yield Piece("text", begin, end, as_markup(content[begin:end]))
        elif token.kind == "close":
            yield Piece("close", begin, end, name=names.pop())
        elif token.kind == "open" and name in _PAIRS and says.get("translate") != "no":
            names.append("seg" if says.get("mtype") == "seg" else f"{name} {index}")
            yield Piece("open", begin, end, name=names[-1])
        else:
            number = next((says[key] for key in ("rid", "startRef", "id") if key in says), "")
            code = Piece(_MARKS.get(name, "alone"), begin, end, name=f"mark {number}")
            if token.kind == "open":
                depth = 1
            else:
                yield code

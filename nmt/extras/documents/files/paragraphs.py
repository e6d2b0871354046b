"""Paragraphs in the XML of office programs.

A format says what role each element has. The elements inside a paragraph that have none are things between words, which
stay: images, notes, formulas. Paragraphs inside a thing, such as those of a text box, are blocks of their own.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal, TypeAlias
from xml.sax.saxutils import escape

from nmt.extras.documents.files.document import Block, Span, TextDocument, decoded
from nmt.extras.documents.files.runs import NO_RUN, RunPiece, TextRun, run_spans
from nmt.extras.documents.files.xml_tokens import Token, marked, tokens

Role: TypeAlias = Literal[
    "paragraph",
    "run",  # a text with a format
    "format",  # the format of a run, at its beginning
    "text",  # the text of a run; in a format without this role, text may stand everywhere in a paragraph
    "container",  # an inline element such as a link
    "head",  # the properties of a container, which belong to its beginning
    "content",  # the content of a container that has properties
    "range",  # an empty element that marks the beginning or the end of a stretch of text
    "break",  # ends a block
    "space",
    "hyphen",
    "ignored",  # an element that says nothing about another text
    "left",  # an element in which everything stays, paragraphs too
    "field",  # see the format
    "thing",
]

_CHARACTERS: Mapping[Role, str] = {"space": " ", "hyphen": "-"}
_QUOTES = {ord('"'): "&quot;", ord("'"): "&apos;"}
_ATTRIBUTE = re.compile(r"""\s([\w:.-]+)\s*=\s*(["'])(.*?)\2""", re.DOTALL)


@dataclass
class Paragraph:
    """A paragraph that is being read.

    Attributes:
        number: Its number in the file.
        is_apart: True for one inside a thing.
        pieces: The pieces since the last break.
        runs: The runs around this place; outside of runs, and at the beginning of a container, there is ``NO_RUN``.
        containers: The containers around this place: names that tell where they begin.
        fresh: Where runs began that have no piece yet, and the run before.
        content_end: The end of the content of a container that has properties.
        text: The beginning of an open text, and its parts.
        region: An element whose content is not read, its role, and the number of elements that are open in it.
        is_torn: True if its elements are in no sensible order; nothing is translated then.
    """

    number: int
    is_apart: bool
    pieces: list[RunPiece] = field(default_factory=list)
    runs: list[TextRun] = field(default_factory=lambda: [NO_RUN])
    containers: list[str] = field(default_factory=lambda: [""])
    fresh: tuple[int, TextRun] | None = None
    content_end: int | None = None
    text: tuple[int, list[str]] | None = None
    region: tuple[Token, Role] | None = None
    depth: int = 0
    is_torn: bool = False


class ParagraphReader:
    """Finds the blocks of an XML file."""

    namespaces: ClassVar[Mapping[str, str]] = {}
    """The prefix in ``roles`` for each namespace, which may have another one in a file."""

    roles: ClassVar[Mapping[str, Role]] = {}
    """The role of each element that is not a thing."""

    attributes: ClassVar[Mapping[str, Sequence[str]]] = {}
    """The attributes of each element that are text."""

    def __init__(self, content: bytes, is_apart: bool = False) -> None:
        """``is_apart`` is True for a file without running text. Raises DamagedFile."""
        self.source, self._encoding = decoded(content)
        self._is_apart = is_apart
        self._spans, self._open = list[Span](), list[Paragraph]()
        self._count = self._left = 0
        self._has_texts = "text" in self.roles.values()
        found = tokens(self.source)
        self._prefixes = {
            key.removeprefix("xmlns").removeprefix(":"): self.namespaces[value]
            for token in found
            for key, value in token.attributes.items()
            if key.startswith("xmlns") and value in self.namespaces
        }
        self.prepare(found)
        for token in found:
            self._read(token)

    @property
    def document(self) -> TextDocument:
        """The file as a document."""
        return TextDocument(self.source, self._spans, self._encoding)

    def prepare(self, found: Sequence[Token]) -> None:
        """Reads what the format must know before, such as styles."""

    def role(self, token: Token) -> Role:
        """Returns the role of an element."""
        return self.roles.get(self.name(token), "thing")

    def name(self, token: Token) -> str:
        """Returns the name of an element with its prefix in ``roles``."""
        prefix, _, name = token.name.rpartition(":")
        prefix = self._prefixes.get(prefix, prefix)
        return f"{prefix}:{name}" if prefix else name

    def run(self, outer: TextRun, token: Token) -> TextRun:
        """Returns the run that an element begins inside another one."""
        raise NotImplementedError

    def formatted(self, run: TextRun, properties: str) -> TextRun:
        """Returns a run with properties, an element."""
        raise NotImplementedError

    def read_field(self, paragraph: Paragraph, token: Token, end: int) -> None:
        """Reads an element of the role "field", which ends at ``end``."""
        raise NotImplementedError

    def add(self, paragraph: Paragraph, piece: RunPiece) -> None:
        """Adds a piece. The first piece in a run begins with the run."""
        if paragraph.fresh is not None:
            begin, before = paragraph.fresh
            piece, paragraph.fresh = replace(piece, begin=begin, before=before), None
        paragraph.pieces.append(piece)

    def extend(self, paragraph: Paragraph, end: int, is_head: bool = False) -> None:
        """Lets the last piece end later; with ``is_head``, that is the beginning of the last container."""
        name = paragraph.pieces[-1].name if paragraph.pieces else None
        if not is_head or (name == paragraph.containers[-1] and paragraph.runs[-1] is NO_RUN):
            paragraph.pieces[-1] = replace(paragraph.pieces[-1], end=end, after=paragraph.runs[-1])
        else:
            paragraph.is_torn = True

    def end_block(self, paragraph: Paragraph) -> None:
        """Makes a block of the pieces since the last break."""
        if not paragraph.is_torn:
            place = f"paragraph {paragraph.number}"
            self._spans += run_spans(paragraph.pieces, place, paragraph.is_apart)
        paragraph.pieces, paragraph.fresh = [], None

    def _read(self, token: Token) -> None:
        role: Role = "thing"
        if token.name:
            role = self.role(token)
            self._read_attributes(token)
        if self._left or (role == "left" and token.kind == "open"):
            self._left += (token.kind == "open") - (token.kind == "close")
        elif role != "paragraph":
            if self._open:
                self._read_inside(self._open[-1], token, role)
        elif token.kind == "close":
            self.end_block(self._open.pop())
        else:
            self._count += 1
            if self._open and self._open[-1].region is None:
                self._open[-1].is_torn = True  # no program writes a paragraph directly in another one
            if token.kind == "open":
                self._open.append(Paragraph(self._count, self._is_apart or bool(self._open)))

    def _read_attributes(self, token: Token) -> None:
        names = self.attributes.get(self.name(token), ()) if token.kind != "close" else ()
        for match in _ATTRIBUTE.finditer(self.source, token.begin, token.end) if names else ():
            if match[1] in names and any(map(str.isalnum, match[3])):
                block = Block(marked(match[3]), f"after paragraph {self._count}, {match[1]}", is_apart=True)
                self._spans.append(Span(*match.span(3), block, spell=lambda text: text.translate(_QUOTES)))

    def _read_inside(self, paragraph: Paragraph, token: Token, role: Role) -> None:
        if paragraph.region is not None:
            paragraph.depth += (token.kind == "open") - (token.kind == "close")
            if not paragraph.depth:
                self._end_region(paragraph, *paragraph.region, token.end)
        elif not token.name:
            if token.kind in ("text", "cdata"):
                self._read_text(paragraph, token)
        elif paragraph.text is not None and token.kind != "close":
            paragraph.is_torn = True  # nor an element in a text
            if token.kind == "open":
                paragraph.region, paragraph.depth = (token, "ignored"), 1
        elif role == "run":
            self._read_run(paragraph, token)
        elif role == "container" and token.kind != "alone":
            self._read_container(paragraph, token)
        elif role == "content" and token.kind != "alone":
            if token.kind == "close":
                paragraph.content_end = token.begin
            else:
                self.extend(paragraph, token.end, is_head=True)
        elif role == "text" and token.kind != "alone":
            self._read_text_element(paragraph, token)
        else:
            if role == "break":
                self.end_block(paragraph)
            if token.kind == "open":
                paragraph.region, paragraph.depth = (token, role), 1
            else:
                self._end_region(paragraph, token, role, token.end)

    def _end_region(self, paragraph: Paragraph, token: Token, role: Role, end: int) -> None:
        paragraph.region = None
        run = paragraph.runs[-1]
        if role in _CHARACTERS:
            self._add_text(paragraph, token.begin, end, _CHARACTERS[role])
        elif role == "format":
            paragraph.runs[-1] = self.formatted(run, self.source[token.begin : end])
        elif role in ("head", "content"):
            self.extend(paragraph, end, is_head=True)
        elif role == "range":
            # a stretch that crosses the border of a container has two tags that are no pair
            is_begin = token.name.endswith("tart")
            marks = {key.rpartition(":")[2]: value for key, value in token.attributes.items()}
            mark = next((marks[key] for key in ("id", "change-id", "name") if key in marks), "")
            stretch = token.name.rpartition(":")[2].removesuffix("tart" if is_begin else "nd")[:-1].rstrip("-")
            name = f"{stretch} {mark} in {paragraph.containers[-1]}"
            kind: Literal["open", "close"] = "open" if is_begin else "close"
            self.add(paragraph, RunPiece(kind, token.begin, end, name=name, before=run, after=run))
        elif role == "field":
            self.read_field(paragraph, token, end)
        elif role in ("thing", "container"):
            self.add(paragraph, RunPiece("alone", token.begin, end, before=run, after=run))

    def _read_run(self, paragraph: Paragraph, token: Token) -> None:
        if token.kind == "open":
            paragraph.fresh = paragraph.fresh or (token.begin, paragraph.runs[-1])
            paragraph.runs.append(self.run(paragraph.runs[-1], token))
        elif token.kind == "close":
            run = paragraph.runs.pop()
            if paragraph.fresh is None and paragraph.pieces and paragraph.pieces[-1].after is run:
                self.extend(paragraph, token.end)
            paragraph.fresh = None

    def _read_container(self, paragraph: Paragraph, token: Token) -> None:
        if token.kind == "open":
            piece = RunPiece("open", token.begin, token.end, before=paragraph.runs[-1])
            self.begin_container(paragraph, "element", piece)
            paragraph.runs.append(NO_RUN)
            return
        begin = token.begin if paragraph.content_end is None else paragraph.content_end
        paragraph.is_torn |= begin < token.begin and self.source.count("<", begin, token.begin) > 1
        paragraph.content_end = None
        before = paragraph.runs.pop()
        piece = RunPiece("close", begin, token.end, before=before, after=paragraph.runs[-1])
        self.end_container(paragraph, "element", piece)

    def begin_container(self, paragraph: Paragraph, kind: Literal["element", "field"], piece: RunPiece) -> None:
        """Adds the beginning of a container."""
        name = f"{kind} {piece.begin}"
        self.add(paragraph, replace(piece, name=name, divides=True))
        paragraph.containers.append(name)

    def end_container(self, paragraph: Paragraph, kind: Literal["element", "field"], piece: RunPiece) -> None:
        """Adds the end of the last container, which is of the given kind unless the paragraph is torn."""
        name = paragraph.containers[-1]
        if name.startswith(kind):
            paragraph.containers.pop()
        elif name:
            paragraph.is_torn = True
        self.add(paragraph, replace(piece, name=name, divides=True))

    def _read_text(self, paragraph: Paragraph, token: Token) -> None:
        text = self.source[token.begin : token.end]
        text = marked(text if token.kind == "text" else escape(text))
        if paragraph.text is not None:
            paragraph.text[1].append(text)
        elif not self._has_texts:
            # the marks around CDATA go with it
            margins = (len("<![CDATA["), len("]]>")) if token.kind == "cdata" else (0, 0)
            self._add_text(paragraph, token.begin - margins[0], token.end + margins[1], text)

    def _read_text_element(self, paragraph: Paragraph, token: Token) -> None:
        if token.kind == "open":
            paragraph.text = (token.begin, [])
        elif paragraph.text is not None:
            begin, parts = paragraph.text
            paragraph.text = None
            self._add_text(paragraph, begin, token.end, "".join(parts))

    def _add_text(self, paragraph: Paragraph, begin: int, end: int, text: str) -> None:
        run = paragraph.runs[-1]
        if run.is_hidden:
            self.add(paragraph, RunPiece("alone", begin, end, before=run, after=run))
        else:
            self.add(paragraph, RunPiece("text", begin, end, text, before=run, after=run, run=run))


class Titles(ParagraphReader):
    """Finds the titles and descriptions of a document, and the names of its chapters, in files about it."""

    namespaces: ClassVar[Mapping[str, str]] = {
        "http://purl.org/dc/elements/1.1/": "dc",
        "http://www.daisy.org/z3986/2005/ncx/": "ncx",
    }
    roles: ClassVar[Mapping[str, Role]] = dict.fromkeys(("dc:title", "dc:description", "ncx:text"), "paragraph")

"""Documents and slides of Microsoft Office (DOCX, PPTX), by ECMA-376.

The text of paragraphs is translated: those of the body, tables, headers, footers, notes, comments, text boxes, titles
of charts and diagrams, and descriptions of images. Links, comments, bookmarks, notes and images stay at their words.
Text that was inserted while changes are tracked is translated, and deleted and hidden text stays. The result of a
field stays, for the program computes it, but the text of a link or of a table of contents is translated.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

from nmt.extras.documents.files.document import DamagedFile, DocumentFile, decoded
from nmt.extras.documents.files.paragraphs import Paragraph, ParagraphReader, Role, Titles
from nmt.extras.documents.files.runs import RunPiece, TextRun
from nmt.extras.documents.files.xml_tokens import Token, tokens
from nmt.extras.documents.files.zip_file import Archive, ZipDocument

_TYPES = re.compile(
    r"application/vnd\.openxmlformats-officedocument\.(?:"
    r"(?P<running>wordprocessingml\.(?:document|template)\.main|presentationml\.slide)"
    r"|wordprocessingml\.(?:header|footer|footnotes|endnotes|comments)"
    r"|presentationml\.notesSlide|drawingml\.(?:chart|diagramData))\+xml"
    r"|application/vnd\.ms-office\.drawingml\.diagramDrawing\+xml"
    r"|(?P<title>application/vnd\.openxmlformats-package\.core-properties\+xml)"
)
"""Types of parts that have text."""

_TEXT_FIELDS = re.compile(r"\s*(?:HYPERLINK|TOC|INDEX)\b", re.IGNORECASE)
"""Fields whose results are text of the document."""

_NO_FORMAT = re.compile(
    r"<(?:\w+:)?(?:lang|noProof)\b[^<>]*/>|<w:rFonts w:hint=\"\w+\"/>"
    r"|\s(?:\w+:)?(?:rsid\w*|lang|altLang|dirty|err|smtClean|noProof|bmk)=\"[^\"]*\""
)
"""Notes of the program in the properties of a run, which do not change how it looks."""

_HIDDEN = re.compile(r"<(?:\w+:)?vanish\b(?![^<>]*\"(?:0|false|off)\")")
"""The property of a run that is not shown."""

_NO_PROPERTIES = re.compile(r"<[\w:]+\s*(?:/>|>\s*</[\w:]+\s*>)")


def read(data: bytes) -> DocumentFile:
    """Reads a document or slides. Raises DamagedFile."""
    archive = Archive(data)
    found = sorted(_text_parts(archive), key=lambda each: (not each[1]["running"], _numbers(each[0])))
    parts = dict[str, DocumentFile]()
    for name, kind in found:
        reader = Titles if kind["title"] else _OfficeReader
        parts[name] = reader(archive.content(name), is_apart=not kind["running"]).document
    if not any(kind["running"] for _, kind in found):
        raise DamagedFile("is neither a document nor slides of Office")
    return ZipDocument(data, archive, parts)


def _text_parts(archive: Archive) -> Iterator[tuple[str, re.Match[str]]]:
    """Yields the names and types of the parts that have text. Raises DamagedFile."""
    for token in tokens(decoded(archive.content("[Content_Types].xml"))[0]):
        kind = token.attributes.get("ContentType", "")
        if "macroEnabled" in kind or "vbaProject" in kind:
            raise DamagedFile("has macros, which could do anything to its text; save it without them")
        name = token.attributes.get("PartName", "").removeprefix("/")
        match = _TYPES.fullmatch(kind)
        if match is not None and name in archive.names:
            yield name, match


def _numbers(name: str) -> Sequence[tuple[int, str]]:
    """Returns a key that sorts slide10 after slide9."""
    return [(int(part) if part.isdigit() else 0, part) for part in re.split(r"(\d+)", name)]


class _OfficeReader(ParagraphReader):
    """Finds the blocks of a part."""

    namespaces: ClassVar[Mapping[str, str]] = {
        "http://schemas.openxmlformats.org/wordprocessingml/2006/main": "w",
        "http://purl.oclc.org/ooxml/wordprocessingml/main": "w",
        "http://schemas.openxmlformats.org/drawingml/2006/main": "a",
        "http://purl.oclc.org/ooxml/drawingml/main": "a",
    }
    roles: ClassVar[Mapping[str, Role]] = {
        "w:noBreakHyphen": "hyphen",
        "w:fldChar": "field",
        "w:instrText": "field",
        "w:sdtContent": "content",
        **dict.fromkeys(("w:p", "a:p"), "paragraph"),
        **dict.fromkeys(("w:r", "a:r"), "run"),
        **dict.fromkeys(("w:rPr", "a:rPr"), "format"),
        **dict.fromkeys(("w:t", "a:t"), "text"),
        **dict.fromkeys(("w:br", "w:cr", "w:tab", "w:ptab", "a:br"), "break"),
        **dict.fromkeys(("w:hyperlink", "w:ins", "w:moveTo", "w:smartTag", "w:customXml"), "container"),
        **dict.fromkeys(("w:sdt", "w:dir", "w:bdo"), "container"),
        **dict.fromkeys(("w:sdtPr", "w:sdtEndPr", "w:smartTagPr", "w:customXmlPr", "w:fldData"), "head"),
        **dict.fromkeys(("w:bookmarkStart", "w:bookmarkEnd", "w:commentRangeStart", "w:commentRangeEnd"), "range"),
        **dict.fromkeys(("w:permStart", "w:permEnd"), "range"),
        **dict.fromkeys(("w:pPr", "a:pPr", "w:proofErr", "w:lastRenderedPageBreak", "w:softHyphen"), "ignored"),
    }
    _kept: _Field | None
    """The field whose instruction or result is being read, unless that is text."""

    attributes: ClassVar[Mapping[str, Sequence[str]]] = dict.fromkeys(
        ("wp:docPr", "p:cNvPr", "pic:cNvPr"), ("descr", "title")
    )

    def prepare(self, found: Sequence[Token]) -> None:
        """See ``ParagraphReader``."""
        self._fields, self._kept, self._instruction = list[Literal["kept", "text"]](), None, ""

    def role(self, token: Token) -> Role:
        """See ``ParagraphReader``."""
        name = self.name(token)
        if name == "w:fldSimple" and (token.kind == "close" or _TEXT_FIELDS.match(_attribute(token, "instr"))):
            return "container"
        role = super().role(token)
        return "ignored" if role == "break" and self._kept is not None else role

    def run(self, outer: TextRun, token: Token) -> TextRun:
        """See ``ParagraphReader``."""
        name = f"{token.name[:-1]}t"
        space = ' xml:space="preserve"' if self.name(token) == "w:r" else ""
        tags = (f"{outer.begin}<{token.name}>", f"</{token.name}>{outer.end}")
        return TextRun("run", *tags, (f"<{name}{space}>", f"</{name}>"))

    def formatted(self, run: TextRun, properties: str) -> TextRun:
        """See ``ParagraphReader``."""
        looks = _NO_FORMAT.sub("", properties)
        looks = "" if _NO_PROPERTIES.fullmatch(looks) else looks
        is_hidden = _HIDDEN.search(properties) is not None
        return replace(run, format=f"run{looks}", begin=run.begin + properties, is_hidden=is_hidden)

    def add(self, paragraph: Paragraph, piece: RunPiece) -> None:
        """See ``ParagraphReader``."""
        if self._kept is None:
            super().add(paragraph, piece)

    def extend(self, paragraph: Paragraph, end: int, is_head: bool = False) -> None:
        """See ``ParagraphReader``."""
        if self._kept is None:
            super().extend(paragraph, end, is_head)

    def end_container(self, paragraph: Paragraph, kind: Literal["element", "field"], piece: RunPiece) -> None:
        """See ``ParagraphReader``."""
        if self._kept is not None and self._kept.paragraph is paragraph:
            paragraph.is_torn |= self._kept.container == paragraph.containers[-1]
        super().end_container(paragraph, kind, piece)

    def read_field(self, paragraph: Paragraph, token: Token, end: int) -> None:
        """Reads a part of a field: characters at its beginning, before its result, and at its end, and instructions."""
        kind = _attribute(token, "fldCharType")
        if self.name(token) == "w:instrText":
            self._instruction += self.source[token.end : end].rpartition("<")[0]
        elif kind == "begin":
            self._fields.append("kept")
            if self._kept is None:
                begin, before = paragraph.fresh or (token.begin, paragraph.runs[-1])
                self._kept = _Field(len(self._fields), paragraph, paragraph.containers[-1], begin, before)
                self._instruction, paragraph.fresh = "", None
        elif kind == "separate" and self._kept is not None and len(self._fields) == self._kept.depth:
            if _TEXT_FIELDS.match(self._instruction):
                self._fields[-1] = "text"
                self._add_field(self._kept, paragraph, "open", end)
        elif kind == "end" and self._fields:
            run = paragraph.runs[-1]
            if self._fields.pop() == "text":
                self.end_container(paragraph, "field", RunPiece("close", token.begin, end, before=run, after=run))
            elif self._kept is not None and len(self._fields) < self._kept.depth:
                self._add_field(self._kept, paragraph, "alone", end)

    def _add_field(self, start: _Field, paragraph: Paragraph, kind: Literal["open", "alone"], end: int) -> None:
        """Adds a field, or its part before a result that is text, and reads on."""
        self._kept, paragraph.fresh = None, None
        piece = RunPiece(kind, start.begin, end, before=start.before, after=paragraph.runs[-1])
        if start.paragraph is not paragraph:  # what was before it is in blocks of other paragraphs
            paragraph.is_torn |= len(paragraph.containers) > 1
        elif start.container != paragraph.containers[-1]:
            paragraph.is_torn = True
        elif kind == "open":
            self.begin_container(paragraph, "field", piece)
        else:
            self.add(paragraph, piece)


@dataclass(frozen=True)
class _Field:
    """The beginning of a field that is not text.

    Attributes:
        depth: Number of fields around its instruction, with itself.
        paragraph: Its paragraph.
        container: The name of its container.
        begin: Its place.
        before: The run there.
    """

    depth: int
    paragraph: Paragraph
    container: str
    begin: int
    before: TextRun


def _attribute(token: Token, name: str) -> str:
    """Returns an attribute, whatever its prefix is."""
    return next((value for key, value in token.attributes.items() if key.rpartition(":")[2] == name), "")

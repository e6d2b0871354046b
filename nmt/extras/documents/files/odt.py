"""Documents, tables and slides of OpenDocument (ODT, ODS, ODP), by ISO/IEC 26300.

The text of paragraphs and headings is translated, in the body, tables, headers, footers, notes, annotations, text boxes
and charts, and titles and descriptions. Links, bookmarks, notes and images stay at their words. Text that was deleted
while changes are tracked stays, and so do hidden text, fields, numbers and formulas of cells.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import ClassVar

from nmt.extras.documents.files.document import DamagedFile, DocumentFile
from nmt.extras.documents.files.paragraphs import ParagraphReader, Role
from nmt.extras.documents.files.runs import TextRun
from nmt.extras.documents.files.xml_tokens import Token
from nmt.extras.documents.files.zip_file import Archive, ZipDocument

_NAMESPACE = "urn:oasis:names:tc:opendocument:xmlns:"
_INVISIBLE = re.compile("rsid|language|country")
_STRETCHES = ("bookmark", "reference-mark", "change", "toc-mark", "user-index-mark", "alphabetical-index-mark")


def read(data: bytes) -> DocumentFile:
    """Reads a document. Raises DamagedFile."""
    archive = Archive(data)
    if not archive.content("mimetype").startswith(b"application/vnd.oasis.opendocument."):
        raise DamagedFile("is not an OpenDocument")
    if b"encryption-data" in archive.content("META-INF/manifest.xml"):
        raise DamagedFile("is encrypted; save it without a password")
    objects = [name for name in archive.names if name.endswith("/content.xml")]  # such as charts
    names = ["content.xml", *objects, *(name for name in ("styles.xml", "meta.xml") if name in archive.names)]
    parts = {name: _OdtReader(archive.content(name), is_apart=name != "content.xml").document for name in names}
    return ZipDocument(data, archive, parts)


class _OdtReader(ParagraphReader):
    """Finds the blocks of a part."""

    namespaces: ClassVar[Mapping[str, str]] = {
        **{f"{_NAMESPACE}{name}:1.0": name for name in ("office", "style", "text", "table")},
        f"{_NAMESPACE}svg-compatible:1.0": "svg",
        "http://purl.org/dc/elements/1.1/": "dc",
    }
    roles: ClassVar[Mapping[str, Role]] = {
        "text:span": "run",
        "text:s": "space",
        "text:soft-page-break": "ignored",
        "text:tracked-changes": "left",
        **dict.fromkeys(("text:p", "text:h", "svg:title", "svg:desc"), "paragraph"),
        **dict.fromkeys(("dc:title", "dc:description", "dc:subject"), "paragraph"),
        **dict.fromkeys(("text:a", "text:meta", "text:ruby", "text:ruby-base"), "container"),
        **dict.fromkeys(("text:tab", "text:line-break"), "break"),
        **dict.fromkeys((f"text:{name}-{end}" for name in _STRETCHES for end in ("start", "end")), "range"),
    }

    def prepare(self, found: Sequence[Token]) -> None:
        """Collects the styles that say only when or in what language a text was written, which LibreOffice gives to
        parts of words, and those of hidden text."""
        styles, properties = dict[str, list[str]](), list[str]()
        style, self._hidden = "", set[str]()
        for token in found:
            name = self.name(token) if token.kind in ("open", "alone") else ""
            if name == "style:style":
                attributes = {key.rpartition(":")[2]: value for key, value in token.attributes.items()}
                properties = [key for key in attributes if key == "parent-style-name"]
                styles[style := attributes.get("name", "")] = properties
            elif name.startswith("style:") and name.endswith("-properties"):
                properties += [key for key in token.attributes if not key.startswith("xmlns")]
                if token.attributes.get("text:display") == "none":
                    self._hidden.add(style)
        self._plain = {style for style, names in styles.items() if all(map(_INVISIBLE.search, names))}

    def role(self, token: Token) -> Role:
        """See ``ParagraphReader``."""
        name = self.name(token)
        if token.kind != "close" and name in ("text:s", "table:table-cell"):
            values = {key.rpartition(":")[2]: value for key, value in token.attributes.items()}
            if name == "text:s" and values.get("c", "1") != "1":
                return "break"  # a gap, for layout
            if name == "table:table-cell" and ("formula" in values or values.get("value-type", "string") != "string"):
                return "left"
        return super().role(token)

    def run(self, outer: TextRun, token: Token) -> TextRun:
        """See ``ParagraphReader``."""
        tag = self.source[token.begin : token.end]
        styles = {value for key, value in token.attributes.items() if key.endswith("style-name")}
        looks, is_hidden = tag * self._plain.isdisjoint(styles), not self._hidden.isdisjoint(styles)
        ends = (outer.begin + tag, f"</{token.name}>{outer.end}")
        return TextRun(outer.format + looks, *ends, is_hidden=outer.is_hidden or is_hidden)

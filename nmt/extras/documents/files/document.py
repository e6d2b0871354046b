"""A file as blocks of text between bytes that stay.

The text of a block is marked as in XML: inline elements are tags, such as ``<b>`` or the numbered ``<x1>`` of a format
that has no tags, and the characters ``&``, ``<`` and ``>`` are entities. A translation has each tag of its block once,
nested as they were, as ``nmt.extras.documents.transfer`` places them.
"""

from __future__ import annotations

import codecs
import html
import re
from abc import ABC, abstractmethod
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from xml.sax.saxutils import escape

MARKUP = re.compile(r"<[^<>]*>|&(?:#\d+|#[xX][0-9a-fA-F]+|\w+);")
"""A tag or an entity in the text of a block."""

_MARKS = {codecs.BOM_UTF8: "utf-8", codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}
_XML_ENCODING = re.compile(rb"""^\s*<\?xml[^>]*?encoding\s*=\s*["']([\w.:-]+)""")
_ENTITY = re.compile(r"&(?:#\d+|#[xX][0-9a-fA-F]+|\w+);")
_SPECIAL = re.compile(rf"{MARKUP.pattern}|[&<>]")
_AMPERSAND = re.compile(r"&(?!(?:#\d+|#[xX][0-9a-fA-F]+|\w+);)")


class DamagedFile(ValueError):
    """A file that is not of its format, or that no harmless program has written; the message says what is wrong."""


@dataclass(frozen=True)
class Block:
    """A text to translate.

    Attributes:
        text: The marked text.
        place: Where it stands, for people, such as "line 12".
        is_apart: True if it does not go on from the block before, like the text of an attribute.
    """

    text: str
    place: str
    is_apart: bool = False


class DocumentFile(ABC):
    """A file that was read."""

    blocks: Sequence[Block]
    """Its texts, in reading order."""

    @abstractmethod
    def write(self, translations: Sequence[str]) -> bytes:
        """Returns the file with a translation in place of each block; with the texts of the blocks, the file itself."""


@dataclass(frozen=True)
class Span:
    """A block in the text of a file.

    Attributes:
        begin, end: The characters that a translation replaces.
        block: The block.
        tags: For each tag of the block's text, and those that ``spell`` adds, the characters of the file that it
            stands for.
        spell: Function that spells a translation, with its tags, as the format needs it.
        spell_text: Function that spells the text between two tags, such as ``html.unescape`` for a format without
            entities.
    """

    begin: int
    end: int
    block: Block
    tags: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    spell: Callable[[str], str] = str
    spell_text: Callable[[str], str] = str


class TextDocument(DocumentFile):
    """A file whose blocks are spans of its text, between which nothing changes. A span may lie inside another one, like
    an attribute in a tag of a paragraph."""

    def __init__(self, text: str, spans: Sequence[Span], encoding: str = "utf-8") -> None:
        """``encoding`` is how the text is written."""
        self._text, self._encoding = text, encoding
        self._spans = sorted(spans, key=lambda span: (span.begin, -span.end))
        self.blocks = [span.block for span in self._spans]

    def write(self, translations: Sequence[str]) -> bytes:
        """See ``DocumentFile.write``. A character that the encoding lacks is written as a reference of XML."""
        return self.text(translations).encode(self._encoding, "xmlcharrefreplace")

    def text(self, translations: Sequence[str]) -> str:
        """Returns the text of the file with a translation in place of each block."""
        return self._written(0, len(self._text), list(zip(self._spans, translations, strict=True)))

    def _written(self, begin: int, end: int, pairs: Sequence[tuple[Span, str]]) -> str:
        """Writes a part of the file, in which the given spans lie."""
        parts, index = list[str](), 0
        while index < len(pairs):
            span, translation = pairs[index]
            after = index + 1
            while after < len(pairs) and pairs[after][0].begin < span.end:
                after += 1
            parts += [self._text[begin : span.begin], self._spelt(span, translation, pairs[index + 1 : after])]
            begin, index = span.end, after
        return "".join([*parts, self._text[begin:end]])

    def _spelt(self, span: Span, translation: str, inner: Sequence[tuple[Span, str]]) -> str:
        if translation == span.block.text:
            return self._written(span.begin, span.end, inner)

        begins = [each.begin for each, _ in inner]
        marked, parts, last = span.spell(escaped(translation, span.block.text)), list[str](), 0
        for match in MARKUP.finditer(marked):
            if match.group() in span.tags:
                begin, end = span.tags[match.group()]
                within = inner[bisect_left(begins, begin) : bisect_left(begins, end)]
                parts += [span.spell_text(marked[last : match.start()]), self._written(begin, end, within)]
                last = match.end()
        return "".join([*parts, span.spell_text(marked[last:])])


def decoded(data: bytes, declaration: re.Pattern[bytes] = _XML_ENCODING) -> tuple[str, str]:
    """Returns the text of a file, with the mark of the byte order if it has one, and the encoding: by that mark, by the
    group of ``declaration`` that is found, or UTF-8. Raises DamagedFile."""
    declared = declaration.search(data[: 1 << 16])
    encoding = "utf-8" if declared is None else declared[declared.lastindex or 0].decode("ascii")
    encoding = next((name for mark, name in _MARKS.items() if data.startswith(mark)), encoding)
    try:
        text = data.decode(encoding)
        # UTF-16 without a mark may be UTF-8 with zeros, and an encoding must be able to write references
        if "\0" not in text and text.encode(encoding, "xmlcharrefreplace") == data:
            return text, encoding
    except LookupError:
        raise DamagedFile(f"names an encoding that is not known, {encoding}") from None
    except UnicodeError:
        pass
    raise DamagedFile(f"is not text in {encoding}; save it in UTF-8, or name its encoding in it")


def line_names(text: str) -> Callable[[int], str]:
    """Returns the function that names the line of an offset, such as "line 12"."""
    newlines = [match.start() for match in re.finditer("\n", text)]
    return lambda offset: f"line {bisect_right(newlines, offset) + 1}"


def escaped(translation: str, source: str) -> str:
    """Escapes each ``&``, ``<`` and ``>`` of a translation that is not of the markup of its source."""
    allowed = Counter(MARKUP.findall(source))

    def spelt(match: re.Match[str]) -> str:
        is_markup = allowed[match[0]] > 0
        allowed[match[0]] -= match[0][0] == "<"  # an entity may come again, since it is a character; a tag may not
        return match[0] if is_markup else escape(match[0])

    return _SPECIAL.sub(spelt, translation)


def as_markup(text: str) -> str:
    """Escapes each ``&`` that begins no entity, each ``<`` and each ``>``."""
    return _AMPERSAND.sub("&amp;", text).replace("<", "&lt;").replace(">", "&gt;")


def spell_as(text: str) -> Callable[[str], str]:
    """Returns the function that spells text of a translation as in ``text``, which is of a format without entities, but
    may have some of HTML."""
    return str if _ENTITY.search(text) else html.unescape

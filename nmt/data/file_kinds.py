"""Kinds of files by their first bytes, and types of the rows in a file of pairs."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

from nmt.core import log


class Fault(NamedTuple):
    """Reason why a row is not a pair, with the number of its line, for files whose rows are not their lines."""

    reason: str
    line: int


Row: TypeAlias = tuple[str, str] | str | Fault
"""A pair, or the reason why the row is not a pair."""

Languages: TypeAlias = tuple[str, str]

NOT_UTF8 = "\udcff"
"""Replacement of a line that is not UTF-8: a lone surrogate, which no text contains."""

NO_UTF8, HEADER, UNTRANSLATED = "not UTF-8", "a header", "without a translation"
LEFT_OUT = frozenset({HEADER, UNTRANSLATED})
"""Reasons that are not faults of the file."""

TMX, XLIFF, ZIP = "a TMX file", "an XLIFF file", "a ZIP archive"
_PO, _CR = "a PO file", "text whose lines end in CR alone"
_XML = r"(?i:\s*+<(?:!--|(?:\?xml|!doctype|html|tmx|(?:\w++:)?xliff)\b))"
_ROOT = r"(?i:[^\0]*?(?<=<)(?:!doctype\s++)?(?:\w++:)?"
_HTML = r"(?i:[^\0]*?<!doctype\s++html\b|(?>[^\0]*?<html\b)(?![^\n]*</html)(?=[^\0]*?<(?:head|body)\b))"
"""A page has a doctype, or a head or a body and no end in its first line, as an example of HTML in a corpus may."""
_KINDS = {
    "%PDF-": "a PDF file", r"{\\rtf\d": "an RTF file", "SQLite format 3\0": "an SQLite database",
    "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1": "an old Word or Excel file", "PAR1\x15": "a Parquet file",
    "7z\xbc\xaf'\x1c": "a 7z archive", "Rar!\x1a\x07": "a RAR archive", "\x89PNG": "a PNG picture",
    "\xff\xd8\xff": "a JPEG picture", r".{257}ustar(?:\0\d\d|  \0)": "a TAR archive",
    r"(?:[^\0]\0){4}|(?:\0[^\0]){4}": "text in UTF-16 without a byte order mark",
    "PK\3\4.*\nword/": "a Word document (DOCX)", "PK\3\4.*\nxl/": "an Excel workbook (XLSX)",
    "PK\3\4.*\nMETA-INF/": "an OpenDocument or EPUB file", "PK\3\4": ZIP,
    rf"(?={_XML}){_ROOT}tmx\b)": TMX, rf"(?={_XML}){_ROOT}xliff\b)": XLIFF, rf"(?={_XML}){_HTML}": "an HTML page",
    r"(?:[^\n\r]*+\r){3}[^\n]*+\Z": _CR, r"\s*+<\?xml": "an XML file", r'(?:#[^\n]*+\n|\s)*+msgid\s*+"': _PO,
}  # fmt: skip
"""Patterns of the first bytes, each read as a character, followed by the names in a ZIP archive, one per line."""
_KIND = re.compile(f"({')|('.join(_KINDS)})", re.DOTALL)
_PAIRS = "it is for where sentence pairs are read (data.train.pairs, --tsv)"
_ADVICE = {
    _PO: "convert it to TMX, such as with po2tmx of the Translate Toolkit", TMX: _PAIRS, XLIFF: _PAIRS,
    ZIP: "unpack it", _CR: "convert it, such as with tr '\\r' '\\n'",
}  # fmt: skip


def kind_of(head: bytes, names: Sequence[str] = ()) -> str | None:
    """Names the kind of a file by its first bytes, and by the ``names`` in a ZIP archive; returns None for text."""
    text = head.decode("utf-16", "ignore") if is_utf16(head) else head.removeprefix(b"\xef\xbb\xbf").decode("latin-1")
    found = _KIND.match("\n".join([text, *names]))
    return None if found is None else [*_KINDS.values()][(found.lastindex or 0) - 1]


def advice(kind: str) -> str:
    """Returns advice on how to get text from a kind of file."""
    return _ADVICE.get(kind, "save its text as plain text, or its table as CSV, in UTF-8")


def is_utf16(head: bytes) -> bool:
    """Returns True if the bytes begin with a byte order mark of UTF-16."""
    return head.startswith((b"\xff\xfe", b"\xfe\xff"))


@functools.cache
def once(text: str, say: Callable[[str], None] = log.info) -> None:
    """Logs a line once, even if the same corpus is read again."""
    say(text)

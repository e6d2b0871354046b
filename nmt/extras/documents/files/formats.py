"""The formats of files, by the ends of their names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from nmt.core.errors import InputError
from nmt.core.files import read_whole, reading
from nmt.plugins import attribute

if TYPE_CHECKING:
    from nmt.extras.documents.files.document import DocumentFile

Read: TypeAlias = "Callable[[bytes], DocumentFile]"
"""Reads the content of a file. Raises DamagedFile."""

MOST_BYTES = 256 << 20
"""Maximum size of a file."""

FORMATS: Mapping[str, str] = {
    **dict.fromkeys([".html", ".htm", ".xhtml"], "html:read"),
    **dict.fromkeys([".docx", ".dotx", ".pptx", ".docm", ".pptm"], "office:read"),
    **dict.fromkeys([".odt", ".ott", ".ods", ".odp"], "odt:read"),
    ".epub": "epub:read",
    **dict.fromkeys([".srt", ".vtt"], "subtitles:read"),
    **dict.fromkeys([".xlf", ".xliff"], "xliff:read"),
    **dict.fromkeys([".po", ".pot"], "po:read"),
    **dict.fromkeys([".md", ".markdown"], "markdown:read"),
}
"""The function that reads each kind of file, in a module of this package."""

OTHER_DOCUMENTS: Mapping[str, str] = {".doc": ".docx", ".ppt": ".pptx", **dict.fromkeys((".xls", ".xlsx"), ".ods")}
"""Formats that are not read, with those that they can be saved in."""
OTHER_TEXTS = frozenset(
    ".json .yaml .yml .properties .strings .ini .ass .ssa .csv .tsv .arb .resx .ts".split()  # noqa: SIM905
)
"""Formats whose lines have keys or columns, which would be translated, too."""


def is_document(path: Path) -> bool:
    """Returns True for a name of a format that is read here."""
    return path.suffix.lower() in FORMATS


def read(path: Path) -> DocumentFile:
    """Reads a file. Raises InputError for one that cannot be read or is damaged."""
    with reading(path):
        return parse(path, read_whole(path, most=MOST_BYTES))


def parse(path: Path, content: bytes) -> DocumentFile:
    """Parses the content of a file. Raises InputError for one that is damaged."""
    from nmt.extras.documents.files.document import DamagedFile

    function: Read = attribute(f"nmt.extras.documents.files.{FORMATS[path.suffix.lower()]}")
    try:
        return function(content)
    except DamagedFile as error:
        raise InputError(f"{path}: {error}") from None

"""Books in EPUB 2 and 3: the chapters, which are pages of XHTML, and the titles in the files about them."""

from __future__ import annotations

import posixpath
from collections import defaultdict
from urllib.parse import unquote

from nmt.extras.documents.files import html
from nmt.extras.documents.files.document import DamagedFile, DocumentFile, decoded
from nmt.extras.documents.files.paragraphs import Titles
from nmt.extras.documents.files.xml_tokens import tokens
from nmt.extras.documents.files.zip_file import Archive, ZipDocument

_ENCRYPTION = "META-INF/encryption.xml"


def read(data: bytes) -> DocumentFile:
    """Reads a book; its chapters are in the order of reading. Raises DamagedFile."""
    archive = Archive(data)
    package = next((each["full-path"] for each in _elements(archive, "META-INF/container.xml", "rootfile")), "")
    items = {item["id"]: item for item in _elements(archive, package, "item")}
    order = [each["idref"] for each in _elements(archive, package, "itemref")]
    encrypted = _ENCRYPTION in archive.names and _elements(archive, _ENCRYPTION, "CipherReference")
    parts: dict[str, DocumentFile] = {package: Titles(archive.content(package), is_apart=True).document}
    for item in [*(items[id_] for id_ in order if id_ in items), *items.values()]:
        # other items, such as images, and those that are not in the archive stay
        name = posixpath.normpath(posixpath.join(posixpath.dirname(package), unquote(item["href"])))
        if name in parts or name not in archive.names:
            continue
        if item["media-type"] == "application/xhtml+xml":
            if any(unquote(each["URI"]) == name for each in encrypted or ()):
                raise DamagedFile("is protected from copying, so that its text cannot be read")
            parts[name] = html.read(archive.content(name))
        elif item["media-type"] == "application/x-dtbncx+xml":
            parts[name] = Titles(archive.content(name), is_apart=True).document
    return ZipDocument(data, archive, parts)


def _elements(archive: Archive, member: str, name: str) -> list[defaultdict[str, str]]:
    """Returns the attributes of all elements of a name in a member; those that an element lacks are empty. Raises
    DamagedFile."""
    found = tokens(decoded(archive.content(member))[0])
    named = [token for token in found if token.kind != "close" and token.name.rpartition(":")[2] == name]
    return [defaultdict(str, token.attributes) for token in named]

"""Translations that need no model."""

from __future__ import annotations

import re

from nmt.extras.documents.files.document import MARKUP, DocumentFile


def upper(text: str) -> str:
    """Writes words in capitals; tags, entities and placeholders stay."""
    kept = re.compile(rf"{MARKUP.pattern}|\{{[^{{}}]*\}}|%\(\w+\)\w|%\d*\$?\w+")
    parts, end = list[str](), 0
    for match in kept.finditer(text):
        parts += [text[end : match.start()].upper(), match.group()]
        end = match.end()
    return "".join([*parts, text[end:].upper()])


def unchanged(document: DocumentFile) -> bytes:
    """Writes a document with its own texts."""
    return document.write([block.text for block in document.blocks])


def capitals(document: DocumentFile) -> str:
    """Writes a document in capitals."""
    return document.write([upper(block.text) for block in document.blocks]).decode()

"""Zip archives as their members, and the reverse."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping


def packed(members: Mapping[str, bytes | str]) -> bytes:
    """Returns an archive."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return stream.getvalue()


def unpacked(data: bytes) -> dict[str, bytes]:
    """Returns the members of an archive, in order."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}

"""Files that are zip archives of others, such as office documents: some members are translated, the others stay."""

from __future__ import annotations

import io
import re
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import islice

from nmt.extras.documents.files.document import Block, DamagedFile, DocumentFile

MOST_MEMBERS = 20_000
"""Maximum number of members of an archive."""

MOST_BYTES, MOST_RATIO = 64 << 20, 20
"""Maximum size of the unpacked members together: so many bytes, and so many times the archive more."""

_UNSAFE = re.compile(r"^(?:[/\\]|[A-Za-z]:)|(?:^|[/\\])\.\.(?:[/\\]|$)")
"""An absolute name, or one that leaves its folder."""


class Archive:
    """A zip archive in memory."""

    def __init__(self, data: bytes) -> None:
        """Raises DamagedFile if it is not an archive, or one that may not be unpacked safely."""
        try:
            self._zip = zipfile.ZipFile(io.BytesIO(data))
        except (zipfile.BadZipFile, zipfile.LargeZipFile, ValueError, OverflowError, NotImplementedError, OSError):
            if data.startswith(b"\xd0\xcf\x11\xe0"):  # the container of old and of encrypted Office files
                raise DamagedFile("has a password or is of an old kind; save it anew without a password") from None
            raise DamagedFile("is not a zip archive, or only a part of one") from None
        members = self._zip.infolist()
        self.names = [member.filename for member in members]
        unsafe = next(filter(_UNSAFE.search, self.names), None)
        if len(members) > MOST_MEMBERS or sum(each.file_size for each in members) > MOST_BYTES + MOST_RATIO * len(data):
            raise DamagedFile("unpacks to more than a document of its size can hold")
        if unsafe is not None:
            raise DamagedFile(f"holds a file whose name leads out of it, {unsafe!r}")
        if len(set(self.names)) < len(members):
            raise DamagedFile("holds two files of one name")
        if any(member.flag_bits & 1 for member in members):
            raise DamagedFile("is encrypted; save it without a password")
        if any(member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) for member in members):
            raise DamagedFile("is packed in a way that documents are not")

    def content(self, name: str) -> bytes:
        """Returns a member. Raises DamagedFile if it is damaged or missing."""
        try:
            return self._zip.read(name)
        except KeyError:
            raise DamagedFile(f"lacks its part {name!r}") from None
        except (zipfile.BadZipFile, zlib.error, ValueError, EOFError, OSError, NotImplementedError, RuntimeError):
            raise DamagedFile(f"is damaged in its part {name!r}") from None

    def written(self, changes: Mapping[str, bytes]) -> bytes:
        """Returns the archive with other contents of some members. The order of all members, their names, dates and
        compression stay."""
        stream = io.BytesIO()
        with zipfile.ZipFile(stream, "w") as output:
            output.comment = self._zip.comment
            for member in self._zip.infolist():
                copy = zipfile.ZipInfo(member.filename, member.date_time)
                for attribute in ("compress_type", "comment", "create_system", "external_attr", "internal_attr"):
                    setattr(copy, attribute, getattr(member, attribute))
                output.writestr(copy, changes.get(member.filename) or self.content(member.filename))
        return stream.getvalue()


class ZipDocument(DocumentFile):
    """An archive whose translated members are documents themselves. Its unchanged members keep their contents; the
    archive has the same bytes if nothing is changed."""

    def __init__(self, data: bytes, archive: Archive, parts: Mapping[str, DocumentFile]) -> None:
        """``parts`` has the documents by the names of the members, in reading order."""
        self._data, self._archive, self._parts = data, archive, parts
        self.blocks: Sequence[Block] = [
            replace(block, place=f"{name}, {block.place}") for name, part in parts.items() for block in part.blocks
        ]

    def write(self, translations: Sequence[str]) -> bytes:
        """See ``DocumentFile.write``."""
        remaining, changes = iter(translations), dict[str, bytes]()
        for name, part in self._parts.items():
            texts = list(islice(remaining, len(part.blocks)))
            if texts != [block.text for block in part.blocks]:
                changes[name] = part.write(texts)
        return self._archive.written(changes) if changes else self._data

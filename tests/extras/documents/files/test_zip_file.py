from __future__ import annotations

import io
import random
import zipfile

import pytest

from nmt.extras.documents.files import zip_file
from nmt.extras.documents.files.document import Block, DamagedFile, DocumentFile, Span, TextDocument
from nmt.extras.documents.files.zip_file import Archive, ZipDocument
from tests.extras.documents.files.archives import packed, unpacked


def archive() -> bytes:
    """An archive with all that may differ between members."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as output:
        output.comment = b"of all"
        for number, name in enumerate(("mimetype", "z/ü.xml", "a.xml", "empty/", "b.png")):
            member = zipfile.ZipInfo(name, (1999 + number, 2, 3, 4, 5, 6))
            member.compress_type = zipfile.ZIP_DEFLATED if number % 2 else zipfile.ZIP_STORED
            member.comment, member.external_attr, member.create_system = b"of one", 0o644 << 16, 3
            output.writestr(member, b"" if name.endswith("/") else name.encode() * 99)
    return stream.getvalue()


def part(text: str) -> DocumentFile:
    return TextDocument(text, [Span(0, 1, Block(text[0], "here"))])


def test_changed_members_are_replaced_and_the_others_stay() -> None:
    data = archive()
    document = ZipDocument(data, Archive(data), {"b.png": part("bcd"), "z/ü.xml": part("z/ü")})
    assert [(block.text, block.place) for block in document.blocks] == [("b", "b.png, here"), ("z", "z/ü.xml, here")]
    assert document.write(["b", "z"]) == data
    written = document.write(["b", "Z"])
    assert unpacked(written) == {**unpacked(data), "z/ü.xml": "Z/ü".encode()}
    with zipfile.ZipFile(io.BytesIO(data)) as before, zipfile.ZipFile(io.BytesIO(written)) as after:
        assert after.comment == before.comment
        for old, new in zip(before.infolist(), after.infolist(), strict=True):
            for name in (
                "filename",
                "date_time",
                "compress_type",
                "comment",
                "external_attr",
                "create_system",
                "extra",
            ):
                assert getattr(new, name) == getattr(old, name)


def stored(names: list[str], content: bytes = b"") -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as output:
        for name in names:
            output.writestr(name, content)
    return stream.getvalue()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "is not a zip archive"),
        (b"PK\x03\x04" + bytes(99), "is not a zip archive"),
        (stored(["a"], b"x" * 99)[:-30], "is not a zip archive"),
        (b"\xd0\xcf\x11\xe0" + bytes(99), "has a password or is of an old kind"),
        *((stored([name]), "leads out of it") for name in ("/etc/x", "../x", "a/../../x", "..\\x", "C:\\x", "a/..")),
    ],
    ids=lambda value: value if isinstance(value, str) else "",  # bytes have the time of day in them
)
def test_unsafe_archives_are_refused(data: bytes, message: str) -> None:
    with pytest.raises(DamagedFile, match=message):
        Archive(data)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_two_members_of_one_name_are_refused() -> None:
    data = stored(["a", "a"])
    with pytest.raises(DamagedFile, match="holds two files of one name"):
        Archive(data)


def test_bombs_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zip_file, "MOST_BYTES", 1 << 20)
    monkeypatch.setattr(zip_file, "MOST_MEMBERS", 3)
    Archive(stored(["a", "b", "c"], bytes(1 << 18)))
    for data in (stored(["a", "b", "c"], bytes(1 << 19)), stored(["a", "b", "c", "d"])):
        with pytest.raises(DamagedFile, match="unpacks to more"):
            Archive(data)


def test_encrypted_and_strangely_packed_members_are_refused() -> None:
    data = bytearray(packed({"a": b"x" * 99}))
    directory = data.index(b"PK\x01\x02")
    for offset, value, message in ((8, 1, "is encrypted"), (10, 14, "is packed in a way")):
        changed = data.copy()
        changed[directory + offset] |= value
        with pytest.raises(DamagedFile, match=message):
            Archive(bytes(changed))


def test_a_member_that_lies_about_its_size_is_damaged() -> None:
    data = bytearray(packed({"a": bytes(1 << 20)}))
    size = data.index(b"PK\x01\x02") + 24
    data[size : size + 4] = (9).to_bytes(4, "little")
    with pytest.raises(DamagedFile, match="is damaged in its part 'a'"):
        Archive(bytes(data)).content("a")
    with pytest.raises(DamagedFile, match="lacks its part 'b'"):
        Archive(bytes(data)).content("b")


def test_no_damage_gives_another_error() -> None:
    """Bytes of an archive are changed at random; it is then read, or refused in one line."""
    data, draw, messages = archive(), random.Random(1), list[str]()
    for _ in range(2000):
        changed = bytearray(data)
        for _ in range(draw.randint(1, 4)):
            changed[draw.randrange(len(data))] = draw.randrange(256)
        try:
            found = Archive(bytes(changed))
            for name in found.names:
                found.content(name)
        except DamagedFile as error:
            messages.append(str(error))
    assert 200 < len(messages) < 2000
    assert not any("\n" in message for message in messages)

from __future__ import annotations

import io
import tarfile

from nmt.data.file_kinds import kind_of


def test_text_is_text() -> None:
    for line in ("<b>Hund</b>", "msgid", "{0} files", "PK", "\0\0\0\0\0\0\0\0\0\0", "# comment", "", "<3 you", "7z"):
        assert kind_of(f"{line}\n".encode()) is None


def test_text_that_holds_a_signature_is_text() -> None:
    page = "<html>Klick <b>hier</b></html>\nZwei\n<body> ist ein Tag\n"
    for text in (page, f"{'x' * 256}gustaría\n", f"{'x' * 257}USTAR\n", "par1 12\n", "PAR1 und 2\n", "Rar! Wie rar!\n"):
        assert kind_of(text.encode()) is None
    for page in ("<HTML lang=de>\n<Head>\n", "<!-- x -->\n<!DOCTYPE  html>\n", "<html><body><p>\nHund</html>"):
        assert kind_of(page.encode()) == "an HTML page"
    with io.BytesIO() as stream:
        for form in (tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT):
            with tarfile.open(fileobj=stream, mode="w", format=form) as archive:
                archive.addfile(tarfile.TarInfo("a"))
            assert kind_of(stream.getvalue()[:4096]) == "a TAR archive"

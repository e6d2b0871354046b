from __future__ import annotations

from nmt.data.file_kinds import kind_of


def test_text_is_text() -> None:
    for line in ("<b>Hund</b>", "msgid", "{0} files", "PK", "\0\0\0\0\0\0\0\0\0\0", "# comment", "", "<3 you", "7z"):
        assert kind_of(f"{line}\n".encode()) is None

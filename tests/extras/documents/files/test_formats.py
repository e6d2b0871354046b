from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import pytest

from nmt.core.errors import InputError
from nmt.extras.documents.files.formats import FORMATS, is_document, parse, read
from nmt.plugins import attribute


def test_each_format_has_its_reader() -> None:
    for suffix, reference in FORMATS.items():
        assert is_document(Path(f"a{suffix.upper()}"))
        assert callable(attribute(f"nmt.extras.documents.files.{reference}"))
    assert not is_document(Path("a.txt"))


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    for suffix in FORMATS:
        with pytest.raises(InputError, match=rf"a\{suffix}: no such file"):
            read(tmp_path / f"a{suffix}")
    os.mkfifo(tmp_path / "pipe.html")
    with pytest.raises(InputError, match=r"pipe\.html: is a device or a pipe, but a file is needed"):
        read(tmp_path / "pipe.html")


@pytest.mark.parametrize("suffix", FORMATS)
@pytest.mark.parametrize("content", [b"", b"\n", b"\xef\xbb\xbf", b"\0", b"\r\n\r\n"])
def test_a_file_without_text_stays_or_is_refused(suffix: str, content: bytes) -> None:
    with suppress(InputError):
        assert parse(Path(f"a{suffix}"), content).write([]) == content

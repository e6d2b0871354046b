from __future__ import annotations

from pathlib import Path

import pytest

from nmt.core.errors import InputError
from nmt.extras.documents.files.formats import FORMATS, is_document, read
from nmt.plugins import attribute


def test_each_format_has_its_reader() -> None:
    for suffix, reference in FORMATS.items():
        assert is_document(Path(f"a{suffix.upper()}"))
        assert callable(attribute(f"nmt.extras.documents.files.{reference}"))
    assert not is_document(Path("a.txt"))


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    for suffix in FORMATS:
        with pytest.raises(InputError, match=rf"a\{suffix}: cannot be read: No such file"):
            read(tmp_path / f"a{suffix}")

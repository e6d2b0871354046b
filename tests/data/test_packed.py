from __future__ import annotations

import importlib

import pytest

from nmt.core.errors import InputError
from nmt.data.packed import zstandard


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(importlib, "import_module", missing)
    with pytest.raises(InputError, match="backports.zstd, which reads and writes .zst, is"):
        zstandard()

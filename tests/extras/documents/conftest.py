"""A run beside a glossary."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def folder(trained: Path) -> Path:
    terms = "Hund\tdog|hound\nkatze\tgreen cat\nzwei drei\ttwo\n"
    (trained / "terms.tsv").write_text(terms, encoding="utf-8")
    return trained

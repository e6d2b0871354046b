"""Reader of the word tables in data/generator/tables."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

FOLDER = Path(__file__).resolve().parents[2] / "tables"


def rows(name: str, columns: int) -> Iterator[list[str]]:
    """The rows of a table of tab-separated values, each filled up to a number of columns; # begins a comment."""
    for line in (FOLDER / name).read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            cells = line.split("\t")
            yield cells + [""] * (columns - len(cells))


def word_lists(name: str) -> dict[str, Any]:
    """The word lists of a YAML file, by their names."""
    lists: dict[str, Any] = yaml.safe_load((FOLDER / name).read_text(encoding="utf-8"))
    return lists

"""A run beside a glossary, and a run that has read numbers."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.workflows.runs import EXACT, nmt, place


@pytest.fixture(scope="session")
def folder(trained: Path) -> Path:
    terms = "Hund\tdog|hound\nkatze\tgreen cat\nzwei drei\ttwo\n"
    (trained / "terms.tsv").write_text(terms, encoding="utf-8")
    return trained


@pytest.fixture(scope="session")
def numbered(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run whose vocabulary can spell numbers, with decimal commas in German."""
    folder = place(tmp_path_factory.mktemp("numbered"))
    for side, word, comma in (("de", "Hund", ","), ("en", "dog", ".")):
        with (folder / f"train.{side}").open("a", encoding="utf-8") as stream:
            stream.writelines(f"{word} {number}, {number + 1}.\n" for number in range(0, 1000, 37))
            stream.writelines(f"{word} {number}{comma}5.\n" for number in range(4))
    assert nmt("train", "config.yaml", *EXACT, "--set", "data.subwords.size=80", folder=folder).returncode == 0
    return folder

"""Fixtures of the commands: the command line in this process, and a copy of the shared run."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from nmt.data.prepared import PreparedData
from nmt.workflows.prepare import prepare
from tests.workflows.corpora import PAIRS, Make, config_of, write_tsv
from tests.workflows.runs import Command, in_process


@pytest.fixture
def nmt(capsys: pytest.CaptureFixture[str]) -> Command:
    return in_process(capsys)


@pytest.fixture
def copied(trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder: a copy of that of the shared run."""
    shutil.copytree(trained, tmp_path, dirs_exist_ok=True, symlinks=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def tsv(tmp_path: Path) -> Path:
    """A file of pairs to train on."""
    return write_tsv(tmp_path / "train.tsv", PAIRS)


@pytest.fixture
def make(tmp_path: Path, tsv: Path) -> Make:
    """Prepares the corpus ``tsv``, with these keys of ``data`` and by default 120 subwords."""

    def run(*, run: Path = tmp_path, seed: int = 1, force: bool = False, **data: Any) -> PreparedData:
        return prepare(config_of(tsv, **data), run=run, seed=seed, force=force)

    return run

"""Fixtures of the commands: the command line in this process, and a copy of the shared run."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

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

"""What pages have the reader type is there, and works."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from typer.core import TyperGroup

from nmt.cli.app import app
from tests.docs.pages import PAGES, ROOT, code_lines, shown, typed


def options_of() -> dict[str, set[str]]:
    """Every command with what it calls its options."""
    group = typer.main.get_command(app)
    assert isinstance(group, TyperGroup)
    return {
        name: {"--help", "-h", *(each for option in command.params for each in option.opts if each.startswith("-"))}
        for name, command in group.commands.items()
    }


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_and_option_that_a_page_shows_is_there(page: Path) -> None:
    known = options_of()
    for use in shown(page):
        assert use.command in known, use
        assert set(use.options) <= known[use.command], use


def test_commands_are_found_in_the_pages() -> None:
    """The test above would pass on pages in which nothing is found."""
    assert {use.command for page in PAGES for use in shown(page)} == set(options_of())
    assert len([use for page in PAGES for use in shown(page) if use.options]) > 70


def test_lines_of_code_are_read_whole() -> None:
    text = "text\n\n    $ nmt align x \\\n      --base 1   # why\n    out\n\n```yaml\n    no: code\n```\n\n    second\n"
    assert list(filter(None, code_lines(text))) == ["$ nmt align x        --base 1   # why", "out", "second"]


# ------------------------------------------------------------------------------------------------ they are also run

SHORT = (
    "data.subwords.size=400",
    "training.stopping.updates=4",
    "training.validation.every=2",
    "search.max_length_ratio=1.0",
)
"""What keeps a training of the pages short, and its untrained model's translations."""

NOT_RUN = {
    "nmt serve": "does not end",
    "nmt aligner runs": "learns for minutes on any corpus; tests/workflows/test_learn_aligner.py runs it",
    "--ray": "needs Ray; tests/workflows/test_ray.py runs it",
}
"""Parts of commands that are not run here, and why."""

KEPT = {"train": 1000, "valid": 40, "test": 60, "hard": 60}
"""Pairs of the corpus that ships."""


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A folder like a clone with a small part of the corpus, where `nmt` trains for a moment."""
    (tmp_path / "configs").symlink_to(ROOT / "configs")
    corpus = tmp_path / "data" / "de-en"
    corpus.mkdir(parents=True)
    for name, count in KEPT.items():
        for path in (ROOT / "data" / "de-en").glob(f"{name}.*"):
            (corpus / path.name).write_text(head(path, count), encoding="utf-8")
    for kind in ("de", "en"):
        (tmp_path / f"x.{kind}").write_text(head(corpus / f"train.{kind}", 300), encoding="utf-8")
        (tmp_path / f"my.{kind}").write_text(head(corpus / f"train.{kind}", 600), encoding="utf-8")
    short = " ".join(f"--set {each}" for each in SHORT)
    command = tmp_path / "bin" / "nmt"
    command.parent.mkdir()
    command.write_text(
        f'#!/bin/sh\n[ "$1" = train ] && set -- "$@" {short}\nexec "{sys.executable}" -m nmt "$@"\n', encoding="utf-8"
    )
    command.chmod(0o755)
    return tmp_path


def head(path: Path, count: int) -> str:
    """The first lines of a file."""
    return "".join(path.read_text(encoding="utf-8").splitlines(keepends=True)[:count])


def run(folder: Path, lines: list[str]) -> None:
    """Has a shell run each line."""
    path = f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    for line in lines:
        done = subprocess.run(
            ["bash", "-e", "-o", "pipefail", "-c", line],
            cwd=folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"{line}\n{done.stderr}"


@pytest.mark.slow
@pytest.mark.parametrize("page", ["README.md", "docs/tutorial.md"])
def test_what_a_page_has_one_type_works(clone: Path, page: str) -> None:
    lines = [line for line in typed(ROOT / page) if not any(part in line for part in NOT_RUN)]
    assert len(lines) > 10
    run(clone, lines)


@pytest.mark.slow
def test_what_begin_has_one_type_works(clone: Path) -> None:
    """Its configuration and run have the names of the corpus that ships, which is therefore not there."""
    shutil.rmtree(clone / "data")
    first, *others = typed(ROOT / "docs" / "begin.md")
    run(clone, [first, "nmt train de-en.yaml", *others])

"""The package without ``nmt.extras``: core commands work, and translate as with it."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest

import nmt
from tests.workflows import runs
from tests.workflows.forking import Forks

# The finder of an editable installation would find the folder that is left out.
SITE = "import sys\nsys.meta_path[:] = [finder for finder in sys.meta_path if 'editable' not in str(finder)]\n"


class Slim(NamedTuple):
    """A copy of the package without extras, and a run that it trained."""

    folder: Path
    forks: Forks
    environment: dict[str, str]

    def nmt(self, *arguments: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        """Runs a command with the copy."""
        done = self.forks.run(list(arguments), self.folder, stdin, self.environment)
        assert done is not None
        return done

    def run(self, *arguments: str, stdin: bytes = b"") -> str:
        """The standard output of a command that succeeds."""
        done = self.nmt(*arguments, stdin=stdin)
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout.decode()


@pytest.fixture(scope="module")
def slim(tmp_path_factory: pytest.TempPathFactory) -> Slim:
    copy, folder = tmp_path_factory.mktemp("package"), tmp_path_factory.mktemp("run")
    shutil.copytree(Path(nmt.__file__).parent, copy / "nmt", ignore=shutil.ignore_patterns("extras", "__pycache__"))
    (copy / "sitecustomize.py").write_text(SITE)
    (copy / "tests").symlink_to(Path(__file__).parents[2])
    runs.write_corpus(folder)
    (folder / "config.yaml").write_text(runs.CONFIG, encoding="utf-8")
    made = Slim(folder, Forks(copy), {**os.environ, "PYTHONPATH": str(copy), "OMP_NUM_THREADS": "1"})
    made.run("train", "config.yaml", "--precision", "float32", "--set", "training.stopping.updates=40")
    return made


def test_greedy_translations_are_the_same_as_with_extras(slim: Slim) -> None:
    command = ("translate", "run", "--precision", "float32", "--set", "search.beam=1")
    source = (slim.folder / "test.de").read_bytes()
    lines = slim.run(*command, stdin=source).splitlines()
    assert len(lines) == 10
    assert any(lines)
    accelerated = runs.nmt(*command, folder=slim.folder, stdin=source)
    assert accelerated.stdout.decode().splitlines() == lines


def test_align_and_evaluate_work(slim: Slim) -> None:
    assert len(slim.run("align", "run", "-s", "test.de", "-t", "test.en").splitlines()) == 10
    assert "BLEU" in slim.run("evaluate", "run", "--source", "test.de", "--reference", "test.en")


@pytest.mark.parametrize(
    ("command", "listed", "extras"),
    [
        ("", "translate", "serve export aligner"),
        ("translate", "--beam", "--ray --glossary --wait ctranslate2"),
        ("align", "--method", "--learn --lexicon --view html heatmap"),
    ],
)
def test_commands_and_options_of_extras_are_left_out(slim: Slim, command: str, listed: str, extras: str) -> None:
    page = slim.run(*command.split(), "--help")
    assert listed in page
    assert not any(extra in page for extra in [*extras.split(), "nmt aligner"])


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ("translate run --precision int8", "needs a part of nmt that is not installed; use another precision"),
        ("translate run --set search.markup=true", "search.markup: needs a part of nmt that is not installed"),
        ("translate run --engine ctranslate2", "--engine ctranslate2: use one of nmt (see"),
        (
            "align run -s test.de -t test.en --method trained",
            "--method trained: use one of attention, shifted-attention, gradient, input-x-gradient (see",
        ),
    ],
)
def test_options_of_extras_are_refused_in_one_line(slim: Slim, arguments: str, reason: str) -> None:
    done = slim.nmt(*arguments.split())
    assert done.returncode == 2
    last = done.stderr.decode().splitlines()[-1]
    assert last.startswith("error: ")
    assert reason in last

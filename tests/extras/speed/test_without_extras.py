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


def test_commands_of_extras_are_left_out(slim: Slim) -> None:
    listed = slim.run("--help")
    assert "translate" in listed
    assert not any(command in listed for command in ("serve", "export", "aligner"))


@pytest.mark.parametrize(
    "arguments",
    [
        ("translate", "run", "--precision", "int8"),
        ("translate", "run", "--engine", "ctranslate2"),
        ("align", "run", "-s", "test.de", "-t", "test.en", "--method", "trained"),
    ],
    ids=lambda arguments: arguments[-1],
)
def test_options_of_extras_are_refused_in_one_line(slim: Slim, arguments: tuple[str, ...]) -> None:
    done = slim.nmt(*arguments)
    assert done.returncode == 2
    assert done.stderr.decode().splitlines()[-1].startswith("error: ")
    assert "not installed" in done.stderr.decode()

"""A tiny run that the tests of the commands share."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import pytest

from nmt.cli import app
from nmt.training import metrics
from tests.workflows.forking import Forks

WORDS = {"eins": "one", "zwei": "two", "drei": "three", "Hund": "dog", "Katze": "cat", "und": "and", "grün": "green"}


def sentences(count: int, seed: int) -> list[tuple[str, str]]:
    """Word by word translations of 2 to 6 words, all different."""
    draw = random.Random(seed)
    pairs: dict[tuple[str, str], None] = {}
    while len(pairs) < count:
        words = draw.choices(list(WORDS), k=draw.randint(2, 6))
        pairs[" ".join(words) + ".", " ".join(WORDS[word] for word in words) + "."] = None
    return list(pairs)


def write_corpus(folder: Path, *, train: int = 60) -> None:
    pairs = sentences(train + 20, seed=1)
    for name, part in (("train", pairs[:train]), ("valid", pairs[train : train + 10]), ("test", pairs[train + 10 :])):
        (folder / f"{name}.de").write_text("".join(f"{source}\n" for source, _ in part), encoding="utf-8")
        (folder / f"{name}.en").write_text("".join(f"{target}\n" for _, target in part), encoding="utf-8")


CONFIG = """\
run: run
data:
  train: {source: train.de, target: train.en}
  valid: {source: valid.de, target: valid.en}
  subwords: {kind: bpe, size: 60, joint: true}
model:
  embedding: {size: 16}
  encoder: {kind: rnn, size: 12}
  decoder: {kind: rnn, size: 20}
training:
  batching: {batch_tokens: 60}
  stopping: {updates: 2}
  validation: {every: 2, metric: loss}
  log_every: 1
search: {max_length_ratio: 1.5}
"""


def place(folder: Path, config: str = CONFIG) -> Path:
    """Writes the corpus and config.yaml into a folder, which is made where there is none."""
    folder.mkdir(exist_ok=True)
    write_corpus(folder)
    (folder / "config.yaml").write_text(config, encoding="utf-8")
    return folder


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with the corpus and config.yaml."""
    monkeypatch.chdir(tmp_path)
    return place(tmp_path)


def measured(run: str | Path, kind: str | None = None) -> list[dict[str, Any]]:
    """The lines of a run's metrics.jsonl, without those figures that depend on the clock."""
    lines = metrics.read(Path(run))
    return [
        {name: value for name, value in line.items() if name not in ("tokens_per_second", "peak_memory")}
        for line in lines
        if kind in (None, line["kind"])
    ]


def assert_same_bits(one: Path, other: Path, *files: str) -> None:
    """Two folders have safetensors files of the same tensors, by default those of a checkpoint."""
    from nmt.training.checkpoint import read_tensors

    for name in files or ("model.safetensors", "training.safetensors"):
        left, right = read_tensors(one / name), read_tensors(other / name)
        assert left.keys() == right.keys()
        assert [key for key in left if left[key].numpy().tobytes() != right[key].numpy().tobytes()] == []


def nmt(
    *arguments: str | Path, folder: Path, stdin: bytes | None = b"", environment: dict[str, str] | None = None
) -> subprocess.CompletedProcess[bytes]:
    """Runs the command line in another process."""
    root = Path(__file__).parents[2]
    command = list(map(str, arguments))
    everything = _AT_FIRST | {"PYTHONPATH": str(root), "OMP_NUM_THREADS": "1", **(environment or {})}
    if stdin is not None and environment is None and (done := _FORKS.run(command, folder, stdin, everything)):
        return done
    return subprocess.run(
        [sys.executable, "-m", "nmt", *command],
        cwd=folder,
        input=stdin,
        capture_output=True,
        check=False,
        env=everything,
    )


_FORKS = Forks()
_AT_FIRST = dict(os.environ)
"""The environment before the first test; what is used in this process, PyTorch and Ray among it, adds to it."""


class Done(NamedTuple):
    """The results of a command."""

    code: int | str | None
    stdout: str
    stderr: str

    @property
    def error(self) -> str:
        """The one line of a refusal."""
        assert (self.code, self.stdout) == (2, "")
        assert "Traceback" not in self.stderr
        last = self.stderr.splitlines()[-1]
        assert last.startswith("error: ")
        return last.removeprefix("error: ")


Command: TypeAlias = Callable[..., Done]


def in_process(capsys: pytest.CaptureFixture[str], *first: str) -> Command:
    """Runs the command line in this process; every command begins with ``first``."""

    def run(*arguments: str | Path) -> Done:
        capsys.readouterr()
        with pytest.raises(SystemExit) as exit:
            app.main([*first, *map(str, arguments)])
        return Done(exit.value.code, *capsys.readouterr())

    return run


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a corpus, config.yaml and a run of two updates in run/. Read it only."""
    folder = tmp_path_factory.mktemp("trained")
    write_corpus(folder)
    (folder / "config.yaml").write_text(CONFIG, encoding="utf-8")
    done = nmt("train", "config.yaml", "--precision", "float32", folder=folder)
    assert done.returncode == 0, done.stderr.decode()
    return folder


@pytest.fixture(scope="session")
def reverse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that translates the other way, with other subwords and two layers of two heads."""
    folder = tmp_path_factory.mktemp("reverse")
    write_corpus(folder)
    config = CONFIG.replace(".de", ".x").replace(".en", ".de").replace(".x", ".en").replace("size: 60", "size: 52")
    config = config.replace("rnn, size: 12", "transformer, layers: 1, size: 16, heads: 2")
    config = config.replace("{kind: rnn, size: 20}", "{kind: transformer, layers: 2, size: 16, heads: 2}")
    config = config.replace("16, heads: 2}\nt", "16, heads: 2}\n  attention: {score: scaled_dot}\nt")
    (folder / "config.yaml").write_text(config, encoding="utf-8")
    done = nmt("train", "config.yaml", "--precision", "float32", folder=folder)
    assert done.returncode == 0, done.stderr.decode()
    return folder / "run"

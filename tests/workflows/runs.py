"""A tiny run that the tests of the commands share."""

from __future__ import annotations

import contextlib
import io
import json
import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import pytest

from nmt import accelerate
from nmt import experiment as experiments
from nmt.cli import app
from nmt.training import metrics, run_directory
from tests.workflows.forking import Forks

if TYPE_CHECKING:
    from nmt.data.segments import SourceLengths
    from nmt.translator.translator import Translator

WORDS = {"eins": "one", "zwei": "two", "drei": "three", "Hund": "dog", "Katze": "cat", "und": "and", "grün": "green"}


def sentences(count: int, seed: int) -> list[tuple[str, str]]:
    """Word by word translations of 2 to 6 words, all different."""
    draw = random.Random(seed)
    pairs: dict[tuple[str, str], None] = {}
    while len(pairs) < count:
        words = draw.choices(list(WORDS), k=draw.randint(2, 6))
        pairs[" ".join(words) + ".", " ".join(WORDS[word] for word in words) + "."] = None
    return list(pairs)


def lines_of(path: str | Path) -> list[str]:
    return Path(path).read_text(encoding="utf-8").splitlines()


def json_lines(path: str | Path) -> list[Any]:
    return list(map(json.loads, lines_of(path)))


def write_lines(path: str | Path, lines: Iterable[str]) -> None:
    Path(path).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="")


def write_pairs(sources: Iterable[str], targets: Iterable[str]) -> None:
    """Writes the files of pairs ``s`` and ``t`` of the current folder."""
    write_lines("s", sources)
    write_lines("t", targets)


def write_corpus(folder: Path, *, train: int = 60) -> None:
    pairs = sentences(train + 20, seed=1)
    for name, part in (("train", pairs[:train]), ("valid", pairs[train : train + 10]), ("test", pairs[train + 10 :])):
        for side, lines in zip(("de", "en"), zip(*part, strict=True), strict=True):
            write_lines(folder / f"{name}.{side}", lines)


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

TRANSFORMER = CONFIG.replace("{kind: rnn, size: 12}", "{kind: transformer, layers: 1, size: 16, heads: 2}").replace(
    "{kind: rnn, size: 20}", "{kind: transformer, layers: 1, size: 16, heads: 2}\n  attention: {score: scaled_dot}"
)

SEARCHED_ONCE = TRANSFORMER.replace("search: {", "search: {repetition_margin: null, ")
"""CTranslate2 has no second search."""


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


def settings_of(*changes: str) -> list[str]:
    """The options that make these changes of a configuration."""
    return [part for change in changes for part in ("--set", change)]


def train_here(*changes: str, **options: Any) -> Path:
    """Trains by the config.yaml of the current folder, with changes, and returns the run directory."""
    from nmt.workflows.train import train

    accelerate()  # as the command line does, so that trainings can be compared by their bits
    experiment = experiments.load(Path("config.yaml"), changes)
    return train(experiment, **{"device": "cpu", "precision": "float32"} | options)


def train_in(folder: Path, config: str = CONFIG, *changes: str) -> Path:
    """Trains in a new folder, which is returned."""
    done = nmt("train", "config.yaml", *EXACT, *settings_of(*changes), folder=place(folder, config))
    assert done.returncode == 0, done.stderr.decode()
    return folder


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
    def output(self) -> str:
        """The results of a command that has done its work."""
        assert self.code == 0, self.stderr
        return self.stdout

    @property
    def tree(self) -> Any:
        """The object that a command with ``--json`` prints."""
        return json.loads(self.output)

    @property
    def error(self) -> str:
        """The one line of a refusal."""
        assert (self.code, self.stdout) == (2, "")
        assert "Traceback" not in self.stderr
        last = self.stderr.splitlines()[-1]
        assert last.startswith("error: ")
        return last.removeprefix("error: ")


Command: TypeAlias = Callable[..., Done]


def ended(arguments: Iterable[str | Path], stdin: bytes) -> int | str | None:
    """Runs the command line in this process and returns its exit code."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        with pytest.raises(SystemExit) as exit:
            app.main(list(map(str, arguments)))
    return exit.value.code


def in_process(capsys: pytest.CaptureFixture[str], *first: str) -> Command:
    """Runs the command line in this process; every command begins with ``first``."""

    def run(*arguments: str | Path, stdin: bytes = b"") -> Done:
        capsys.readouterr()
        code = ended([*first, *arguments], stdin)
        return Done(code, *capsys.readouterr())

    return run


def call(folder: Path, *arguments: str | Path, stdin: bytes = b"") -> Done:
    """Runs the command line in this process and in a folder."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline="\n", write_through=True) for _ in range(2))
    with contextlib.chdir(folder), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = ended(arguments, stdin)
    return Done(code, out.buffer.getvalue().decode(), err.buffer.getvalue().decode())


EXACT = ("--precision", "float32")
TEXT = b"der hund\n\neine katze und ein hund\nder hund\n"


def translated(folder: Path, *arguments: str, text: bytes = TEXT) -> bytes:
    """What the run of a folder makes of a text."""
    return call(folder, "translate", "run", *EXACT, *arguments, stdin=text).output.encode()


def records(folder: Path, *arguments: str, text: bytes = TEXT) -> list[dict[str, Any]]:
    return [json.loads(line) for line in translated(folder, "--format", "jsonl", *arguments, text=text).splitlines()]


def refused(folder: Path, *arguments: str, text: bytes = TEXT) -> str:
    return call(folder, "translate", "run", *arguments, stdin=text)._replace(stdout="").error


def one_process(
    *commands: str, folder: Path, begin: str = "", site: str | Path = ""
) -> subprocess.CompletedProcess[str]:
    """Runs commands, one after the other, in another process, after a statement and with the packages of a folder."""
    script = f"{begin}\nfrom nmt.cli import app\n"
    for command in commands:
        script += f"try:\n    app.main({command.split()})\nexcept SystemExit as exit:\n    assert not exit.code\n"
    environment = {"PYTHONPATH": f"{Path(__file__).parents[2]}{os.pathsep}{site}", "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        [sys.executable, "-c", script], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


without_torch = partial(one_process, begin="import sys; sys.modules['torch'] = None")


def error(done: subprocess.CompletedProcess[bytes]) -> str:
    """The one line of a fault of the input."""
    assert done.returncode == 2, done.stderr.decode()
    lines = [line for line in done.stderr.decode().splitlines() if line.startswith("error: ")]
    assert len(lines) == 1, done.stderr.decode()
    assert "Traceback" not in done.stderr.decode()
    return lines[0].removeprefix("error: ")


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a corpus, config.yaml and a run of two updates in run/. Read it only."""
    return train_in(tmp_path_factory.mktemp("trained"))


def loaded(folder: Path, *overrides: str, lengths: SourceLengths | None = None) -> Translator:
    """Loads the model of a folder, as if it was trained on sentences of these lengths."""
    from nmt.api import load

    translator = load(folder / "run", device="cpu", precision="float32", overrides=overrides)
    return translator if lengths is None else replace(translator, trained=replace(translator.trained, lengths=lengths))


def searching(translator: Translator, **keys: object) -> Translator:
    """The same translator with other keys of ``search``."""
    return replace(translator, search=translator.search.model_copy(update=keys))


def edit_state(checkpoint: Path, **changes: Any) -> None:
    """Changes the state of a checkpoint, and its checksum."""
    state = json.loads((checkpoint / run_directory.STATE).read_text("utf-8")) | changes
    (checkpoint / run_directory.STATE).write_text(json.dumps(state), encoding="utf-8")
    names = (run_directory.MODEL, run_directory.TRAINING, run_directory.STATE)
    run_directory.write_checksums(checkpoint, [name for name in names if (checkpoint / name).exists()])


@pytest.fixture(scope="session")
def translator(trained: Path) -> Translator:
    """The model of the shared run, which is changed by nobody."""
    return loaded(trained)


@pytest.fixture(scope="session")
def reverse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that translates the other way, with other subwords and two layers of two heads."""
    config = TRANSFORMER.replace(".de", ".x").replace(".en", ".de").replace(".x", ".en").replace("size: 60", "size: 52")
    config = config.replace("layers: 1, size: 16, heads: 2}\n  a", "layers: 2, size: 16, heads: 2}\n  a")
    return train_in(tmp_path_factory.mktemp("reverse"), config) / "run"

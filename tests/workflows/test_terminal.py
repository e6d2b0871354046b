"""What a person sees who watches on a terminal, and what a pipe or a build server gets."""

from __future__ import annotations

import fcntl
import io
import os
import pty
import re
import struct
import sys
import termios
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from nmt.core import log
from nmt.training.more.table import Example, Table
from nmt.training.validation import Validated, line
from tests.workflows.runs import nmt

ROOT = Path(__file__).parents[2]
ESCAPE = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


def on_terminal(
    folder: Path,
    *arguments: str,
    environment: Mapping[str, str] | None = None,
    typed: Sequence[bytes] = (),
    columns: int = 80,
) -> str:
    """All that a command shows on a terminal. ``typed`` are the answers to prompts."""
    process, terminal = pty.fork()
    if process == 0:
        os.chdir(folder)
        unset = ("CI", "NO_COLOR", "COLUMNS", "PYTEST_CURRENT_TEST")
        kept = {name: value for name, value in os.environ.items() if name not in unset}
        kept |= {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "TERM": "xterm", **(environment or {})}
        os.execve(sys.executable, [sys.executable, "-m", "nmt", *arguments], kept)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    shown = b""
    answers = iter(typed)
    while True:
        try:
            data = os.read(terminal, 1 << 16)
        except OSError:  # the other end was closed
            break
        if not data:
            break
        shown += data
        if shown.endswith(b"> "):
            os.write(terminal, next(answers, b""))
    os.close(terminal)
    assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 0, shown.decode()
    return shown.decode().replace("\r\n", "\n")


def final(shown: str) -> list[str]:
    """The lines as they stand in the end: of what was written over, the last."""
    return [text.rpartition("\r")[2] for text in ESCAPE.sub("", shown).split("\n")]


VALIDATED = Validated(1200, 7, 3.44, {"loss": 0.25, "bleu": 89.81}, is_best=True)


def test_a_table_has_its_head_once_and_marks_the_best() -> None:
    table = Table(width=80, colour=False)
    assert table(VALIDATED).split("\n") == [
        "  update  epoch     min        loss        bleu",
        "   1,200      7     3.4        0.25       89.81  best",
    ]
    assert table(Validated(2, 1, 0.1, {"loss": 1, "bleu": 2}, is_best=False)) == (
        "       2      1     0.1        1.00        2.00"
    )
    assert line(VALIDATED) == "update 1200, epoch 7, 3.4 min: valid loss 0.25, bleu 89.81 (best)"


def test_an_example_is_cut_to_the_width_and_coloured_by_the_reference() -> None:
    table = Table(width=40, colour=True)
    table.example = Example("q" * 90, "a dog\x1b[2J", "a cat")
    text = table(VALIDATED)
    assert "\x1b[32ma\x1b[0m \x1b[33mcat\x1b[0m" in text
    assert "\x1b[2J" not in text
    assert max(len(ESCAPE.sub("", each)) for each in text.split("\n")[2:]) <= 40
    plain = Table(width=40, colour=False)
    plain.example = table.example
    assert ESCAPE.sub("", text) == plain(VALIDATED)


TRAIN = ("--set", "run=watched", "--set", "training.validation.every=1", "--precision", "float32")


@pytest.fixture(scope="module")
def folder(trained: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the corpus and config.yaml."""
    folder = tmp_path_factory.mktemp("watched")
    for file in (*trained.glob("*.de"), *trained.glob("*.en"), trained / "config.yaml"):
        (folder / file.name).write_bytes(file.read_bytes())
    return folder


def test_who_watches_a_training_sees_a_bar_a_table_and_a_translation(folder: Path) -> None:
    shown = on_terminal(folder, "train", "config.yaml", *TRAIN)
    assert "train: " in shown
    assert "\x1b[" in shown
    lines = final(shown)
    heads = [number for number, each in enumerate(lines) if each.startswith("  update  epoch     min")]
    assert len(heads) == 1
    assert lines[heads[0]].split() == ["update", "epoch", "min", "loss", "perplexity", "accuracy", "bleu", "chrf"]
    assert lines[heads[0] + 1].split()[0] == "1"
    sources = (folder / "valid.de").read_text(encoding="utf-8").splitlines()
    (source, *_) = [each.removeprefix("  source       ") for each in lines if each.startswith("  source  ")]
    assert source in sources
    assert "translate  nmt translate watched --input FILE --output TRANSLATION" in lines


def test_a_bar_keeps_its_time_left_on_a_narrow_terminal(folder: Path) -> None:
    numbers = ["--set", "training.stopping.updates=60", "--set", "training.log_every=1", "--set", "run=narrow"]
    shown = on_terminal(folder, "train", "config.yaml", *numbers, columns=40)
    bars = [part for part in re.split(r"[\r\n]", ESCAPE.sub("", shown)) if part.startswith("train: ")]
    assert any(re.match(r"train: \d+/60, \d\d:\d\d left", bar) for bar in bars)
    assert max(map(len, bars)) <= 40
    (estimate,) = re.findall(r"about \d+ min for (\d+) more updates", shown)
    assert estimate == "40"


def test_who_types_at_translate_has_a_prompt_and_no_bar(trained: Path) -> None:
    answers = (b"Hund und Katze.\n", b"\x04")
    shown = on_terminal(trained, "translate", "run", "--precision", "float32", "-v", typed=answers)
    translation = nmt("translate", "run", "--precision", "float32", folder=trained, stdin=b"Hund und Katze.\n")
    lines = final(shown)
    assert "type a text and press Enter; Ctrl-D ends" in lines
    assert translation.stdout.decode().strip() in lines
    assert "translate: " not in shown
    assert "line/s" not in shown
    assert "lines/s" not in shown


@pytest.mark.parametrize(
    ("variables", "watched", "colour"),
    [
        ({}, True, True),
        ({"NO_COLOR": "1"}, True, False),
        ({"NO_COLOR": ""}, True, True),
        ({"TERM": "dumb"}, True, False),
        ({"CI": "true"}, False, False),
    ],
)
def test_no_colour_and_build_servers(
    monkeypatch: pytest.MonkeyPatch, variables: Mapping[str, str], watched: bool, colour: bool
) -> None:
    for name in ("CI", "NO_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert (log.is_watched(), log.has_colour()) == (False, False)
    monkeypatch.setattr(sys, "stderr", Terminal())
    assert (log.is_watched(), log.has_colour()) == (watched, colour)
    with log.progress(range(1)) as bar:
        assert bar.disable == (not watched)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_alignments_are_pictures_on_a_terminal_and_lines_in_a_pipe(tmp_path: Path) -> None:
    for name, text in (("s", "der Hund\n"), ("t", "the dog\n"), ("links", "0-0 1-1\n")):
        (tmp_path / name).write_text(text)
    arguments = ("align", "--source", "s", "--target", "t", "--links", "links")
    picture = ["1", "      H", "    d u", "    e n", "    r d", "the █•", "dog   █•"]
    lines = final(on_terminal(tmp_path, *arguments))
    assert [each for each in lines if each.strip()] == picture
    assert nmt(*arguments, folder=tmp_path).stdout == b"0-0 1-1\n"
    assert nmt(*arguments, "--format", "heatmap", folder=tmp_path).stdout.decode().splitlines() == picture
    assert "1-1 2-2" in final(on_terminal(tmp_path, *arguments, "--base", "1"))

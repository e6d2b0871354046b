"""The output on a terminal that a person watches, and in a pipe or on a build server."""

from __future__ import annotations

import contextlib
import fcntl
import io
import json
import os
import pty
import re
import shutil
import signal
import struct
import sys
import termios
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
import yaml

from nmt.core import log
from tests.workflows.runs import call, lines_of, place, write_lines

ROOT = Path(__file__).parents[2]
ESCAPE = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


def started(folder: Path, *arguments: str) -> tuple[int, int]:
    """A command on a terminal of its own: its process and the other end of the terminal."""
    process, terminal = pty.fork()
    if process == 0:
        os.chdir(folder)
        signal.signal(signal.SIGHUP, signal.SIG_DFL)  # whom `nohup` starts would ignore it
        unset = ("CI", "NO_COLOR", "COLUMNS", "PYTEST_CURRENT_TEST")
        kept = {name: value for name, value in os.environ.items() if name not in unset}
        kept |= {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "TERM": "xterm"}
        os.execve(sys.executable, [sys.executable, "-m", "nmt", *arguments], kept)
    return process, terminal


def on_terminal(folder: Path, *arguments: str, typed: Sequence[bytes] = (), columns: int = 80) -> str:
    """All that a command shows on a terminal. ``typed`` are the answers to prompts."""
    process, terminal = started(folder, *arguments)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    shown = b""
    answers = iter(typed)
    with contextlib.suppress(OSError):  # the other end was closed
        while data := os.read(terminal, 1 << 16):
            shown += data
            if shown.endswith(b"> "):
                os.write(terminal, next(answers, b""))
    os.close(terminal)
    assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 0, shown.decode()
    return shown.decode().replace("\r\n", "\n")


def test_a_training_whose_terminal_is_closed_saves_its_state(folder: Path) -> None:
    numbers = ("training.stopping.updates=100000", "training.validation.every=100000", "training.save_every=100000")
    sets = [part for each in (*numbers, "run=closed") for part in ("--set", each)]
    process, terminal = started(folder, "train", "config.yaml", "--processes", "2", *sets)
    shown = b""
    while b"more updates" not in shown:
        shown += os.read(terminal, 1 << 16)
    os.close(terminal)  # as a window or a connection that goes away
    assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 143
    assert (folder / "closed/latest").resolve().name.startswith("step-")


def final(shown: str) -> list[str]:
    """The lines as they stand in the end: of what was written over, the last."""
    return [text.rpartition("\r")[2] for text in ESCAPE.sub("", shown).split("\n")]


TRAIN = ("--set", "run=watched", "--set", "training.validation.every=1", "--precision", "float32")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the corpus and config.yaml."""
    return place(tmp_path_factory.mktemp("watched"))


def test_who_watches_a_training_sees_a_bar_a_table_and_a_translation(folder: Path) -> None:
    shown = on_terminal(folder, "train", "config.yaml", *TRAIN)
    assert "train: " in shown
    assert "\x1b[" in shown
    lines = final(shown)
    (head,) = (number for number, each in enumerate(lines) if each.startswith("  update  epoch     min"))
    assert lines[head].split() == ["update", "epoch", "min", "loss", "perplexity", "accuracy", "bleu", "chrf"]
    assert lines[head + 1].split()[0] == "1"
    (source, *_) = [each.removeprefix("  source       ") for each in lines if each.startswith("  source  ")]
    assert source in lines_of(folder / "valid.de")
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
    translation = call(trained, "translate", "run", "--precision", "float32", stdin=b"Hund und Katze.\n")
    lines = final(shown)
    assert "type a text and press Enter; Ctrl-D ends" in lines
    assert translation.output.strip() in lines
    assert not re.search("translate: |lines?/s", shown)


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
    terminal = io.StringIO()
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stderr", terminal)
    assert (log.is_watched(), log.has_colour()) == (watched, colour)
    with log.progress(range(1)) as bar:
        assert bar.disable == (not watched)


def test_alignments_are_pictures_on_a_terminal_and_lines_in_a_pipe(tmp_path: Path) -> None:
    for name, text in (("s", "der Hund\n"), ("t", "the dog\n"), ("links", "0-0 1-1\n")):
        (tmp_path / name).write_text(text)
    arguments = ("links", "links", "--source", "s", "--target", "t")
    picture = ["1", "      H", "    d u", "    e n", "    r d", "the █•", "dog   █•"]
    lines = final(on_terminal(tmp_path, *arguments))
    assert [each for each in lines if each.strip()] == picture
    assert call(tmp_path, *arguments).output == "0-0 1-1\n"
    assert call(tmp_path, *arguments, "--format", "heatmap").output.splitlines() == picture
    assert "1-1 2-2" in final(on_terminal(tmp_path, *arguments, "--base", "1"))


# A sign that nothing else shows follows each, so that they are told from the codes of a bar or table.
CONTROLS = tuple(f"{char}¶" for char in "\x1b\x9b\x07\r\x08\u202e")
ODD = "".join(CONTROLS)
NAME = f"{ODD}\n§x"


@pytest.fixture(scope="module")
def odd(trained: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder whose run, corpus files and texts have control characters."""
    folder = tmp_path_factory.mktemp("odd")
    shutil.copytree(trained / "run", folder / "runs" / NAME, symlinks=True)
    for suffix in ("de", "en"):
        shutil.copy(trained / f"train.{suffix}", folder / f"train{NAME}.{suffix}")
        write_lines(folder / f"valid{NAME}.{suffix}", [f"Hund{ODD} und {ODD}"] * 2)
    config = yaml.safe_load((trained / "config.yaml").read_text(encoding="utf-8")) | {"run": f"runs/new{NAME}"}
    for part in ("train", "valid"):
        config["data"][part] = {"source": f"{part}{NAME}.de", "target": f"{part}{NAME}.en"}
    (folder / f"c{NAME}.yaml").write_text(json.dumps(config), encoding="utf-8")
    (folder / "text").write_text(f"Hund {ODD} und Katze{ODD}\n", encoding="utf-8", newline="")
    (folder / "links").write_text("0-0\n" * 2)
    return folder


SHOWN = {
    "train": ("train", f"c{NAME}.yaml", "--precision", "float32", "--set", "training.validation.metric=bleu"),
    "prepare": ("prepare", f"c{NAME}.yaml", "--force", "-v"),
    "translate": ("translate", f"runs/{NAME}", "-v", "--input", "text", "--document", "--markup"),
    "jsonl": ("translate", f"runs/{NAME}", "--input", "text", "--format", "jsonl"),
    "replaced": ("translate", f"runs/{NAME}", "--input", "text", "--output", f"out{NAME}"),
    "info": ("info", f"runs/{NAME}"),
    "config": ("config", f"c{NAME}.yaml"),
    "explain": ("config", f"c{NAME}.yaml", "--explain", "run"),
    "doctor": ("doctor",),
    "heatmap": ("links", "links", "--source", f"valid{NAME}.de", "--target", f"valid{NAME}.en"),
    "words": ("align", f"runs/{NAME}", "--source", "text", "--format", "tsv"),
    "init": ("init", "mine", "--source", f"train{NAME}.de", "--target", f"train{NAME}.en"),
    "no run": ("translate", f"no{NAME}"),
    "no option": ("translate", f"--no{NAME}"),
    "no number": ("translate", "--n-best", NAME),
    "no command": (NAME,),
}  # fmt: skip


def raw(shown: str) -> set[str]:
    """The control characters of names and texts that a terminal would get as they are."""
    return {each for each in (*CONTROLS, "\n§") if each in shown}


@pytest.mark.parametrize("command", SHOWN)
def test_messages_have_no_control_characters_of_names_and_texts(odd: Path, command: str) -> None:
    done = call(odd, *SHOWN[command])
    assert done.code == (2 if command.startswith("no ") else 0), done.stderr
    assert not raw(done.stderr)
    assert "Traceback" not in done.stderr
    shutil.rmtree(odd / "data", ignore_errors=True)
    (odd / "mine.yaml").unlink(missing_ok=True)


@pytest.mark.parametrize("command", ["train", "translate", "config", "heatmap", "words"])
def test_a_terminal_gets_no_control_characters_of_names_and_texts(odd: Path, command: str) -> None:
    shown = on_terminal(odd, *SHOWN[command])
    assert not raw(shown)
    assert "\ufffd¶" in shown or command == "config"  # YAML escapes


def test_a_pipe_gets_translations_as_they_are_and_a_terminal_printable_ones(trained: Path, tmp_path: Path) -> None:
    text = f"<!--{ODD.replace(chr(13), '')}-->\t1\n"
    (tmp_path / "text").write_text(text, encoding="utf-8")
    arguments = ("translate", str(trained / "run"), "--markup", "--input", "text", "--quiet")
    piped = call(tmp_path, *arguments).output
    assert "\x9b" in piped
    (shown,) = (each for each in final(on_terminal(tmp_path, *arguments)) if "\ufffd" in each)
    assert shown == re.sub("[\x9b\u202e]", "\ufffd", piped.removesuffix("\n"))
    (tmp_path / "text").write_bytes(b"Hund.\r\n\r\n\tKatze.\r\n")
    assert "\ufffd" not in on_terminal(tmp_path, *arguments, "--document")

"""Fixtures of the command line: commands in this process, and in one that has not imported PyTorch."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from nmt.cli.app import COMMANDS
from tests.workflows.runs import Command, in_process

# Runs the command line for each line of the standard input, and says on stderr how it ended. A module may be missing.
PROGRAM = """
import json, sys
from nmt.cli.app import main
for line in sys.stdin:
    words, missing = json.loads(line)
    before = {name: sys.modules.pop(name, None) for name in missing}
    sys.modules.update(dict.fromkeys(missing))
    try:
        main(words)
    except SystemExit as end:
        print(json.dumps([end.code, "torch" in sys.modules]), file=sys.stderr, flush=True)
    for name in missing:
        del sys.modules[name]
    sys.modules.update({name: module for name, module in before.items() if module is not None})
"""

Light: TypeAlias = Callable[..., tuple[list[str], int]]
Refusal: TypeAlias = Callable[[str], str]


@pytest.fixture(scope="session")
def light(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Light]:
    """Runs commands, one after the other, in a process that must not import PyTorch for them, in a folder with two
    files, where they must not write. Returns the lines on stderr and the exit code; ``missing`` modules cannot be
    imported."""
    folder, files = tmp_path_factory.mktemp("light"), ["LICENSE", "README.md"]
    for name in files:
        (folder / name).touch()
    environment = {**os.environ, "COLUMNS": "80", "PYTHONPATH": str(Path(__file__).parents[2])}
    streams: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    process = subprocess.Popen([sys.executable, "-c", PROGRAM], cwd=folder, env=environment, text=True, **streams)

    def run(*words: str, missing: tuple[str, ...] = ()) -> tuple[list[str], int]:
        assert process.stdin is not None
        assert process.stderr is not None
        print(json.dumps([words, missing]), file=process.stdin, flush=True)
        lines = []
        while not (line := process.stderr.readline()).startswith("["):
            assert line, lines
            lines.append(line.removesuffix("\n"))
        code, has_torch = json.loads(line)
        assert (has_torch, sorted(os.listdir(folder))) == (False, files), words
        return lines, code

    with process:
        yield run


@pytest.fixture
def refusal(light: Light) -> Refusal:
    """Returns the one line of the error that a command line, with the words quoted as in a shell, ends with."""

    def run(arguments: str) -> str:
        (line,), code = light(*shlex.split(arguments))
        assert (code, line[:7]) == (2, "error: ")
        return line[7:]

    return run


def mistakes(command: str, messages: Mapping[str, str]) -> Callable[[str, Refusal], None]:
    """Makes a test of the error for each mistake in the arguments of a command. A message may leave out the name of the
    help page that follows it, and its end, for an ellipsis."""

    @pytest.mark.parametrize("arguments", messages)
    def test(arguments: str, refusal: Refusal) -> None:
        message, line = messages[arguments], f"{command} {arguments}".strip()
        page = " ".join(["nmt", *(word for word in line.split()[:1] if word in COMMANDS)])
        error = refusal(line)
        if message.endswith("…"):
            error = error[: len(message) - 1] + "…"
        assert error in (message, f"{message} (see {page} --help)")

    return test


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Command:
    return in_process(capsys)

"""The measurements of long work: that they go through, with a tiny model, and that they see what goes wrong."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import TypeAlias

import clients
import endurance
import pytest

from tests.scripts.conftest import figures, serving
from tests.workflows.runs import Command, write_corpus

Measure: TypeAlias = Callable[..., tuple[dict[str, float], str]]


@pytest.fixture
def measured(run_script: Command) -> Measure:
    """Runs the script; its figures, and what it says of bars that are missed."""

    def run(*arguments: object) -> tuple[dict[str, float], str]:
        code, out, err = run_script(endurance, *arguments)
        missed = "".join(f"{line}\n" for line in err.splitlines() if line.startswith("missed: "))
        assert code == (1 if missed else 0), err
        return figures(out), missed

    return run


@pytest.mark.slow
def test_a_training_is_told_by_epochs(tmp_path: Path, measured: Measure) -> None:
    write_corpus(tmp_path)
    folders = ("--corpus", tmp_path, "--folder", tmp_path)
    figures, missed = measured("train", "--pairs=500", "--epochs=2", "--batch-tokens=100", *folders, "--memory=5")
    assert missed == ""
    assert figures["pairs"] == 500  # of 60 different ones
    assert figures["pairs lost by nmt prepare"] == figures["epochs that are missing"] == 0
    assert figures["updates"] > 40
    assert {"memory, epoch 1", "memory, epoch 2"} <= set(figures)
    assert figures["memory, epoch 1"] > 100  # PyTorch alone is more
    assert not list(tmp_path.glob("endurance-*"))


@pytest.mark.slow
def test_translations_are_counted_and_compared(trained: Path, measured: Measure) -> None:
    source = trained / "train.de"
    figures, missed = measured("translate", trained / "run", f"--source={source}", "--lines=4500", "--memory=5")
    assert missed == ""
    assert figures["lines"] == 4500
    assert figures["lines lost or too many"] == figures["lines translated otherwise than the first time"] == 0


ECHO = """
import sys, time
lines = [line.upper() for line in sys.stdin]
{fault}
print(*lines, sep="", end="", flush=True)
time.sleep(0.5)
"""


@pytest.mark.parametrize(
    ("fault", "limit", "missed"),
    [
        ("", 9, ""),
        ("del lines[70]", 9, "missed: lines lost or too many: 1 lines"),
        ("lines.insert(5, chr(10))", 9, "missed: lines lost or too many: 1 lines"),
        ("lines[100] = 'x' + lines[100]", 9, "missed: lines translated otherwise than the first time: 1 lines"),
        ("", 0.1, "missed: memory, later over tenth 2: 1 times"),
    ],
    ids=["nothing", "one less", "one more", "another", "memory"],
)
def test_what_a_translation_does_wrong_is_seen(
    fault: str, limit: float, missed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, measured: Measure
) -> None:
    write_corpus(tmp_path)
    monkeypatch.setattr(endurance, "validate_model", lambda model, overrides, **_: None)
    monkeypatch.setattr(endurance, "nmt", lambda *_: [sys.executable, "-c", ECHO.format(fault=fault)])
    _, said = measured("translate", "-", "--source", tmp_path / "train.de", "--lines", 150, "--memory", limit)
    assert missed in said
    assert bool(missed) == bool(said)


@pytest.mark.slow
def test_a_server_is_asked_by_good_clients_and_broken_ones(
    trained: Path, measured: Measure, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clients, "FAULTS", [each for each in clients.FAULTS if each is not clients._stalled])
    options = ("--minutes=0.07", "--clients=20", "--timeout=5", "--memory=5")
    figures, missed = measured("serve", trained / "run", f"--source={trained / 'train.de'}", *options)
    assert missed == ""
    good = figures["good: 200"]
    assert good > 10
    assert figures["by the server's count: status 200"] >= good
    assert figures["translations compared"] >= good
    assert 0 < figures["good clients p50"] <= figures["good clients p95"] <= figures["good clients p99"]
    assert figures["answers that should not be"] == figures["left in the queue"] == 0


class Answering(BaseHTTPRequestHandler):
    """Says the source in capitals, and every third time what ``every_third`` says."""

    protocol_version = "HTTP/1.1"
    every_third = (200, b"")

    def do_POST(self) -> None:
        texts = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["text"]
        results = [
            {"line": number, "source": text, "translations": [{"text": text.upper()}]}
            for number, text in enumerate(texts, 1)
        ]
        self.server.count += 1  # type: ignore[attr-defined]
        status, body = 200, json.dumps({"results": results}).encode()
        if self.server.count % 3 == 0:  # type: ignore[attr-defined]
            status, body = self.every_third[0], self.every_third[1] or body
        self.send_response(status)
        self.send_header("Retry-After", "0")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


OTHER = json.dumps({"results": [{"line": 1, "source": "a", "translations": [{"text": "B"}]}]}).encode()


@pytest.mark.parametrize(
    ("every_third", "is_wrong"),
    [((200, b""), False), ((429, b"{}"), False), ((503, b"{}"), False), ((500, b"{}"), True), ((200, OTHER), True)],
    ids=["right", "busy", "too late", "fault", "another"],
)
def test_what_a_server_does_wrong_is_seen(every_third: tuple[int, bytes], is_wrong: bool) -> None:
    expected = {word: word.upper() for word in ("a", "b", "ä")}
    with serving(type("Handler", (Answering,), {"every_third": every_third})) as server:
        server.count = 0  # type: ignore[attr-defined]
        tally = clients.at_once(server.server_port, expected, clients=3, until=time.monotonic() + 0.3)
    assert bool(tally.wrong) == is_wrong
    assert tally.statuses["good", 200] > 3
    if every_third[0] != 200:
        assert tally.statuses["good", every_third[0]] > 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("translate", "nowhere"), "error: nowhere: no such run directory, checkpoint or config"),
        (("serve", "nowhere"), "error: nowhere: no such run directory, checkpoint or config"),
        (("train", "--folder", "nowhere"), "error: --folder nowhere: no such folder"),
        (("train", "--corpus", "nowhere"), "error: nowhere/train.de: no such file"),
        (("translate", "run", "--lines", "0"), "argument --lines: must be a whole number of at least 1"),
        (("serve", "run", "--minutes", "nan"), "argument --minutes: must be a number above 0"),
    ],
    ids=lambda value: None if isinstance(value, str) else " ".join(value),
)
def test_a_mistake_is_a_line(
    arguments: tuple[str, ...], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run_script: Command
) -> None:
    monkeypatch.chdir(tmp_path)
    code, _, err = run_script(endurance, *arguments)
    assert code == 2
    assert err.splitlines()[-1].endswith(message)


def test_the_latency_of_so_many_of_a_hundred() -> None:
    tally = clients.Tally([number / 1000 for number in range(100, 0, -1)])
    assert [round(tally.percentile_ms(percent)) for percent in (50, 95, 99)] == [51, 96, 100]


def test_memory_is_that_of_those_that_it_has_started_too() -> None:
    code = "import subprocess, sys; subprocess.run([sys.executable, '-c', sys.argv[1]])"
    child = "import sys; held = b'x' * 80_000_000; print('ready', flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", code, child], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        mib = endurance.resident(process.pid) / 1024
        process.communicate()
    assert 80_000_000 / 2**20 < mib < 150
    assert endurance.resident(process.pid) == 0

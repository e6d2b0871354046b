"""Functions that the benchmarks share: refusals of a script, and the processes whose memory is measured."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

import benchmark_translation
import measuring
import pytest

MIB = 1 << 10  # of KiB
needs_proc = pytest.mark.skipif(sys.platform != "linux", reason="memory is read from Linux' /proc")

SYSTEM = """
import subprocess, sys
PROGRAM = "import sys, time; held = b'x' * (int(sys.argv[1]) << 20); time.sleep(0.6)"

def serve(pipe):
    pipe.send(None)
    while (mib := pipe.recv()) is not None:
        pipe.send(subprocess.run([sys.executable, "-c", PROGRAM, str(mib)]).returncode)
"""

FORKING = """
import os, sys
held = b"x" * (60 << 20)
if os.fork():
    print(flush=True)
    os.wait()
else:
    sys.stdin.read()
"""


def test_what_a_benchmark_refuses_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["benchmark_translation.py", "nowhere", "no-such-file"])
    with pytest.raises(SystemExit) as exit:
        measuring.plainly(benchmark_translation.main)
    assert exit.value.code == 2
    assert capsys.readouterr() == ("", "error: no-such-file: no such file\n")


@needs_proc
def test_memory_is_of_a_program_and_not_of_what_started_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "system_with_a_program.py").write_text(SYSTEM)
    monkeypatch.syspath_prepend(tmp_path)
    held = b"x" * (200 << 20)  # ru_maxrss of the system, and of its program, is more than this
    serve = importlib.import_module("system_with_a_program").serve
    system: measuring.OwnProcess[int, int] = measuring.OwnProcess(serve)
    assert system.ask(0) == 0
    assert 0 < system.memory.started < 50 * MIB
    assert system.ask(100) == 0
    memory = system.end()
    assert 100 * MIB < memory.started < 150 * MIB
    assert memory.started < memory.total
    del held


@needs_proc
def test_a_process_that_has_ended_has_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        pass
    monkeypatch.setattr(Path, "is_dir", lambda _: True)  # as if it had been there when pathlib looked, and then ended
    assert list(measuring.family(process.pid)) == [process.pid]
    assert measuring.size_of(process.pid, "VmHWM") == 0


@needs_proc
def test_memory_of_a_process_that_is_forked_is_not_counted_twice() -> None:
    command = [sys.executable, "-c", FORKING]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        memory = measuring.PeakMemory(process.pid)
        memory.look()
    assert memory.started == 0
    assert 60 * MIB < memory.total < 100 * MIB


def test_memory_that_was_not_seen_is_no_figure(capsys: pytest.CaptureFixture[str]) -> None:
    memory = measuring.PeakMemory(-1)
    memory.look()
    measuring.report_memory("nothing", memory.total, "cpu")
    assert capsys.readouterr() == ("", "nothing: not measured, it takes Linux' /proc\n")

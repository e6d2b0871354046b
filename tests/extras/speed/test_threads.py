"""Training uses as many threads as there are idle cores."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from nmt.extras.speed import threads
from nmt.extras.speed.threads import idle_cores, on_idle_cores
from nmt.training.run_directory import read_state
from tests.workflows.runs import CONFIG, Command, in_process, write_corpus

needs_linux = pytest.mark.skipif(not Path("/proc/stat").exists(), reason="needs /proc/stat, which only Linux has")


@pytest.fixture(autouse=True)
def eight(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine of eight cores, whose threads nobody chose."""
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    count = [8]
    monkeypatch.setattr(torch, "get_num_threads", lambda: count[0])
    monkeypatch.setattr(torch, "set_num_threads", lambda number: count.__setitem__(0, number))


@pytest.mark.parametrize(
    ("idle", "before", "expected"),
    [(8.0, None, 8), (7.6, None, 8), (6.4, None, 6), (0.2, None, 1), (0.2, 8, 8), (8.0, 3, 3), (8.0, 64, 8)],
)
def test_each_idle_core_has_a_thread_and_who_goes_on_as_many_as_before(
    idle: float, before: int | None, expected: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(threads, "idle_cores", lambda _: idle)
    with on_idle_cores(before) as has_fewer:
        assert (has_fewer, torch.get_num_threads()) == (expected < 8, expected)
    assert torch.get_num_threads() == 8
    reason = "the other cores are busy" if before is None else "as the training began"
    said = f"threads: {expected} of 8, {reason}; OMP_NUM_THREADS=8 takes all\n" if expected < 8 else ""
    assert capsys.readouterr().err == said


def test_who_sets_the_number_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "8")
    monkeypatch.setattr(threads, "idle_cores", lambda _: pytest.fail("watched"))
    with on_idle_cores(2):
        assert torch.get_num_threads() == 8


@needs_linux
def test_a_busy_core_is_not_idle() -> None:
    """In a core of its own, for others may be at work here, too."""
    mine = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(mine)})
    try:
        with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as busy:
            time.sleep(0.3)
            assert idle_cores(1) < 0.2
            busy.kill()
    finally:
        os.sched_setaffinity(0, mine)


def test_where_nothing_can_be_watched_all_are_idle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "_STAT", tmp_path / "none")
    assert idle_cores(8) == 8


def test_a_training_goes_on_with_as_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_corpus(tmp_path)
    monkeypatch.chdir(tmp_path)
    Path("config.yaml").write_text(CONFIG)
    train: Command = in_process(capsys, "train", "config.yaml", "--device", "cpu", "--precision", "float32")
    monkeypatch.setattr(threads, "idle_cores", lambda _: 2.0)
    assert "\nthreads: 2 of 8, the other cores are busy; " in f"\n{train().stderr}"
    assert read_state(Path("run/latest"))["threads"] == 2
    monkeypatch.setattr(threads, "idle_cores", lambda _: 8.0)
    again = train("--set", "training.stopping.updates=3", "--extend").stderr
    assert "threads: 2 of 8, as the training began; " in again

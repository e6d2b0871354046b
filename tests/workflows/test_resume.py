"""Training that is cut off and taken up again ends in the same bits."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from nmt.training.checkpoint import read_tensors
from tests.workflows.runs import CONFIG, nmt, write_corpus

# Several epochs, dropout, subword sampling, accumulation, a schedule, and an epoch that ends inside an update.
SETTINGS = [
    "training.stopping.updates=60", "training.save_every=10", "training.validation.every=25", "training.accumulate=2",
    "training.schedule={kind: cosine, warmup: 10}", "data.subwords.sampling=0.2", "data.subwords.kind=unigram",
    "data.subwords.size=36",
]  # fmt: skip


def train(folder: Path, *settings: str) -> list[str | Path]:
    arguments: list[str | Path] = ["train", "config.yaml", "--precision", "float32"]
    for setting in (*SETTINGS, *settings):
        arguments += ["--set", setting]
    return arguments


def begin(folder: Path, *settings: str) -> subprocess.Popen[bytes]:
    root = Path(__file__).parents[2]
    return subprocess.Popen(
        [sys.executable, "-m", "nmt", *map(str, train(folder, *settings))],
        cwd=folder,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(root), "OMP_NUM_THREADS": "1"},
    )


def wait_for(path: Path, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 120
    while not path.exists():
        assert process.poll() is None, process.stderr.read().decode() if process.stderr else ""
        assert time.monotonic() < deadline, f"{path} never came"
        time.sleep(0.01)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """60 updates in one go."""
    folder = tmp_path_factory.mktemp("whole")
    write_corpus(folder)
    (folder / "config.yaml").write_text(CONFIG)
    done = nmt(*train(folder), folder=folder)
    assert done.returncode == 0, done.stderr.decode()
    return folder


def same_bits(one: Path, other: Path) -> None:
    for name in ("model.safetensors", "training.safetensors"):
        left, right = (read_tensors(folder / "run" / "latest" / name) for folder in (one, other))
        assert left.keys() == right.keys()
        for key in left:
            assert left[key].numpy().tobytes() == right[key].numpy().tobytes(), key


def test_killed_and_resumed_training_is_bit_identical(whole: Path, tmp_path: Path) -> None:
    write_corpus(tmp_path)
    (tmp_path / "config.yaml").write_text(CONFIG)
    process = begin(tmp_path)
    wait_for(tmp_path / "run" / "checkpoints" / "step-00000030", process)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not (tmp_path / "run" / "checkpoints" / "step-00000060").exists(), "it was killed too late to show anything"
    done = nmt(*train(tmp_path), folder=tmp_path)
    assert done.returncode == 0, done.stderr.decode()
    assert "going on from update" in done.stderr.decode()
    same_bits(whole, tmp_path)
    assert len((tmp_path / "run" / "metrics.jsonl").read_text().splitlines()) == len(
        (whole / "run" / "metrics.jsonl").read_text().splitlines()
    )


def test_interrupted_training_saves_exits_130_and_goes_on_bit_identically(whole: Path, tmp_path: Path) -> None:
    write_corpus(tmp_path)
    (tmp_path / "config.yaml").write_text(CONFIG)
    process = begin(tmp_path, "training.save_every=1000")
    wait_for(tmp_path / "run" / "metrics.jsonl", process)
    while (tmp_path / "run" / "metrics.jsonl").read_text().count("\n") < 5:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 130, stderr.decode()
    assert b"Traceback" not in stderr
    assert b"saved, the same command goes on from there" in stderr
    assert (tmp_path / "run" / "latest").exists()
    assert nmt(*train(tmp_path), folder=tmp_path).returncode == 0
    same_bits(whole, tmp_path)


def test_two_trainings_do_not_share_a_run(tmp_path: Path) -> None:
    write_corpus(tmp_path)
    (tmp_path / "config.yaml").write_text(CONFIG)
    process = begin(tmp_path, "training.stopping.updates=100000", "training.schedule=constant")
    try:
        wait_for(tmp_path / "run" / "metrics.jsonl", process)
        done = nmt(*train(tmp_path), folder=tmp_path)
        assert done.returncode == 2
        assert b"another process is training in it" in done.stderr
    finally:
        process.kill()
        process.wait()

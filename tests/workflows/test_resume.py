"""Training that is cut off and taken up again ends in the same bits."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from nmt.training.checkpoint import read_tensors
from nmt.training.run_directory import checkpoint_paths, set_link
from tests.workflows.runs import CONFIG, nmt, write_corpus

# Several epochs, dropout, subword sampling, accumulation, schedules of learning rate and feed, and an epoch that ends
# inside an update.
SCHEDULE = "{kind: linear, warmup: 3, end: 0.0, updates: 24}"
SETTINGS = [
    f"training.feed={{kind: scheduled_sampling, guess: sample, schedule: {SCHEDULE}}}",
    "training.stopping.updates=30", "training.save_every=5", "training.validation.every=4", "training.accumulate=2",
    "training.validation.metric=bleu", "training.schedule={kind: plateau, warmup: 5, patience: 1, decay: 0.7}",
    "data.subwords.sampling=0.2", "data.subwords.kind=unigram", "data.subwords.size=36",
]  # fmt: skip


def train(*settings: str) -> list[str | Path]:
    arguments: list[str | Path] = ["train", "config.yaml", "--precision", "float32"]
    for setting in (*SETTINGS, *settings):
        arguments += ["--set", setting]
    return arguments


def begin(folder: Path, *settings: str) -> subprocess.Popen[bytes]:
    root = Path(__file__).parents[2]
    return subprocess.Popen(
        [sys.executable, "-m", "nmt", *map(str, train(*settings))],
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
    """30 updates in one go."""
    folder = tmp_path_factory.mktemp("whole")
    write_corpus(folder)
    (folder / "config.yaml").write_text(CONFIG)
    done = nmt(*train(), folder=folder)
    assert done.returncode == 0, done.stderr.decode()
    return folder


def same_bits(one: Path, other: Path) -> None:
    for name in ("model.safetensors", "training.safetensors"):
        left, right = (read_tensors(folder / "run" / "latest" / name) for folder in (one, other))
        assert left.keys() == right.keys()
        for key in left:
            assert left[key].numpy().tobytes() == right[key].numpy().tobytes(), key

    assert standing(one) == standing(other)
    assert measurements(one) == measurements(other)
    assert (one / "run" / "best").readlink() == (other / "run" / "best").readlink()


def standing(folder: Path) -> dict[str, Any]:
    """All that a checkpoint tells of the place and the validations, but for the time that it took."""
    state = json.loads((folder / "run" / "latest" / "state.json").read_text())
    del state["position"]["seconds"], state["data"]
    assert state["standing"]["plateaus"] > 0  # else the test shows nothing of them
    return dict(state)


def measurements(folder: Path) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in (folder / "run" / "metrics.jsonl").read_text().splitlines()]
    return [
        {key: value for key, value in line.items() if key not in ("tokens_per_second", "peak_memory")} for line in lines
    ]


def test_killed_and_resumed_training_is_bit_identical(whole: Path, tmp_path: Path) -> None:
    write_corpus(tmp_path)
    (tmp_path / "config.yaml").write_text(CONFIG)
    process = begin(tmp_path)
    wait_for(tmp_path / "run" / "checkpoints" / "step-00000015", process)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not (tmp_path / "run" / "checkpoints" / "step-00000030").exists(), "it was killed too late to show anything"
    last = [line for line in measurements(tmp_path) if line["kind"] == "train"][-1]
    assert 0.0 < last["gold_probability"] < 1.0
    done = nmt(*train(), folder=tmp_path)
    assert done.returncode == 0, done.stderr.decode()
    assert "going on from update" in done.stderr.decode()
    same_bits(whole, tmp_path)


def test_killed_between_the_last_checkpoint_and_its_link(whole: Path, tmp_path: Path) -> None:
    folder = tmp_path / "killed"
    shutil.copytree(whole, folder, symlinks=True)
    run = folder / "run"
    before, *_, newest = checkpoint_paths(run)
    set_link(run, "latest", before)
    done = nmt(*train(), folder=folder)
    assert done.returncode == 0, done.stderr.decode()
    assert b"nothing to do" in done.stderr
    assert (run / "latest").resolve() == newest.resolve()
    same_bits(whole, folder)


def test_interrupted_training_saves_and_goes_on_bit_identically(whole: Path, tmp_path: Path) -> None:
    write_corpus(tmp_path)
    (tmp_path / "config.yaml").write_text(CONFIG)
    for number, code, lines in ((signal.SIGINT, 130, 5), (signal.SIGTERM, 143, 20)):
        process = begin(tmp_path, "training.save_every=1000")
        wait_for(tmp_path / "run" / "metrics.jsonl", process)
        deadline = time.monotonic() + 60
        while (tmp_path / "run" / "metrics.jsonl").read_text().count("\n") < lines:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        process.send_signal(number)
        _, stderr = process.communicate(timeout=60)
        assert process.returncode == code, stderr.decode()
        assert b"Traceback" not in stderr
        assert b"saved, the same command goes on from there" in stderr
        assert (tmp_path / "run" / "latest").exists()
    assert nmt(*train(), folder=tmp_path).returncode == 0
    same_bits(whole, tmp_path)


@pytest.mark.slow
def test_killed_and_resumed_in_the_middle_of_a_feeds_schedule(tmp_path: Path) -> None:
    feed = "unit: sentence, schedule: {kind: inverse_sigmoid, warmup: 3, k: 6}"
    settings = (f"training.feed={{kind: scheduled_sampling, {feed}}}", "training.stopping.updates=24")
    in_one_go, in_two = tmp_path / "in_one_go", tmp_path / "in_two"
    for folder in (in_one_go, in_two):
        folder.mkdir()
        write_corpus(folder)
        (folder / "config.yaml").write_text(CONFIG)
    whole = nmt(*train(*settings), folder=in_one_go)
    assert whole.returncode == 0, whole.stderr.decode()
    process = begin(in_two, *settings)
    wait_for(in_two / "run" / "checkpoints" / "step-00000010", process)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not (in_two / "run" / "checkpoints" / "step-00000024").exists(), "it was killed too late to show anything"
    last = [line for line in measurements(in_two) if line["kind"] == "train"][-1]
    assert 0.0 < last["gold_probability"] < 1.0
    done = nmt(*train(*settings), folder=in_two)
    assert done.returncode == 0, done.stderr.decode()
    assert "going on from update" in done.stderr.decode()
    same_bits(in_one_go, in_two)


def test_a_run_goes_on_with_its_own_feed_only(whole: Path) -> None:
    kind = nmt(*train("training.feed=free_running"), folder=whole)
    assert kind.returncode == 2
    assert b"was made by a configuration with other training.feed.kind; go on with its own" in kind.stderr
    assert kind.stderr.count(b"\n") == 1


def test_two_trainings_do_not_share_a_run(tmp_path: Path) -> None:
    write_corpus(tmp_path)
    (tmp_path / "config.yaml").write_text(CONFIG)
    process = begin(tmp_path, "training.stopping.updates=100000", "training.schedule=constant")
    try:
        wait_for(tmp_path / "run" / "metrics.jsonl", process)
        done = nmt(*train(), folder=tmp_path)
        assert done.returncode == 2
        assert f"error: run: process {process.pid} on {socket.gethostname()} is training in it".encode() in done.stderr
        assert done.stderr.count(b"\n") == 1
    finally:
        process.kill()
        process.wait()

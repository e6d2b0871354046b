"""Training that is killed at any moment loses what came after its last checkpoint, and nothing else."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.workflows.runs import assert_same_bits, measured, nmt, place

ROOT = Path(__file__).parents[2]

# Several epochs, dropout, subword sampling, accumulation, schedules of learning rate and feed, and an epoch that ends
# inside an update.
FEED = "{kind: scheduled_sampling, guess: sample, schedule: {kind: linear, warmup: 3, end: 0.0, updates: 30}}"
SETTINGS = (
    f"training.feed={FEED}", "training.accumulate=2", "training.save_every=4", "training.validation.every=6",
    "training.keep=2", "training.average=2", "training.ema=0.9",
    "training.schedule={kind: plateau, warmup: 4, patience: 1, decay: 0.7}",
    "data.subwords.sampling=0.2", "data.subwords.kind=unigram", "data.subwords.size=36",
    "training.validation.bleu=false",
)  # fmt: skip


def command(updates: int) -> list[str]:
    settings = [part for each in (*SETTINGS, f"training.stopping.updates={updates}") for part in ("--set", each)]
    return ["train", "config.yaml", "--precision", "float32", *settings]


def kill(folder: Path, moments: list[int | float], seed: int, updates: int) -> list[dict[str, Any]]:
    """Trains in a folder until the end, killed at these moments; what was told of each that was not too late."""
    arguments = [str(folder), json.dumps(moments), str(seed), *command(updates)]
    done = subprocess.run(
        [sys.executable, "-m", "tests.workflows.killing", *arguments],
        cwd=ROOT, capture_output=True, check=False, env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr.decode()
    *told, last = map(json.loads, done.stdout.splitlines())
    assert last == {"code": 0}, done.stderr.decode()
    for each in told:
        code, text = each["translate"]
        is_refused = code == 2 and re.search("no checkpoint yet|neither a run directory|no such run directory", text)
        assert text.count("\n") == 1, each
        assert code == 0 or is_refused, each
        assert code == 0 or not each["going_on"], f"what was there is lost: {each}"
    return told


def same_run(one: Path, other: Path) -> None:
    """Two folders hold runs of the same bits, links, measurements and files."""
    run, whole = one / "run", other / "run"
    for link in ("best", "latest", "averaged"):
        assert (run / link).readlink() == (whole / link).readlink()
    assert_same_bits(run / "latest", whole / "latest")
    assert_same_bits(run / "averaged", whole / "averaged", "model.safetensors")
    assert measured(run) == measured(whole)
    assert contents(run) == contents(whole)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """24 updates that nothing has disturbed."""
    folder = place(tmp_path_factory.mktemp("killed") / "whole")
    done = nmt(*command(24), folder=folder)
    assert done.returncode == 0, done.stderr.decode()
    assert all(0.0 < line["gold_probability"] < 1.0 for line in measured(folder / "run", "train")[4:])
    return folder


def test_killed_again_and_again_it_ends_in_the_same_bits(whole: Path, tmp_path: Path) -> None:
    killed = place(tmp_path / "killed")
    told = kill(killed, [30, 150, 25, 20, 0.1, 15, 25], seed=194, updates=24)
    assert len(told) >= 5, "the training had ended before"
    assert any(each["going_on"] for each in told), "it was never taken up"
    same_run(killed, whole)


@pytest.mark.slow
def test_killed_at_40_random_moments_it_ends_in_the_same_bits(tmp_path: Path) -> None:
    undisturbed, killed = place(tmp_path / "undisturbed"), place(tmp_path / "killed")
    assert nmt(*command(240), folder=undisturbed).returncode == 0
    draw = random.Random(1)
    moments = [draw.uniform(0.1, 0.8) if number % 4 == 3 else draw.randint(0, 60) for number in range(40)]
    told = kill(killed, moments, seed=1, updates=240)
    assert len(told) == len(moments), "the training had ended before"
    assert any(each["going_on"] for each in told), "it was never taken up"
    same_run(killed, undisturbed)


@pytest.mark.slow
@pytest.mark.parametrize("share", range(4))
def test_killed_before_each_of_its_steps_it_ends_in_the_same_bits(share: int, whole: Path, tmp_path: Path) -> None:
    count = 0
    while True:
        killed = place(tmp_path / f"before-{4 * count + share}")
        told = kill(killed, [4 * count + share], seed=count, updates=24)
        same_run(killed, whole)
        if not told:
            break
        shutil.rmtree(killed)
        count += 1
    assert count > 60, "a training takes more steps than this"


def contents(run: Path) -> list[str]:
    """All files of a run: nothing is left lying about."""
    return sorted(str(path.relative_to(run)) for path in run.rglob("*") if "prepared" not in path.name)

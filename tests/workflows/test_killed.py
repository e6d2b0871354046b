"""Training that is killed at any moment loses what came after its last checkpoint, and nothing else."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from nmt.training.checkpoint import read_tensors
from tests.workflows.runs import CONFIG, nmt, write_corpus

ROOT = Path(__file__).parents[2]

SETTINGS = (
    "training.save_every=4", "training.validation.every=6", "training.keep=2",
    "training.average=2", "training.ema=0.9", "training.schedule={kind: plateau, warmup: 4, patience: 1, decay: 0.7}",
    "data.subwords.sampling=0.2", "data.subwords.kind=unigram", "data.subwords.size=36",
    "training.validation.bleu=false",
)  # fmt: skip


def command(updates: int) -> list[str]:
    settings = [part for each in (*SETTINGS, f"training.stopping.updates={updates}") for part in ("--set", each)]
    return ["train", "config.yaml", "--precision", "float32", *settings]


def prepare(folder: Path) -> Path:
    folder.mkdir()
    write_corpus(folder)
    (folder / "config.yaml").write_text(CONFIG)
    return folder


def kill(folder: Path, kills: int, seed: int, updates: int) -> list[dict[str, Any]]:
    """Trains in a folder until the end, through so many kills; what was told of each."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.workflows.killing", str(folder), str(kills), str(seed), *command(updates)],
        cwd=ROOT, capture_output=True, check=False, env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr.decode()
    *told, last = map(json.loads, done.stdout.splitlines())
    assert last == {"code": 0}, done.stderr.decode()
    assert len(told) == kills, "the training had ended before"
    return told


@pytest.mark.parametrize(
    ("kills", "updates", "seed"),
    [pytest.param(6, 24, 194, id="6"), pytest.param(40, 72, 1, id="40", marks=pytest.mark.slow)],
)
def test_killed_at_any_moment_it_ends_in_the_same_bits(kills: int, updates: int, seed: int, tmp_path: Path) -> None:
    undisturbed, killed = prepare(tmp_path / "undisturbed"), prepare(tmp_path / "killed")
    done = nmt(*command(updates), folder=undisturbed)
    assert done.returncode == 0, done.stderr.decode()
    told = kill(killed, kills, seed, updates)
    for each in told:
        code, text = each["translate"]
        assert (code == 0 and text.count("\n") == 1) or (
            code == 2
            and text.count("\n") == 1
            and ("no checkpoint yet" in text or "no run directory" in text or "no such run directory" in text)
        ), each
        assert code == 0 or not each["going_on"], f"what was there is lost: {each}"
    assert any(each["going_on"] for each in told), "it was never taken up"
    run, whole = killed / "run", undisturbed / "run"
    for name in ("latest/model.safetensors", "latest/training.safetensors", "averaged/model.safetensors"):
        left, right = read_tensors(run / name), read_tensors(whole / name)
        assert left.keys() == right.keys()
        assert [key for key in left if left[key].numpy().tobytes() != right[key].numpy().tobytes()] == []
    for link in ("best", "latest", "averaged"):
        assert (run / link).readlink() == (whole / link).readlink()
    assert measured(run) == measured(whole)
    assert contents(run) == contents(whole)


def measured(run: Path) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return [{name: value for name, value in line.items() if name not in CLOCK} for line in lines]


CLOCK = ("tokens_per_second", "peak_memory")


def contents(run: Path) -> list[str]:
    """All files of a run: nothing is left lying about."""
    return sorted(str(path.relative_to(run)) for path in run.rglob("*") if "prepared" not in path.name)

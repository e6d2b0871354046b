"""The peak of memory that training takes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from nmt.experiment import load
from nmt.training import meter
from nmt.workflows.train import train
from tests.workflows.runs import CONFIG, write_corpus


def test_the_peak_is_what_was_held_since_the_last_reading() -> None:
    cpu = torch.device("cpu")
    meter.reset_peak(cpu)
    before = meter.peak(cpu)
    block = torch.ones(60 << 20)  # 240 MiB
    del block
    after = meter.peak(cpu)
    assert 0.2 < after - before < 0.3
    meter.reset_peak(cpu)
    if meter.peak(cpu) >= after:
        pytest.skip("this system cannot start its count of memory anew")
    assert meter.peak(cpu) < after - 0.1


def test_metrics_have_the_peak_and_recompute_changes_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same weights to the bit; and a run may be taken up with the other value."""
    monkeypatch.chdir(tmp_path)
    write_corpus(tmp_path)
    (tmp_path / "config.yaml").write_text(CONFIG, encoding="utf-8")
    weights = []
    for name, each in (("plain", (False, False)), ("mixed", (True, False))):
        for updates, recompute in zip((2, 4), each, strict=True):
            settings = [f"run={name}", f"training.recompute={recompute}", f"training.stopping.updates={updates}"]
            train(load(tmp_path / "config.yaml", settings), device="cpu", precision="float32")
        weights.append((tmp_path / name / "latest" / "model.safetensors").read_bytes())
    assert weights[0] == weights[1]
    lines = [json.loads(line) for line in (tmp_path / "mixed" / "metrics.jsonl").read_text().splitlines()]
    peaks = [line["peak_memory"] for line in lines if line["kind"] == "train"]
    assert len(peaks) == 4
    assert all(0.05 < each < 16.0 for each in peaks)

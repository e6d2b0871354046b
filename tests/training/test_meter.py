"""The peak of memory that training takes."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from nmt.experiment import load
from nmt.training import meter, metrics
from nmt.workflows.train import train
from tests.workflows.runs import assert_same_bits


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


def test_metrics_have_the_peak_and_recompute_changes_nothing_else(here: Path) -> None:
    """The same weights to the bit; and a run may be taken up with the other value."""
    for name, each in (("plain", (False, False)), ("mixed", (True, False))):
        for updates, recompute in zip((2, 4), each, strict=True):
            settings = [f"run={name}", f"training.recompute={recompute}", f"training.stopping.updates={updates}"]
            train(load(Path("config.yaml"), settings), device="cpu", precision="float32")
    assert_same_bits(here / "plain" / "latest", here / "mixed" / "latest")
    peaks = [line["peak_memory"] for line in metrics.read(Path("mixed")) if line["kind"] == "train"]
    assert len(peaks) == 4
    assert all(0.05 < each < 16.0 for each in peaks)

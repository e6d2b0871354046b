"""Measurements that are read again, by nmt and by TensorBoard."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nmt.training.metrics import MetricsWriter, read


def test_metrics_of_updates_that_will_be_made_again_are_dropped(tmp_path: Path) -> None:
    with MetricsWriter(tmp_path, after=0, tensorboard=False) as metrics:
        for update in (1, 2, 3):
            metrics.write("train", update, {"loss": 1.0 / update})
    with (tmp_path / "metrics.jsonl").open("a") as file:
        file.write('{"kind": "train", "upd')  # killed while writing
    with MetricsWriter(tmp_path, after=2, tensorboard=False) as metrics:
        metrics.write("train", 3, {"loss": 9.0})
    assert [(line["update"], line["loss"]) for line in read(tmp_path)] == [(1, 1.0), (2, 0.5), (3, 9.0)]
    assert all(json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines())


def scalars(run: Path) -> dict[str, list[tuple[int, float]]]:
    """Update and value of each measurement, by name, as TensorBoard's own reader has them."""
    from tensorboard.backend.event_processing import event_accumulator as accumulator

    events = accumulator.EventAccumulator(str(run / "tensorboard")).Reload()
    return {tag: [(each.step, each.value) for each in events.Scalars(tag)] for tag in events.Tags()["scalars"]}


def test_events_hold_the_measurements_but_those_of_updates_that_will_be_made_again(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    with MetricsWriter(tmp_path, after=0, tensorboard=True) as metrics:
        for update in (1, 2, 3):
            metrics.write("train", update, {"loss": float(update)})
        metrics.write("valid", 1, {"bleu": 12.5})
    held = {"train/loss": [(1, 1.0), (2, 2.0), (3, 3.0)], "valid/bleu": [(1, 12.5)]}
    assert scalars(tmp_path) == held
    with MetricsWriter(tmp_path, after=1, tensorboard=True) as metrics:
        metrics.write("train", 2, {"loss": 7.0})
    assert scalars(tmp_path) == held | {"train/loss": [(1, 1.0), (2, 7.0)]}

"""Learning-rate schedules at hand-computed points."""

from __future__ import annotations

import math

import pytest

from nmt.training.schedule import Constant, CosineDecay, InverseSqrt, Linear, Plateau, Schedule


@pytest.mark.parametrize(
    ("schedule", "update", "expected"),
    [
        (Constant(), 1, 1.0),
        (Constant(warmup=10), 5, 0.5),
        (Constant(warmup=10), 11, 1.0),
        (InverseSqrt(warmup=100), 50, 0.5),
        (InverseSqrt(warmup=100), 100, 1.0),
        (InverseSqrt(warmup=100), 400, 0.5),
        (CosineDecay(warmup=100), 100, 1.0),
        (CosineDecay(warmup=100), 600, 0.5),
        (CosineDecay(warmup=100, final=0.2), 1100, 0.2),
        (CosineDecay(warmup=100), 350, 0.5 * (1 + math.cos(math.pi / 4))),
        (Linear(warmup=10), 1100, 0.0),
        (Linear(warmup=10, hold=0.5), 550, 1.0),
        (Linear(warmup=10, hold=0.5, final=0.02), 825, 0.51),
        (Linear(warmup=700, hold=0.5), 900, 0.5),
        (Plateau(decay=0.5), 7, 0.25),
    ],
)
def test_factor(schedule: Schedule, update: int, expected: float) -> None:
    assert schedule.factor(update, last=1100, plateaus=2) == pytest.approx(expected)

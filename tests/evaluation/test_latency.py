"""Average lagging against plain loops."""

from __future__ import annotations

import random

import pytest

from nmt.evaluation.latency import average_lagging


def plain_lagging(g: list[int], x: int) -> float:
    """Equations 8 and 9 of the paper."""
    tau = 1
    while tau < len(g) and g[tau - 1] != x:
        tau += 1
    r = len(g) / x
    return sum(g[t - 1] - (t - 1) / r for t in range(1, tau + 1)) / tau


def test_average_lagging_is_that_of_the_paper() -> None:
    draw = random.Random(2)
    for _ in range(200):
        x, y = draw.randint(1, 12), draw.randint(1, 12)
        g = sorted(draw.randint(1, x) for _ in range(y))
        assert average_lagging(g, x) == pytest.approx(plain_lagging(g, x))
    for length in range(1, 9):
        for k in range(1, 12):
            g = [min(k + t, length) for t in range(length)]
            assert average_lagging(g, length) == pytest.approx(min(k, length))
    # corrected for a translation 1.5 times as long as its source
    assert average_lagging([1, 2, 3, 4, 4, 4], 4) == pytest.approx((1 + 4 / 3 + 5 / 3 + 2) / 4)

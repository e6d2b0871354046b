"""Choice of the heads to align by."""

from __future__ import annotations

from math import log

import numpy as np
import pytest

from nmt.alignment.choice import candidates, uncertainty


@pytest.mark.parametrize(
    ("names", "patterns"),
    [
        ("head1", "*"),
        ("head1 head2", "* head1 head2"),
        ("layer1.head1 layer2.head1", "* layer1.* layer2.*"),
        ("layer1.head1 layer1.head2", "* layer1.head1 layer1.head2"),
        ("layer1.a layer1.b layer2.a", "* layer1.* layer2.* layer1.a layer1.b"),
    ],
)
def test_candidates_are_all_heads_each_layer_and_each_head_once(names: str, patterns: str) -> None:
    assert candidates(names.split()) == patterns.split()


def test_uncertainty_against_loops() -> None:
    weights_TS = np.random.default_rng(3).dirichlet(np.ones(5), size=4)
    wanted = 0.0
    for row in weights_TS[:-1]:  # the last is the end of the sentence
        for weight in row[:-1]:
            spread = weight + row[-1] / 4
            wanted -= spread * log(spread) / log(4)
    value, count = uncertainty(weights_TS)
    assert value == pytest.approx(wanted)
    assert count == 3


def test_uncertainty_at_its_ends() -> None:
    sure = np.eye(4)[[0, 2, 1, 3]]
    assert uncertainty(sure) == (pytest.approx(0.0, abs=1e-9), 3)
    nothing = np.full((4, 4), 0.25)
    assert uncertainty(nothing)[0] == pytest.approx(3.0)
    at_the_end = np.zeros((4, 4))
    at_the_end[:, -1] = 1
    assert uncertainty(at_the_end)[0] == pytest.approx(3.0)
    assert uncertainty(np.ones((5, 2)) / 2) == (0.0, 0)

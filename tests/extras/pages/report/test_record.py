"""Entropy and coverage of attention against plain loops."""

from __future__ import annotations

import math

import numpy as np
import pytest

from nmt.extras.pages.report.record import looks


def test_entropy_and_coverage_are_those_of_plain_loops() -> None:
    draw = np.random.default_rng(3)
    matrices = []
    for shape in ((4, 6), (1, 2), (7, 3), (2, 9)):
        weights_TS = draw.random(shape) * (draw.random(shape) > 0.4)
        weights_TS[:, 0] += 0.01
        matrices.append(weights_TS / weights_TS.sum(axis=1, keepdims=True))
    entropies = [-sum(w * math.log(w, 2) for w in row if w > 0) for matrix in matrices for row in matrix.tolist()]
    # the last column is end-of-sentence
    coverages = [sum(column) for matrix in matrices for column in list(zip(*matrix.tolist(), strict=True))[:-1]]
    found = looks(matrices)
    assert found.entropies.tolist() == pytest.approx(entropies)
    assert found.coverages.tolist() == pytest.approx(coverages)
    assert found.entropy == pytest.approx(sum(entropies) / 14)
    assert found.left_out == sum(each < 0.2 for each in coverages) / 16
    assert found.repeated == sum(each > 2 for each in coverages) / 16
    assert 0 < found.left_out < 1


def test_the_ends_of_the_scale() -> None:
    sharp = looks([[[0, 1, 0], [1, 0, 0]]])
    assert (sharp.entropy, sharp.left_out, sharp.repeated) == (0, 0, 0)
    assert looks([np.full((3, 8), 1 / 8)]).entropy == pytest.approx(3)
    assert looks([]).entropy == 0

"""Minimum Bayes risk: the matrices against sacreBLEU, pair by pair, and the choice against a loop."""

from __future__ import annotations

import random

import numpy as np
import pytest
from sacrebleu.metrics.chrf import CHRF

from nmt.evaluation.consensus import chrf_matrix, consensus

WORDS = ["the", "a", "dog,", "cat", "cat", "sleeps", "runs", "Häuser", "don't", "1,000", "x", "«ja»", "…", "Ελλάδα"]


def texts(count: int, seed: int) -> list[str]:
    drawn = random.Random(seed)
    return [" ".join(drawn.choices(WORDS, k=drawn.choice([0, 1, 2, 5, 9]))) for _ in range(count)]


def scored(lines: list[str]) -> list[list[float]]:
    """Scores of each line (rows) with each line as its reference (columns)."""
    return [[CHRF().sentence_score(one, [other]).score / 100 for other in lines] for one in lines]


@pytest.mark.parametrize("seed", range(5))
def test_likeness_is_sacrebleus(seed: int) -> None:
    lines = [*texts(12, seed), "", "a", "…"]
    np.testing.assert_allclose(chrf_matrix(lines), scored(lines), atol=1e-9)


def test_the_choice_is_the_best_on_average() -> None:
    for seed in range(20):
        lines = texts(8, seed) + texts(3, seed)
        means = [sum(row) / len(lines) for row in scored(lines)]
        found = consensus(lines)
        assert len(found) == len(set(lines))
        for place, value in found:
            assert value == pytest.approx(means[place], abs=1e-9)
            assert lines.index(lines[place]) == place
        assert found[0][1] == pytest.approx(max(means), abs=1e-9)
        assert [value for _, value in found] == sorted((value for _, value in found), reverse=True)

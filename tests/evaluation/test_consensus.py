"""Minimum Bayes risk: the matrices against sacreBLEU, pair by pair, and the choice against a loop."""

from __future__ import annotations

import random

import numpy as np
import pytest
from sacrebleu.metrics.base import Metric
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from nmt.evaluation.consensus import bleu_matrix, chrf_matrix, consensus

WORDS = ["the", "a", "dog,", "cat", "cat", "sleeps", "runs", "Häuser", "don't", "1,000", "x", "«ja»", "…", "Ελλάδα"]


def texts(count: int, seed: int) -> list[str]:
    drawn = random.Random(seed)
    return [" ".join(drawn.choices(WORDS, k=drawn.choice([0, 1, 2, 5, 9]))) for _ in range(count)]


def scored(metric: Metric, lines: list[str]) -> list[list[float]]:
    """Scores of each line (rows) with each line as its reference (columns)."""
    return [[min(metric.sentence_score(one, [other]).score / 100, 1.0) for other in lines] for one in lines]


@pytest.mark.parametrize("seed", range(5))
def test_likeness_is_sacrebleus(seed: int) -> None:
    lines = [*texts(12, seed), "", "a", "…"]
    for metric, matrix_CC in ((CHRF(), chrf_matrix(lines)), (BLEU(effective_order=True), bleu_matrix(lines))):
        np.testing.assert_allclose(matrix_CC, scored(metric, lines), atol=1e-9)


@pytest.mark.parametrize("utility", ["chrf", "bleu"])
def test_the_choice_is_the_best_on_average(utility: str) -> None:
    for seed in range(20):
        lines = texts(8, seed) + texts(3, seed)
        metric = CHRF() if utility == "chrf" else BLEU(effective_order=True)
        means = [sum(row) / len(lines) for row in scored(metric, lines)]
        found = consensus(lines, utility)  # type: ignore[arg-type]
        assert len(found) == len(set(lines))
        for place, value in found:
            assert value == pytest.approx(means[place], abs=1e-9)
            assert lines.index(lines[place]) == place
        assert found[0][1] == pytest.approx(max(means), abs=1e-9)
        assert [value for _, value in found] == sorted((value for _, value in found), reverse=True)


@pytest.mark.parametrize(
    ("tokenize", "lines"),
    [("zh", ["我有一条狗。", "我有一只狗。", "他没有猫。"]), ("char", ["ฉันมีสุนัข", "ฉันมีสุนัขสองตัว", "เขามีแมว"])],
)
def test_words_are_those_of_the_script(tokenize: str, lines: list[str]) -> None:
    bleu = BLEU(effective_order=True, tokenize=tokenize)
    np.testing.assert_allclose(bleu_matrix(lines), scored(bleu, lines), atol=1e-9)
    assert consensus([*lines[:1], *lines], "bleu")[0][0] == 0

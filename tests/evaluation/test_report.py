from __future__ import annotations

import math
from types import SimpleNamespace

import pytest

from nmt.evaluation.report import Evaluation
from nmt.evaluation.translation import MetricScore

SCORES = (MetricScore("BLEU", 12.34, "nrefs:1"),)


def prediction(loss: float) -> SimpleNamespace:
    return SimpleNamespace(perplexity=math.exp(loss), accuracy=25.0, tokens=1234)


def test_exposure_bias_is_how_many_times_worse_the_model_reads_itself() -> None:
    found = Evaluation(SCORES, {"teacher_forcing": prediction(1.0), "free_running": prediction(3.0)})
    assert found.exposure_bias == pytest.approx(math.exp(2.0))
    assert found.tree()["exposure_bias"] == found.exposure_bias
    assert found.lines() == [
        "BLEU|nrefs:1 = 12.3",
        "teacher forcing: perplexity 2.718, token accuracy 25.0% of 1,234 tokens",
        "free running: perplexity 20.086, token accuracy 25.0% of 1,234 tokens",
        "exposure bias: 7.39 (free-running over teacher-forced perplexity)",
    ]


def test_without_a_model_and_lengths_there_are_scores_alone() -> None:
    assert Evaluation(SCORES).exposure_bias is None
    assert list(Evaluation(SCORES).tree()) == ["BLEU"]
    assert Evaluation(SCORES, lengths=()).tree()["by_length"] == []

"""Probabilities of references against teacher forcing of one pair at a time."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from nmt.core.device import Compute
from nmt.evaluation.perplexity import Prediction, predict, token_log_probs
from nmt.models.feed import TeacherForcing
from nmt.models.scheduled_sampling import ScheduledSampling
from tests.models.variants import make
from tests.search.plain_search import EOS, MODELS, each_model, forced

COMPUTE = Compute(torch.device("cpu"), "float32")
SOURCES, TARGETS = [[4, 5, 1, 4], [5], [5, 5, 4], []], [[4, 1], [5, 4, 4, 5, 1], [], [1, 1]]


@each_model
@pytest.mark.parametrize("batch_tokens", [1, 12, 100])
def test_each_token_has_its_probability_in_the_order_of_the_pairs(name: str, batch_tokens: int) -> None:
    model = make(MODELS[name])
    log_p: list[list[float]] = []
    right = []
    for source, target in zip(SOURCES, TARGETS, strict=True):
        steps = [(forced(model, [*source, EOS], (*target[:t],)), token) for t, token in enumerate([*target, EOS])]
        log_p.append([step.log_prob_V[token] for step, token in steps])
        right += [max(step.log_prob_V) == step.log_prob_V[token] for step, token in steps]
    found = token_log_probs(model, SOURCES, TARGETS, COMPUTE, batch_tokens=batch_tokens)
    assert [each.tolist() for each in found] == [pytest.approx(each, abs=1e-5) for each in log_p]
    prediction = predict(model, SOURCES, TARGETS, TeacherForcing(), COMPUTE, batch_tokens=batch_tokens)
    assert prediction.tokens == len(right) == 13
    assert prediction.accuracy == pytest.approx(100 * sum(right) / 13)
    assert 0 < sum(right) < 13
    assert prediction.loss == pytest.approx(-np.mean([each for row in log_p for each in row]), abs=1e-5)
    assert prediction.perplexity == pytest.approx(math.exp(prediction.loss))


def test_random_feeds_draw_the_same_each_time_and_leave_the_generator_as_it_was() -> None:
    model = make(MODELS["rnn"])
    torch.manual_seed(3)
    state = torch.get_rng_state()
    feed = ScheduledSampling(0.5)
    first = predict(model, SOURCES, TARGETS, feed, COMPUTE, batch_tokens=12)
    assert torch.equal(torch.get_rng_state(), state)
    torch.rand(3)
    assert predict(model, SOURCES, TARGETS, feed, COMPUTE, batch_tokens=12) == first
    assert first.loss != predict(model, SOURCES, TARGETS, TeacherForcing(), COMPUTE, batch_tokens=12).loss


def test_no_pairs_and_a_loss_beyond_all_numbers_are_figures() -> None:
    model = make(MODELS["rnn"])
    assert predict(model, [], [], TeacherForcing(), COMPUTE, batch_tokens=9) == Prediction(0.0, 0.0, 0)
    assert math.isfinite(Prediction(1e6, 0.0, 1).perplexity)

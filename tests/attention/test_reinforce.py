"""Draws of source positions that learn by REINFORCE; their loss is in tests/models/test_position_losses.py."""

from __future__ import annotations

import math

import pytest
import torch

from nmt.attention.mechanism import AttentionContext
from nmt.attention.reinforce import HardAttention, ReinforceOptions, SampledPositions
from nmt.models.position_losses import reinforce_loss
from tests.attention.oracles import attention_config, softmax


def rule(text: str) -> HardAttention:
    made = attention_config(weights=text).weights
    assert isinstance(made, HardAttention)
    return made


@pytest.mark.parametrize("kind", ["hard", "glimpse"])
def test_the_entropy_bonus_pulls_towards_even_weights(kind: str) -> None:
    """Its gradient, rewards being all alike, against the derivative of the entropy by differences."""
    torch.manual_seed(0)
    weight = 0.25
    made_by = rule(f"{{kind: {kind}, entropy: {weight}}}")
    start = torch.tensor([[0.3, -1.0, 2.0, 0.1], [1.0, 1.5, -0.5, -math.inf]])
    scores_11TS = start[None, None].clone().requires_grad_()
    context = AttentionContext(torch.zeros(1, 2, 3), torch.zeros(1, 2), True, 0)
    _, choice = made_by.sample(
        scores_11TS, context, {"baseline_Q": torch.zeros(3), "baseline_offset_1": torch.zeros(1)}
    )
    assert choice is not None
    # rewards of 0 leave nothing for the draws
    loss = reinforce_loss([choice], torch.zeros(1, 2), torch.zeros(1, 2, dtype=torch.bool))
    (ours,) = torch.autograd.grad(loss, scores_11TS)

    def entropy(scores: list[float]) -> float:
        return -sum(p * math.log(p) for p in softmax(scores) if p > 0.0)

    step = 1e-5
    for t in range(2):
        scores = start[t].double().tolist()
        for s in range(4):
            up, down = ([x + sign * step if n == s else x for n, x in enumerate(scores)] for sign in (1, -1))
            expected = -weight * (entropy(up) - entropy(down)) / (2 * step)
            assert ours[0, 0, t, s].item() == pytest.approx(expected, abs=1e-5)


def test_a_baseline_is_affine_in_the_query_and_passes_no_gradient_to_it() -> None:
    query_1TQ = torch.tensor([[[1.0, 2.0, 3.0], [0.0, -1.0, 1.0]]], requires_grad=True)
    context = AttentionContext(query_1TQ, torch.zeros(1, 2), True, 0)
    parameters = {"baseline_Q": torch.tensor([1.0, 10.0, 100.0]), "baseline_offset_1": torch.tensor([0.5])}
    _, choice = rule("hard").sample(torch.zeros(1, 1, 2, 4, requires_grad=True), context, parameters)
    assert choice is not None
    assert choice.baseline_BT.tolist() == [[321.5, 90.5]]
    assert not choice.baseline_BT.requires_grad


def test_choices_of_steps_join_in_order() -> None:
    options, fields = ReinforceOptions(), [*torch.randn(3, 3, 5), torch.rand(3, 5) < 0.5]
    parts = [SampledPositions(options, *(field[:, steps] for field in fields)) for steps in (slice(2), slice(2, 5))]
    joined = SampledPositions.joined([None, *parts])
    assert joined is not None
    assert joined.rule is options
    for name, field in zip(("log_prob_BT", "entropy_BT", "baseline_BT", "is_drawn_BT"), fields, strict=True):
        assert torch.equal(getattr(joined, name), field)
    assert SampledPositions.joined([None, None]) is None

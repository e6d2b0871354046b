"""The loss of attention that learns from a reward: cross entropy as ever, and what REINFORCE adds to it."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import torch
from torch import Tensor

from nmt.models.feed import FreeRunning, TeacherForcing
from nmt.models.loss import CrossEntropy, token_loss
from nmt.models.position_losses import Reinforce
from nmt.models.seq2seq import Seq2Seq
from tests.attention.oracles import reinforce
from tests.models.plain_decoder import SOURCES, TARGETS, padded
from tests.models.variants import WIRINGS, make, tree

DISCOUNT, ENTROPY = 0.5, 0.2
KINDS = ("hard", "glimpse")


def model_of(
    kind: str,
    wiring: dict[str, Any],
    *,
    expected: float = 0.5,
    discount: float = DISCOUNT,
    entropy: float = ENTROPY,
    variance_normalization: bool = True,
) -> Seq2Seq[Any, Any]:
    weights = {"kind": kind, "discount": discount, "entropy": entropy, "expected": expected}
    weights["variance_normalization"] = variance_normalization
    config = tree(score="general", weights=weights, decoder=wiring)
    config["dropout"] = {"embedding": 0.0, "layers": 0.0}
    return make(config, scale=1.5).double().train()


@pytest.mark.parametrize("feed", [TeacherForcing(), FreeRunning()], ids=["teacher forcing", "free running"])
@pytest.mark.parametrize("wiring", WIRINGS.values(), ids=WIRINGS)
@pytest.mark.parametrize("kind", KINDS)
def test_the_objective_equals_plain_loops(kind: str, wiring: dict[str, Any], feed: Any) -> None:
    """Each token's log-probability is the reward of the draw at its own step; the same seed gives the same draws."""
    model = model_of(kind, wiring)
    source_BS, target_BT = padded(SOURCES), padded(TARGETS)
    torch.manual_seed(4)
    loss = token_loss(model, source_BS, target_BT, feed, Reinforce(CrossEntropy(0.1)))
    torch.manual_seed(4)
    decoded = model.decode(target_BT, model.encode(source_BS), feed)
    assert len(decoded.sampled) == 1
    log_p_BTV = model.output(decoded.readout_BTR).log_softmax(-1)

    cross_entropy = 0.0
    for b, target in enumerate(TARGETS):
        for t, gold in enumerate(target):
            cross_entropy -= 0.9 * log_p_BTV[b, t, gold].item() + 0.1 * log_p_BTV[b, t].mean().item()
    log_p_BT = log_p_BTV.gather(2, target_BT[:, :, None])[:, :, 0].masked_fill(target_BT == 0, 0.0)
    rewarded, advantages = reinforce(decoded.sampled, log_p_BT.tolist(), (target_BT == 0).tolist())
    assert 0 < len(advantages) < sum(map(len, TARGETS))
    assert loss.objective.item() == pytest.approx(cross_entropy + rewarded.item(), rel=1e-4)
    gold_log_p = [log_p_BTV[b, t, gold].item() for b, target in enumerate(TARGETS) for t, gold in enumerate(target)]
    assert loss.cross_entropy_N.tolist() == pytest.approx([-each for each in gold_log_p], rel=1e-4, abs=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_without_training_it_is_cross_entropy_alone(kind: str) -> None:
    model = model_of(kind, WIRINGS["feeding"]).eval()
    loss = token_loss(model, padded(SOURCES), padded(TARGETS), TeacherForcing(), CrossEntropy())
    assert loss.objective.item() == pytest.approx(loss.cross_entropy.item())
    assert model.teacher_forced(padded(TARGETS), model.encode(padded(SOURCES))).sampled == ()


@pytest.mark.parametrize("kind", KINDS)
def test_the_scores_learn_from_the_reward_alone_where_a_draw_has_no_derivative(kind: str) -> None:
    """Without input feeding and with the current query, cross entropy has no gradient for the score's weight."""
    model = model_of(kind, WIRINGS["parallel"], expected=0.0)
    source_BS, target_BT = padded(SOURCES), padded(TARGETS)
    weight = dict(model.named_parameters())["decoder.attention.key_weight_AK"]
    decoded = model.decode(target_BT, model.encode(source_BS), TeacherForcing())
    readout_NR = decoded.readout_BTR[target_BT != 0]
    cross_entropy = model.output.loss(readout_NR, target_BT[target_BT != 0]).objective
    assert (torch.autograd.grad(cross_entropy, weight)[0] == 0).all()
    objective = token_loss(model, source_BS, target_BT, TeacherForcing(), Reinforce(CrossEntropy())).objective
    assert torch.autograd.grad(objective, weight)[0].abs().max() > 1e-3


@pytest.mark.parametrize(
    ("wiring", "discount", "is_unbiased"),
    [(wiring, discount, wiring == "parallel" or discount == 1.0) for wiring in WIRINGS for discount in (0.0, 1.0)],
)
@pytest.mark.parametrize("sources", [[[5, 3]], [[5, 3], [4, 3]]], ids=["one sentence", "two"])
def test_over_all_draws_the_gradient_is_unbiased_where_the_reward_holds_all_that_a_draw_changes(
    sources: list[list[int]], wiring: str, discount: float, is_unbiased: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The objective's gradient, in expectation over every draw, is that of the expected log-likelihood for each
    parameter but the baseline's: with rewards of all words that follow, or where no draw reaches a later step."""
    model = model_of(
        "hard", WIRINGS[wiring], expected=0.0, discount=discount, entropy=0.0, variance_normalization=False
    )
    source_BS, target_BT = torch.tensor(sources), torch.tensor([[4, 3], [1, 3]])[: len(sources)]
    names, parameters = zip(
        *((name, each) for name, each in model.named_parameters() if "baseline" not in name), strict=True
    )
    drawn: list[Tensor] = []
    monkeypatch.setattr("nmt.attention.reinforce._draw", lambda p_BTS: drawn.pop(0).view(p_BTS.shape[:2]))
    found: list[Tensor | float] = [0.0] * len(parameters)
    expected = torch.zeros((), dtype=torch.float64)
    for flat in itertools.product(range(2), repeat=target_BT.numel()):
        draws_BT = torch.tensor(flat).view_as(target_BT)
        at_once = wiring == "parallel"
        drawn[:] = [draws_BT.flatten()] if at_once else [*draws_BT.T]
        decoded = model.decode(target_BT, model.encode(source_BS), TeacherForcing())
        log_p_BTV = model.output(decoded.readout_BTR).log_softmax(-1)
        p = decoded.sampled[0].log_prob_BT.sum().exp()
        expected = expected + p * log_p_BTV.gather(2, target_BT[:, :, None]).sum()
        drawn[:] = [draws_BT.flatten()] if at_once else [*draws_BT.T]
        objective = token_loss(model, source_BS, target_BT, TeacherForcing(), Reinforce(CrossEntropy())).objective
        gradients = torch.autograd.grad(objective, parameters, allow_unused=True)
        found = [sum_ + p.item() * (0.0 if each is None else each) for sum_, each in zip(found, gradients, strict=True)]
    exact = torch.autograd.grad(expected, parameters, allow_unused=True)
    assert exact[names.index("decoder.attention.key_weight_AK")].abs().max() > 1e-3
    pairs = [(ours, -theirs) for ours, theirs in zip(found, exact, strict=True) if theirs is not None]
    assert is_unbiased == all(torch.allclose(ours, theirs, atol=1e-6, rtol=1e-5) for ours, theirs in pairs)

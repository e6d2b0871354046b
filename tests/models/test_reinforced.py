"""The loss of attention that learns from a reward: cross entropy as ever, and what REINFORCE adds to it."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from nmt.models.feed import FreeRunning, TeacherForcing
from nmt.models.likelihood import token_loss
from nmt.models.seq2seq import Seq2Seq
from tests.models.plain_decoder import SOURCES, TARGETS, padded
from tests.models.variants import WIRINGS, make, tree

DISCOUNT, ENTROPY = 0.5, 0.2
KINDS = ("hard", "glimpse")


def model_of(kind: str, wiring: dict[str, Any], *, expected: float = 0.5) -> Seq2Seq[Any, Any]:
    weights = {"kind": kind, "discount": DISCOUNT, "entropy": ENTROPY, "expected": expected}
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
    loss = token_loss(model, source_BS, target_BT, feed, smoothing=0.1)
    torch.manual_seed(4)
    decoded = model.decode(target_BT, model.encode(source_BS), feed)
    (choice,) = decoded.choices
    log_p_BTV = model.output(decoded.readout_BTR).log_softmax(-1)

    cross_entropy, left, terms = 0.0, {}, 0.0
    for b, target in enumerate(TARGETS):
        for t, gold in enumerate(target):
            cross_entropy -= 0.9 * log_p_BTV[b, t, gold].item() + 0.1 * log_p_BTV[b, t].mean().item()
            terms -= ENTROPY * choice.entropy_BT[b, t].item()
            if not choice.is_drawn_BT[b, t]:
                continue
            later = [log_p_BTV[b, n, target[n]].item() * DISCOUNT ** (n - t) for n in range(t, len(target))]
            baseline = choice.baseline_BT[b, t].item()
            left[b, t] = sum(later) - baseline
            terms += 0.5 * (sum(later) - baseline) ** 2
    mean = sum(left.values()) / len(left)
    deviation = math.sqrt(sum((each - mean) ** 2 for each in left.values()) / len(left))
    for (b, t), each in left.items():
        terms -= choice.log_prob_BT[b, t].item() * (each - mean) / max(1.0, deviation)
    assert loss.objective.item() == pytest.approx(cross_entropy + terms, rel=1e-4)
    gold_log_p = [log_p_BTV[b, t, gold].item() for b, target in enumerate(TARGETS) for t, gold in enumerate(target)]
    assert loss.cross_entropy_N.tolist() == pytest.approx([-each for each in gold_log_p], rel=1e-4, abs=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_without_training_it_is_cross_entropy_alone(kind: str) -> None:
    model = model_of(kind, WIRINGS["feeding"]).eval()
    loss = token_loss(model, padded(SOURCES), padded(TARGETS), TeacherForcing())
    assert loss.objective.item() == pytest.approx(loss.cross_entropy.item())
    assert model.forced(padded(TARGETS), model.encode(padded(SOURCES))).choices == ()


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
    objective = token_loss(model, source_BS, target_BT, TeacherForcing()).objective
    assert torch.autograd.grad(objective, weight)[0].abs().max() > 1e-3

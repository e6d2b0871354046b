"""Glimpses against plain loops; draws of their places against an exact gradient."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import torch
from torch import Tensor

from nmt.models.feed import TeacherForcing
from nmt.models.position_losses import reinforce_loss
from nmt.models.seq2seq import Seq2Seq
from tests.models.plain_decoder import SOURCES, TARGETS, assert_decodes_as_plain_loop, padded
from tests.models.variants import make, tree


@pytest.mark.parametrize(
    "options",
    [{"cell": "lstm"}, {"cell": "elman", "layers": 2, "count": 3, "scales": 2, "input_feeding": True}],
    ids=str,
)
def test_decoding_equals_plain_loops(options: dict[str, Any]) -> None:
    assert_decodes_as_plain_loop(tree(score="none", decoder={"kind": "glimpses", **options}))


def glimpses(**options: Any) -> Seq2Seq[Any, Any]:
    config = tree(score="none", decoder={"kind": "glimpses", "cell": "gru", "expected": 0.0, **options})
    config["dropout"] = {"embedding": 0.0, "layers": 0.0}
    return make(config, scale=1.5).double()


@pytest.mark.parametrize(("offset", "word"), [(-60.0, 0), (60.0, 3)])
def test_a_place_outside_the_sentence_is_its_first_or_last_word(offset: float, word: int) -> None:
    model = glimpses(scales=1)
    model.decoder.attention.policy_offset_2.data.fill_(offset)  # type: ignore[union-attr]
    source_BS = padded([[4, 5, 1, 3], [4, 5, 1, 4, 5, 3]])
    weights_BHTS = model.teacher_forced(padded([[4, 3], [5, 3]]), model.encode(source_BS)).weights_BHTS
    assert (weights_BHTS[0, :, :, word] == 1.0).all()


@pytest.mark.parametrize(("count", "target"), [(2, [3]), (1, [4, 3])], ids=["two glimpses", "two steps"])
def test_over_all_places_the_gradient_is_unbiased(
    count: int, target: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The objective's gradient with rewards of all words that follow, integrated over two draws, is that of the
    expected log-likelihood for each parameter but the baseline's. A sum of a density over points not much further apart
    than its deviation is its integral to six digits."""
    model = glimpses(count=count, deviation=0.8, discount=1.0).train()
    source_BS, target_BT = torch.tensor([[5, 3]]), torch.tensor([target])
    names, parameters = zip(*model.named_parameters(), strict=True)
    spacing, drawn = 0.9, list[float]()
    monkeypatch.setattr(torch, "randn_like", lambda mean_BT: (drawn.pop(0) - mean_BT.detach()) / 0.8)
    found: list[Tensor | float] = [0.0] * len(parameters)
    expected, likelihoods = torch.zeros((), dtype=torch.float64), set[float]()
    for places in itertools.product([-4.0 + spacing * n for n in range(12)], repeat=2):
        drawn[:] = places
        decoded = model.decode(target_BT, model.encode(source_BS), TeacherForcing())
        log_p_BT = model.output(decoded.readout_BTR).log_softmax(-1).gather(2, target_BT[:, :, None])[:, :, 0]
        likelihoods.add(log_p_BT.sum().item())
        (sampled,) = decoded.sampled
        p = sampled.log_prob_BT.sum().double().exp() * spacing**2
        expected = expected + p * log_p_BT.sum()
        objective = reinforce_loss([sampled], log_p_BT, torch.zeros_like(target_BT, dtype=torch.bool)) - log_p_BT.sum()
        gradients = torch.autograd.grad(objective, parameters, retain_graph=True)
        found = [sum_ + p.item() * each for sum_, each in zip(found, gradients, strict=True)]
    assert len(likelihoods) > 3
    exact = torch.autograd.grad(expected, parameters)
    for name, ours, theirs in zip(names, found, exact, strict=True):
        if "policy" in name:  # the second row is the baseline's
            assert theirs[0].abs().max() > 1e-3
        ours, theirs = (ours[0], theirs[0]) if "policy" in name else (ours, theirs)  # type: ignore[index]
        torch.testing.assert_close(ours, -theirs, atol=2e-5, rtol=1e-3, msg=name)


def test_a_step_through_the_mean_is_differentiable_and_not_rewarded() -> None:
    model = glimpses(expected=0.9).train()
    torch.manual_seed(1)
    decoded = model.decode(padded(TARGETS), model.encode(padded(SOURCES)), TeacherForcing())
    (sampled,) = decoded.sampled
    assert sampled.is_drawn_BT.shape == (3, 4 * 2)
    assert 0.0 < sampled.is_drawn_BT.double().mean() < 0.4
    policy = model.decoder.attention.policy_2Q  # type: ignore[union-attr]
    (gradient,) = torch.autograd.grad(decoded.readout_BTR.sum(), policy)
    assert gradient[0].abs().max() > 1e-3
    assert (gradient[1] == 0).all()
    model = glimpses().train()
    readout_BTR = model.decode(padded(TARGETS), model.encode(padded(SOURCES)), TeacherForcing()).readout_BTR
    policy = model.decoder.attention.policy_2Q  # type: ignore[union-attr]
    # a draw has no derivative
    assert torch.autograd.grad(readout_BTR.sum(), policy, allow_unused=True, materialize_grads=True)[0].eq(0).all()

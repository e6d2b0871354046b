"""Guided attention against the formula in plain loops, over weights that the model gives in evaluation."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from nmt.models.feed import Feed, FreeRunning, TeacherForcing
from nmt.models.guidance import FLOOR, Guide, Guided
from nmt.models.loss import CrossEntropy, token_loss
from nmt.models.names import matching
from nmt.models.r_drop import RDrop
from nmt.models.scheduled_sampling import ScheduledSampling
from nmt.models.seq2seq import Seq2Seq
from nmt.nn.output import TokenLoss
from nmt.nn.recompute import recomputing
from tests.models.plain_decoder import SOURCES, TARGETS, padded
from tests.models.variants import TRANSFORMER, WIRINGS, make, tree

NO_DROPOUT = {"embedding": 0.0, "layers": 0.0}
MODELS = {
    **{f"rnn-{name}": tree(decoder=wiring) for name, wiring in WIRINGS.items()},
    "rnn-local_p": tree(weights="local_p"),
    "transformer": tree(score="scaled_dot", encoder=TRANSFORMER, decoder=TRANSFORMER),
    "transformer-additive": tree(score="additive", encoder=TRANSFORMER, decoder=TRANSFORMER),
    "rnn-transformer": tree(score="dot", decoder=TRANSFORMER),
}
LINKS = {(0, 0): [0, 1], (0, 2): [1], (1, 0): [1, 0], (2, 1): [0]}
"""Source tokens that are linked to each target token, by sentence and target token."""
PATTERNS = {"rnn": ["*"], "transformer": ["*", "layer2.head1", "layer1.*", "*.head2"]}
CASES = [(kind, heads) for kind in MODELS for heads in PATTERNS["rnn" if kind.split("-")[-1] in
         (*WIRINGS, "local_p") else "transformer"]]  # fmt: skip


def model_of(kind: str) -> Seq2Seq[Any, Any]:
    return make({**MODELS[kind], "dropout": NO_DROPOUT}).double()


def guide_of(model: Seq2Seq[Any, Any], pattern: str) -> Guide:
    """Creates the guide in the same way as training."""
    heads = model.decoder.return_weights_of(matching(model.decoder.head_names, pattern))
    links = [(b, t, s, 1 / len(sources)) for (b, t), sources in LINKS.items() for s in sources]
    sentences, targets, sources, shares = zip(*links, strict=True)
    return Guide(
        torch.tensor(heads),
        torch.tensor(sentences),
        torch.tensor(targets),
        torch.tensor(sources),
        torch.tensor(shares).double(),
    )


def by_loops(model: Seq2Seq[Any, Any], pattern: str) -> Tensor:
    """- sum over s of A_ts log a_ts, over the linked target tokens, from weights as alignment has them."""
    assert not model.training
    weights_BHTS = model.teacher_forced(padded(TARGETS), model.encode(padded(SOURCES))).weights_BHTS
    chosen = matching(model.decoder.head_names, pattern)
    total = torch.zeros((), dtype=torch.float64)
    for (b, t), sources in LINKS.items():
        for s in sources:
            mean = sum(weights_BHTS[b, head, t, s].double() for head in chosen) / len(chosen)
            total = total - (1 / len(sources)) * torch.as_tensor(mean).log()
    return total


def guided(model: Seq2Seq[Any, Any], guide: Guide, feed: Feed | None = None) -> tuple[TokenLoss, Tensor]:
    criterion = Guided(CrossEntropy(), guide, passes=1)
    loss = token_loss(model, padded(SOURCES), padded(TARGETS), feed or TeacherForcing(), criterion)
    assert loss.guidance is not None
    return loss, loss.guidance


@pytest.mark.parametrize(("kind", "pattern"), CASES)
def test_loss_and_gradient_equal_plain_loops(kind: str, pattern: str) -> None:
    model = model_of(kind)
    parameters = list(model.parameters())
    expected = by_loops(model.eval(), pattern)
    gradients = torch.autograd.grad(expected, parameters, allow_unused=True)
    assert sum(each.abs().sum().item() for each in gradients if each is not None) > 0.1  # or it shows nothing
    loss, found = guided(model.train(), guide_of(model, pattern))
    assert found.item() == pytest.approx(expected.item(), rel=1e-5)
    own = torch.autograd.grad(found, parameters, allow_unused=True, retain_graph=True)
    for parameter, *both in zip(parameters, own, gradients, strict=True):
        one, other = (torch.zeros_like(parameter) if each is None else each for each in both)
        torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-4, check_dtype=False)
    usual = token_loss(model_of(kind).train(), padded(SOURCES), padded(TARGETS), TeacherForcing(), CrossEntropy())
    assert loss.objective.item() == pytest.approx(usual.objective.item(), rel=1e-6)


@pytest.mark.parametrize("kind", ["rnn-feeding", "transformer"])
def test_the_gradient_is_that_of_finite_differences(kind: str) -> None:
    model = model_of(kind).train()
    guide = guide_of(model, "*.head1" if kind == "transformer" else "*")
    encoder, step = next(model.encoder.parameters()), 1e-3
    (gradient,) = torch.autograd.grad(guided(model, guide)[1], [encoder])
    place = int(gradient.abs().argmax())
    assert gradient.flatten()[place].abs() > 1e-3
    values = []
    with torch.no_grad():
        for sign in (1, -1):
            encoder.view(-1)[place] += sign * step
            values.append(guided(model, guide)[1].item())
            encoder.view(-1)[place] -= sign * step
    # attention's weights are formed in float32
    assert (values[0] - values[1]) / (2 * step) == pytest.approx(gradient.flatten()[place].item(), rel=1e-2)


def test_training_returns_the_weights_of_guided_heads_only() -> None:
    """Guidance changes no bit of the objective."""
    results = []
    for pattern in (None, "layer2.head2"):
        model = make({**MODELS["transformer"], "dropout": NO_DROPOUT}).train()
        if pattern is not None:
            guide_of(model, pattern)
        decoded = model.teacher_forced(padded(TARGETS), model.encode(padded(SOURCES)))
        assert decoded.weights_BHTS.shape[1] == (pattern is not None)
        loss = token_loss(model, padded(SOURCES), padded(TARGETS), TeacherForcing(), CrossEntropy())
        results.append((loss.objective, *torch.autograd.grad(loss.objective, list(model.parameters()))))
    assert all(torch.equal(one, other) for one, other in zip(*results, strict=True))


@pytest.mark.parametrize("kind", ["rnn-previous", "transformer", "transformer-additive"])
def test_r_drop_has_the_mean_of_both_passes(kind: str) -> None:
    model = make({**MODELS[kind], "dropout": {"embedding": 0.3, "layers": 0.3}}).train()
    guide = guide_of(model, "*")
    torch.manual_seed(3)
    criterion = Guided(RDrop(CrossEntropy(), 2.0), guide, passes=2)
    found = token_loss(model, padded(SOURCES * 2), padded(TARGETS * 2), TeacherForcing(), criterion).guidance
    assert found is not None
    torch.manual_seed(3)
    twice = model.decode(padded(TARGETS * 2), model.encode(padded(SOURCES * 2)), TeacherForcing())
    one, other = (guide.loss(each).item() for each in twice.weights_BHTS.chunk(2))
    assert one != other
    assert found.item() == pytest.approx((one + other) / 2, rel=1e-5)


@pytest.mark.parametrize("feed", [ScheduledSampling(0.999999), FreeRunning()], ids=["sampled", "free"])
@pytest.mark.parametrize("kind", ["rnn-feeding", "transformer", "transformer-additive"])
def test_other_feeds_are_guided_too(kind: str, feed: Feed) -> None:
    model = model_of(kind).train()
    guide = guide_of(model, "*")
    _, found = guided(model, guide, feed)
    gradients = torch.autograd.grad(found, list(model.encoder.parameters()), allow_unused=True)
    assert any(each is not None and each.abs().sum() > 0 for each in gradients)
    if isinstance(feed, ScheduledSampling):
        assert found.item() == pytest.approx(guided(model, guide)[1].item(), rel=1e-5)


@pytest.mark.parametrize("kind", ["rnn-feeding", "transformer"])
def test_recomputing_changes_no_gradient(kind: str) -> None:
    found = []
    for recompute in (False, True):
        model = make({**MODELS[kind], "dropout": {"embedding": 0.3, "layers": 0.3}}).train()
        guide = guide_of(model, "*")
        torch.manual_seed(3)
        with recomputing(recompute):
            loss, guidance = guided(model, guide)
        found.append(torch.autograd.grad(loss.objective + guidance, list(model.parameters())))
    assert all(torch.equal(one, other) for one, other in zip(*found, strict=True))


def test_weights_are_those_before_dropout() -> None:
    """Dropped ones would be 0, whose logarithm says nothing."""
    dropout = {**NO_DROPOUT, "attention": 0.5}
    for kind in ("rnn-feeding", "transformer", "transformer-additive"):
        model = make({**MODELS[kind], "dropout": dropout}).train()
        guide_of(model, "*")
        weights_BHTS = model.teacher_forced(padded(TARGETS), model.encode(padded(SOURCES))).weights_BHTS
        torch.testing.assert_close(weights_BHTS.sum(dim=-1), torch.ones(weights_BHTS.shape[:3]))
        assert (weights_BHTS[0, :, :, : len(SOURCES[0])] > 0).all()


def test_a_weight_of_0_has_a_loss_and_no_gradient() -> None:
    weights_BHTS = torch.tensor([[[[0.0, 0.25, 0.75]]]], requires_grad=True)
    zero = torch.zeros(2, dtype=torch.int64)
    guide = Guide(torch.tensor([0]), zero, zero, torch.tensor([0, 1]), torch.tensor([0.5, 0.5]))
    loss = guide.loss(weights_BHTS)
    assert loss.item() == pytest.approx(-0.5 * math.log(0.25) - 0.5 * math.log(FLOOR))
    (gradient,) = torch.autograd.grad(loss, [weights_BHTS])
    assert gradient.flatten().tolist() == pytest.approx([0.0, -2.0, 0.0])


def test_returned_weights_are_in_the_order_of_the_request() -> None:
    model = make({**MODELS["transformer"], "dropout": NO_DROPOUT})
    memory = model.encode(padded(SOURCES))
    weights_BHTS = model.teacher_forced(padded(TARGETS), memory).weights_BHTS
    assert model.decoder.return_weights_of([3, 0]) == [0, 1]
    returned_BHTS = model.train().teacher_forced(padded(TARGETS), memory).weights_BHTS
    torch.testing.assert_close(returned_BHTS, weights_BHTS[:, [3, 0]])

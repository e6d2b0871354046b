"""The output layer and its losses against torch's own and plain formulas."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from nmt.nn.output import OutputLayer


def random_layer(width: int, tokens: int) -> OutputLayer:
    layer = OutputLayer(width, tokens).double()
    nn.init.normal_(layer.bias_V)
    return layer


def assert_same(ours: Tensor, theirs: Tensor, of: Sequence[Tensor], **closeness: float) -> None:
    """In value and in the gradients."""
    torch.testing.assert_close(ours, theirs, **closeness)
    torch.testing.assert_close(*(torch.autograd.grad(each.sum() * 0.5, of) for each in (ours, theirs)), **closeness)


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.4])
def test_cross_entropy_equals_torchs(smoothing: float) -> None:
    layer, gold = random_layer(6, 11), torch.randint(11, (7,))
    readout = torch.randn(7, 6, dtype=torch.float64, requires_grad=True)

    loss = layer.loss(readout, gold, smoothing=smoothing)
    expected = F.cross_entropy(layer(readout), gold, label_smoothing=smoothing, reduction="sum")
    assert_same(loss.objective, expected, [readout, layer.weight_VD, layer.bias_V])
    torch.testing.assert_close(loss.cross_entropy_N, F.cross_entropy(layer(readout), gold, reduction="none").detach())
    assert loss.cross_entropy.item() == pytest.approx(loss.cross_entropy_N.sum().item())
    assert loss.correct is None
    with torch.no_grad():
        measured = layer.loss(readout, gold, smoothing=smoothing)
    torch.testing.assert_close(measured.objective, expected.detach())
    torch.testing.assert_close(measured.cross_entropy_N, loss.cross_entropy_N)
    assert measured.correct is not None
    assert measured.correct.item() == (layer(readout).argmax(1) == gold).sum().item()


@pytest.mark.parametrize("spread", [0.0, 5.0, 15.0])
def test_in_float16_rare_tokens_leave_no_range(spread: float) -> None:
    """Half of the tokens are ``spread`` nats rarer by their bias than the rest, and some rows ask for them alone."""
    layer = OutputLayer(16, 40)
    layer.weight_VD.data = layer.weight_VD.data.half().float()
    layer.bias_V.data[20:] -= spread
    one = (3.0 * torch.randn(24, 16)).half().float()
    other = (one + 0.3 * torch.randn(24, 16)).half().float()
    one.data[:12] = 4.0 * layer.weight_VD.data[20:32]  # of the rare tokens, some of these are the most probable
    gold = torch.randint(40, (24,))
    parameters = [one.requires_grad_(), other.requires_grad_(), layer.weight_VD, layer.bias_V]

    def gradients(loss: Tensor) -> tuple[Tensor, ...]:
        return torch.autograd.grad(loss, parameters, allow_unused=True)

    with torch.autocast("cpu", torch.float16):
        loss = layer.loss(one, gold, smoothing=0.1).objective
        divergence = layer.divergence(one, other, chunk=10)
    expected = F.cross_entropy(layer(one), gold, label_smoothing=0.1, reduction="sum")
    for mine, true in ((loss, expected), (divergence, divergence_by_softmax(layer, one, other))):
        assert mine.item() == pytest.approx(true.item(), rel=5e-3)
        for found, exact in zip(gradients(mine), gradients(true), strict=True):
            assert (found is None) == (exact is None)
            if found is not None and exact is not None:
                assert (found - exact).norm() < 0.01 * exact.norm()


def test_in_float16_a_scaled_loss_has_gradients_for_improbable_tokens() -> None:
    """The tokens have probabilities down to 1e-8 and below, which in float16 are 0 before the loss is scaled and not
    after."""
    layer = OutputLayer(4, 12)
    layer.weight_VD.data = torch.randint(-2, 3, (12, 4)).float() / 8
    layer.weight_VD.data[4:, 0] = -torch.arange(13.0, 21.0)
    one, other = (torch.randint(1, 5, (6, 4)) / 4 for _ in range(2))
    one[:, 0] = other[:, 0] = 1.0
    one.requires_grad_()
    other.requires_grad_()
    gold, scale = torch.tensor([0, 1, 2, 3, 0, 1]), 65536.0
    exact_one, exact_other = one.detach().double(), other.detach().double()
    exact = OutputLayer(4, 12).double()
    exact.load_state_dict(layer.state_dict())
    with torch.autocast("cpu", torch.float16):
        loss = layer.loss(one, gold)
        losses = loss.objective, layer.divergence(one, other, chunk=4)
    assert loss.correct is None
    truths = (
        F.cross_entropy(exact(exact_one), gold, reduction="sum"),
        divergence_by_softmax(exact, exact_one, exact_other),
    )
    for loss, truth in zip(losses, truths, strict=True):
        (true_V,) = torch.autograd.grad(truth, [exact.bias_V])
        (ours_V,) = torch.autograd.grad(scale * loss, [layer.bias_V])
        assert 0 < true_V[4:].abs().min() < 1e-8
        torch.testing.assert_close(ours_V[4:].double() / scale, true_V[4:], rtol=0.1, atol=0.0)


def divergence_by_softmax(layer: OutputLayer, one: Tensor, other: Tensor) -> Tensor:
    wide = torch.promote_types(one.dtype, torch.float32)
    log_p, log_q = (layer(each).log_softmax(1, dtype=wide) for each in (one, other))
    return 0.5 * ((log_p.exp() * (log_p - log_q)).sum() + (log_q.exp() * (log_q - log_p)).sum())


@pytest.mark.parametrize("shift", [-600.0, -90.0, 0.0, 90.0, 600.0])
@pytest.mark.parametrize("chunk", [1, 3, 100])
def test_divergence_is_that_of_the_softmaxes(chunk: int, shift: float) -> None:
    """In double precision, with logits whose exponentials overflow or vanish in float32 in some rows, on one side."""
    layer = random_layer(6, 40)
    layer.weight_VD.data[:, 0] = shift
    one, other = (torch.randn(7, 6, dtype=torch.float64) for _ in range(2))
    one[:, 0] = torch.tensor([0.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0])
    other[:, 0] = torch.tensor([0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 1.0])
    parameters = [one.requires_grad_(), other.requires_grad_(), layer.weight_VD, layer.bias_V]
    assert_same(layer.divergence(one, other, chunk=chunk), divergence_by_softmax(layer, one, other), parameters)


@pytest.mark.parametrize("size", [1.0, 10.0, 60.0], ids=["small logits", "large logits", "logits that overflow"])
def test_divergence_in_bfloat16_is_that_of_float32_but_for_rounding(size: float) -> None:
    """The readouts are near each other, as after two draws of dropout: the error must not exceed that of a softmax in
    float32 whose logits are rounded."""
    layer = OutputLayer(32, 700)
    nn.init.normal_(layer.bias_V)
    layer.weight_VD.data = (size * layer.weight_VD.data).bfloat16().float()
    one = torch.randn(300, 32).bfloat16().float()
    other = (one + 0.3 * torch.randn(300, 32)).bfloat16().float()
    parameters = [one.requires_grad_(), other.requires_grad_(), layer.weight_VD, layer.bias_V]
    expected = divergence_by_softmax(layer, one, other)
    with torch.autocast("cpu", torch.bfloat16):
        found, rounded = layer.divergence(one, other, chunk=128), divergence_by_softmax(layer, one, other)
    assert found.dtype == torch.float32
    assert abs(found - expected) < 1.5 * abs(rounded - expected) + 0.01 * expected
    ours, theirs, exact = (torch.autograd.grad(each, parameters) for each in (found, rounded, expected))
    for mine, yours, true in zip(ours, theirs, exact, strict=True):
        assert mine.dtype == torch.float32
        assert (mine - true).norm() < 1.5 * (yours - true).norm() + 0.01 * true.norm()


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.4])
@pytest.mark.parametrize("chunk", [1, 3, 100])
def test_likelihood_equals_log_softmax(smoothing: float, chunk: int) -> None:
    """Each token's by itself, with gradients that differ from token to token."""
    layer, gold = random_layer(6, 11), torch.randint(11, (7,))
    readout, back = (torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in ((7, 6), 7))
    gold[2] = layer(readout)[2].argmax()

    found = layer.likelihood(readout, gold, smoothing=smoothing, chunk=chunk)
    log_p_NV = layer(readout).log_softmax(dim=1)
    gold_N = log_p_NV.gather(1, gold[:, None])[:, 0]
    rows = zip(log_p_NV, gold, strict=True)
    smoothed_N = torch.stack([(1 - smoothing) * row[word] + smoothing * row.mean() for row, word in rows])
    torch.testing.assert_close(found.log_p_N, gold_N.detach())
    assert_same(back.detach() * found.smoothed_N, back.detach() * smoothed_N, [readout, layer.weight_VD, layer.bias_V])
    assert found.is_best_N.tolist() == (log_p_NV.argmax(1) == gold).tolist()
    assert found.is_best_N[2]
    assert not found.log_p_N.requires_grad


def test_likelihood_keeps_no_logits_for_the_backward_pass() -> None:
    """They would be the largest tensor by far where each token is scored from each source position."""
    layer = OutputLayer(2, 1000)
    readout, gold = torch.randn(64, 2, requires_grad=True), torch.zeros(64, dtype=torch.int64)
    kept: list[int] = []

    def note(tensor: Tensor) -> Tensor:
        kept.append(tensor.numel())
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        found = layer.likelihood(readout, gold, smoothing=0.1, chunk=16)
    assert max(kept, default=0) < 16 * 1000
    found.smoothed_N.sum().backward()
    assert readout.grad is not None


def test_tied_output_layer_is_the_embedding_itself() -> None:
    table = nn.Parameter(torch.randn(9, 4))
    assert OutputLayer(4, 9, tied=table).weight_VD is table
    with pytest.raises(AssertionError, match="output 9 x 5"):
        OutputLayer(5, 9, tied=table)

"""The fused cross entropy against its body and torch's own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from nmt.extras.speed.cross_entropy import CHUNK, fused_cross_entropy
from nmt.nn.output import OutputLayer
from nmt.ops import cross_entropy


@pytest.fixture(autouse=True)
def _registered() -> Iterator[None]:
    torch.manual_seed(0)
    before = cross_entropy.implementation
    cross_entropy.register(fused_cross_entropy)
    yield
    cross_entropy.register(before)


def gradients(output: tuple[Tensor, Tensor], parameters: list[Tensor]) -> tuple[Tensor, ...]:
    return torch.autograd.grad(0.5 * output[0], parameters)


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.4])
@pytest.mark.parametrize("rows", [1, 7, CHUNK, CHUNK + 1, 2 * CHUNK + 3])
def test_it_is_its_body(rows: int, smoothing: float) -> None:
    """In value and gradient, at any number of chunks; a token may be gold in several rows."""
    readout_ND = torch.randn(rows, 6, dtype=torch.float64, requires_grad=True)
    weight_VD = torch.randn(11, 6, dtype=torch.float64, requires_grad=True)
    bias_V = torch.randn(11, dtype=torch.float64, requires_grad=True)
    parameters = [readout_ND, weight_VD, bias_V]
    gold_N = torch.randint(11, (rows,))
    fused = fused_cross_entropy(readout_ND, weight_VD, bias_V, gold_N, smoothing)
    body = cross_entropy.body(readout_ND, weight_VD, bias_V, gold_N, smoothing)
    for one, other in zip((*fused, *gradients(fused, parameters)), (*body, *gradients(body, parameters)), strict=True):
        torch.testing.assert_close(one, other)
    assert not fused[1].requires_grad


def test_in_float16_its_body_runs_in_chunks_and_again_in_the_backward_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    readout_ND, weight_VD, bias_V = (torch.randn(shape, requires_grad=True) for shape in ((9, 4), (7, 4), (7,)))
    gold_N, parameters = torch.randint(7, (9,)), [readout_ND, weight_VD, bias_V]
    body, rows = cross_entropy.body, list[int]()

    def noted(readout_ND: Tensor, *others: Any) -> tuple[Tensor, Tensor]:
        rows.append(len(readout_ND))
        return body(readout_ND, *others)

    monkeypatch.setattr("nmt.extras.speed.cross_entropy.CHUNK", 2)
    monkeypatch.setattr(cross_entropy, "body", noted)
    expected = body(readout_ND, weight_VD, bias_V, gold_N, 0.1)
    with torch.autocast("cpu", torch.float16):
        chunked = fused_cross_entropy(readout_ND, weight_VD, bias_V, gold_N, 0.1)
    assert rows == [2, 2, 2, 2, 1]
    found = (*chunked, *gradients(chunked, parameters))
    assert rows[5:] == [1, 2, 2, 2, 2]
    for one, other in zip(found, (*expected, *gradients(expected, parameters)), strict=True):
        torch.testing.assert_close(one, other, atol=3e-3, rtol=3e-3)


@pytest.mark.parametrize("precision", [torch.float32, torch.bfloat16], ids=str)
def test_a_weight_tied_to_the_embedding_has_both_gradients(precision: torch.dtype) -> None:
    table_VD = nn.Parameter(torch.randn(9, 4))
    layer, token_N, gold_N = OutputLayer(4, 9, tied=table_VD), torch.randint(9, (7,)), torch.randint(9, (7,))
    with torch.autocast("cpu", torch.bfloat16, enabled=precision == torch.bfloat16):
        objective = layer.loss(table_VD[token_N], gold_N).objective
    expected = F.cross_entropy(layer(table_VD[token_N]), gold_N, reduction="sum")
    tolerance = 0.02 if precision == torch.bfloat16 else 1e-5
    (ours_VD,), (theirs_VD,) = (torch.autograd.grad(loss, [table_VD]) for loss in (objective, expected))
    assert (ours_VD - theirs_VD).norm() < tolerance * theirs_VD.norm()


def test_it_keeps_no_logits_for_the_backward_pass() -> None:
    layer = OutputLayer(2, 1000)
    readout, gold = torch.randn(64, 2, requires_grad=True), torch.zeros(64, dtype=torch.int64)
    kept: list[int] = []

    def note(tensor: Tensor) -> Tensor:
        kept.append(tensor.numel())
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        layer.loss(readout, gold)
    assert 0 < max(kept) <= 3 * 1000


@pytest.mark.parametrize("shift", [-600.0, -90.0, 0.0, 90.0, 600.0])
@pytest.mark.parametrize("precision", [torch.float32, torch.bfloat16], ids=str)
def test_cross_entropy_of_logits_whose_exponentials_overflow_or_vanish(
    shift: float, precision: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the second of three chunks, whose logits are all moved by ``shift``."""
    layer = OutputLayer(8, 40)
    layer.weight_VD.data = torch.randint(-3, 4, (40, 8)).float()
    layer.weight_VD.data[:, 0] = shift
    nn.init.normal_(layer.bias_V)
    monkeypatch.setattr("nmt.extras.speed.cross_entropy.CHUNK", 3)
    readout = torch.randint(-1, 2, (9, 8)).float()
    readout[:, 0] = torch.tensor([0.0, 1.0, 0.0]).repeat_interleave(3)
    readout.requires_grad_()
    gold = torch.randint(40, (9,))
    parameters = [readout, layer.weight_VD, layer.bias_V]
    expected = F.cross_entropy(layer(readout), gold, label_smoothing=0.1, reduction="sum")
    with torch.autocast("cpu", torch.bfloat16, enabled=precision == torch.bfloat16):
        found = layer.loss(readout, gold, smoothing=0.1).objective
    # logits beside 90 are rounded to halves in bfloat16, beside 600 to multiples of 4
    tolerance = {0.0: 0.01, 90.0: 0.1, 600.0: 0.3}[abs(shift)] if precision == torch.bfloat16 else 1e-4
    assert found.item() == pytest.approx(expected.item(), rel=tolerance)
    ours, theirs = torch.autograd.grad(found, parameters), torch.autograd.grad(expected, parameters)
    for one, other in zip(ours, theirs, strict=True):
        assert (one - other).norm() < tolerance * other.norm()


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("size", [1.0, 30.0], ids=["small logits", "large logits"])
def test_cross_entropy_in_bfloat16_is_that_of_float32_but_for_rounding(size: float, smoothing: float) -> None:
    """Weights and readouts are representable in bfloat16, so what differs is what the loss itself rounds."""
    layer = OutputLayer(32, 700)
    layer.weight_VD.data = (size * layer.weight_VD.data).bfloat16().float()
    readout = torch.randn(700, 32).bfloat16().float().requires_grad_()
    gold = torch.randint(700, (700,))
    parameters = [readout, layer.weight_VD, layer.bias_V]
    expected = F.cross_entropy(layer(readout), gold, label_smoothing=smoothing, reduction="sum")
    with torch.autocast("cpu", torch.bfloat16):
        found = layer.loss(readout, gold, smoothing=smoothing).objective
    assert found.dtype == torch.float32
    assert found.item() == pytest.approx(expected.item(), rel=2e-3)
    ours, theirs = torch.autograd.grad(found, parameters), torch.autograd.grad(expected, parameters)
    for one, other in zip(ours, theirs, strict=True):
        assert one.dtype == torch.float32
        assert (one - other).norm() < 0.02 * other.norm()

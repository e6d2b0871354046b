"""Recurrent stacks for inference, against those that they are made of."""

from __future__ import annotations

from functools import partial

import pytest
import torch

from nmt.extras.speed import native
from nmt.extras.speed.int8 import Int8Weight
from nmt.extras.speed.product import PackedWeight
from nmt.extras.speed.recurrent_stack import FastRecurrentStack
from nmt.nn.dropout import Dropout
from nmt.nn.recurrent import CellKind, RecurrentStack

rounded = partial(Int8Weight.of, dtype=torch.float32)


@pytest.mark.parametrize("is_first", [True, False])
@pytest.mark.parametrize("cell", ["elman", "gru", "lstm"])
def test_a_sequence_is_that_of_the_stack(cell: CellKind, is_first: bool) -> None:
    torch.manual_seed(6)
    exact, dropout = RecurrentStack(cell, input_size=6, size=8, layers=2).eval().requires_grad_(False), Dropout(0.0)
    stack, input_BTE = FastRecurrentStack(exact, [6], PackedWeight), torch.randn(5, 7, 6, requires_grad=True)
    state = None if is_first else exact.start([torch.randn(5, 8), torch.randn(5, 8)])
    with torch.no_grad():
        expected_BTD = exact(input_BTE, state, dropout)
        torch.testing.assert_close(stack(input_BTE, state, dropout), expected_BTD)
    (found, expected) = (
        torch.autograd.grad(each(input_BTE, state, dropout).sum(), input_BTE) for each in (stack, exact)
    )
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("way", ["kernels", "operations"])
@pytest.mark.parametrize("cell", ["elman", "gru", "lstm"])
@torch.no_grad()
def test_a_sequence_does_not_depend_on_its_batch(cell: CellKind, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if way == "operations":
        monkeypatch.setattr(native, "_kernels", lambda _: None)
    torch.manual_seed(5)
    exact, dropout = RecurrentStack(cell, input_size=6, size=8, layers=2).eval(), Dropout(0.0)
    stack = FastRecurrentStack(exact, [4, 2], rounded)
    input_BTE = torch.randn(5, 7, 6)
    input_BTE[:, :, 4:] *= 100.0  # each part has a scale of its own
    output_BTD = stack(input_BTE, None, dropout)
    assert output_BTD.shape == (5, 7, 8)
    torch.testing.assert_close(output_BTD, exact(input_BTE, None, dropout), atol=0.05, rtol=0.05)
    # PyTorch's sigmoid rounds by where in a tensor a number stands, and integers may tip over
    tolerance = 0.0 if way == "kernels" and cell == "lstm" else 0.01
    for row in range(5):
        alone_1TD = stack(input_BTE[row : row + 1], None, dropout)
        torch.testing.assert_close(output_BTD[row], alone_1TD[0], atol=tolerance, rtol=0.0)


@pytest.mark.parametrize("cell", ["elman", "gru", "lstm"])
@torch.no_grad()
def test_parts_of_a_weight_share_its_scales(cell: CellKind) -> None:
    """If one part of the input is 0, the other is multiplied as in a stack without parts."""
    exact = RecurrentStack(cell, input_size=6, size=8, layers=1).eval()
    in_parts, whole = (FastRecurrentStack(exact, parts, rounded) for parts in ([4, 2], [6]))
    for is_zero in (slice(0, 4), slice(4, 6)):
        input_BE = torch.randn(5, 6)
        input_BE[:, is_zero] = 0.0
        state = exact.start([torch.randn(5, 8)])
        torch.testing.assert_close(in_parts.step(input_BE, state).top_BD, whole.step(input_BE, state).top_BD)

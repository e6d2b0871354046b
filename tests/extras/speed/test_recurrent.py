"""Recurrent stacks in one call and of 8-bit integers, against the plain ones."""

from __future__ import annotations

import copy

import pytest
import torch

from nmt.extras.speed import native
from nmt.extras.speed.recurrent import FusedRecurrentStack, Int8RecurrentStack
from nmt.nn.dropout import Dropout
from nmt.nn.recurrent import CellKind, RecurrentStack


@pytest.mark.parametrize("way", ["kernels", "operations"])
@pytest.mark.parametrize("cell", ["elman", "gru", "lstm"])
@torch.no_grad()
def test_a_sequence_does_not_depend_on_its_batch(cell: CellKind, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if way == "operations":
        monkeypatch.setattr(native, "_kernels", lambda _: None)
    torch.manual_seed(5)
    exact, dropout = RecurrentStack(cell, input_size=6, size=8, layers=2).eval(), Dropout(0.0)
    stack = Int8RecurrentStack(exact, [4, 2], torch.float32)
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
    in_parts, whole = (Int8RecurrentStack(exact, parts, torch.float32) for parts in ([4, 2], [6]))
    for is_zero in (slice(0, 4), slice(4, 6)):
        input_BE = torch.randn(5, 6)
        input_BE[:, is_zero] = 0.0
        state = exact.start([torch.randn(5, 8)])
        torch.testing.assert_close(in_parts.step(input_BE, state).top_BD, whole.step(input_BE, state).top_BD)


@pytest.mark.parametrize("kind", ["elman", "gru", "lstm"])
def test_a_step_in_one_call_is_that_of_the_formulas(kind: CellKind) -> None:
    torch.manual_seed(3)
    plain = RecurrentStack(kind, input_size=5, size=6, layers=2)
    fused = copy.deepcopy(plain)
    fused.__class__ = FusedRecurrentStack
    state, input_BE = plain.start([torch.randn(4, 6), torch.randn(4, 6)]), torch.randn(4, 5)
    with torch.no_grad():
        for _ in range(3):
            expected, state = plain.step(input_BE, state), fused.step(input_BE, state)
            for one, other in zip(state.tensors(), expected.tensors(), strict=True):
                torch.testing.assert_close(one, other)
    assert fused.step(input_BE, plain.start([torch.randn(4, 6)] * 2)).top_BD.grad_fn is not None

"""The feed-forward block against plain loops."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from nmt.nn.dropout import Dropout
from nmt.nn.feed_forward import FeedForward


def silu(x: float) -> float:
    return x / (1.0 + math.exp(-x))


ACTIVATIONS: dict[str, Callable[[float], float]] = {
    "relu": lambda x: max(x, 0.0),
    "gelu": lambda x: x * 0.5 * (1.0 + math.erf(x / math.sqrt(2.0))),
    "silu": silu,
}


def affine(weight: Tensor, bias: Tensor, x: list[float]) -> list[float]:
    return [
        sum(w * v for w, v in zip(row, x, strict=True)) + b
        for row, b in zip(weight.tolist(), bias.tolist(), strict=True)
    ]


@torch.no_grad()
@pytest.mark.parametrize("activation", [*ACTIVATIONS, "swiglu"])
def test_feed_forward_equals_plain_loops(activation: Any) -> None:
    size, width = 4, 3
    block = FeedForward(size, width, activation, Dropout(0.0)).double()
    for parameter in block.parameters():
        nn.init.normal_(parameter)
    x_BTD = torch.randn(2, 3, size, dtype=torch.float64)
    for x_D, found_D in zip(x_BTD.flatten(0, 1).tolist(), block(x_BTD).flatten(0, 1).tolist(), strict=True):
        inner = affine(block.rise.weight, block.rise.bias, x_D)
        if activation == "swiglu":
            inner = [silu(gate) * value for gate, value in zip(inner[:width], inner[width:], strict=True)]
        else:
            inner = list(map(ACTIVATIONS[activation], inner))
        assert found_D == pytest.approx(affine(block.fall.weight, block.fall.bias, inner))

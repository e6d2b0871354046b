"""The feed-forward block of a Transformer."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from nmt.nn.dropout import Dropout

Activation = Literal["relu", "gelu", "silu", "swiglu"]

BRANCH = 0.1
"""Factor of the usual weights with which the last matrix of a residual branch starts, so that a model starts as little
more than its embeddings, and learns faster (Zhang et al. 2019, "Fixup Initialization", where they start at 0)."""

_ACTIVATIONS = {"relu": torch.relu, "gelu": F.gelu, "silu": F.silu}


class FeedForward(nn.Module):
    """W_2 a(W_1 x + b_1) + b_2, the same at every position (Vaswani et al. 2017, equation 2).

    a is ``relu``, ``gelu`` or ``silu``; with ``swiglu`` a(...) is silu(W_1 x + b_1) * (V x + c) (Shazeer 2020, equation
    6, with biases, like the other activations).
    """

    def __init__(self, size: int, width: int, activation: Activation, dropout: Dropout) -> None:
        super().__init__()
        self.activation = activation
        self.dropout = dropout
        self.rise = nn.Linear(size, 2 * width if activation == "swiglu" else width)
        self.fall = nn.Linear(width, size)
        for part in self.rise.weight.chunk(2) if activation == "swiglu" else (self.rise.weight,):
            nn.init.xavier_uniform_(part.data)
        nn.init.xavier_uniform_(self.fall.weight, gain=BRANCH)
        nn.init.zeros_(self.rise.bias)
        nn.init.zeros_(self.fall.bias)

    def forward(self, x_BTD: Tensor) -> Tensor:
        """Computes the output of the block, (B, T, D), with dropout on the activations inside."""
        outer_BTD: Tensor = self.fall(self.dropout(self.activated(self.rise(x_BTD))))
        return outer_BTD

    def activated(self, inner_BTF: Tensor) -> Tensor:
        """Applies a(...) to the output of ``rise``."""
        if self.activation == "swiglu":
            gate_BTF, value_BTF = inner_BTF.chunk(2, dim=-1)
            return F.silu(gate_BTF) * value_BTF
        return _ACTIVATIONS[self.activation](inner_BTF)

"""Recurrent steps with weights of 8-bit integers.

Shapes as in ``nmt.nn.recurrent``.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional as F

from nmt.extras.speed.int8 import Int8Weight
from nmt.nn.dropout import Dropout
from nmt.nn.precision import compute_dtype
from nmt.nn.recurrent import CellState, RecurrentStack, StackState


class Int8RecurrentStack(RecurrentStack):
    """A stack for inference. The input of the bottom layer is split into parts with scales of their own, because
    numbers from embeddings are far smaller than numbers from states. The parts of its weight share the scales of the
    outputs."""

    def __init__(self, stack: RecurrentStack, parts: Sequence[int], dtype: torch.dtype) -> None:
        """``parts`` are the widths of the parts; ``dtype`` is the dtype of the other weights of the model."""
        torch.nn.Module.__init__(self)
        vars(self).update(vars(stack))  # the same modules and sizes
        above = [stack.size, stack.shared_size] if stack.shared_size else [stack.size]
        self._parts = [list(parts), *[above] * (stack.layers - 1)]
        weights = [[Int8Weight.of(weight, dtype) for weight in list(rnn.parameters())[:2]] for rnn in stack.rnns]
        self._input_weights = [
            [Int8Weight(part, weight_GE.scale_O, dtype) for part in torch.split(weight_GE.values_OI, widths, dim=1)]
            for (weight_GE, _), widths in zip(weights, self._parts, strict=True)
        ]
        self._state_weights = [weight_GD for _, weight_GD in weights]

    def forward(self, input_BTE: Tensor, state: StackState | None, dropout: Dropout) -> Tensor:
        """See ``RecurrentStack.forward``. In bfloat16 torch's kernels are faster."""
        if compute_dtype(input_BTE) != torch.float32:
            return super().forward(input_BTE, state, dropout)
        if state is None:
            state = self.start([input_BTE.new_zeros(input_BTE.shape[0], self.size)] * self.layers)
        outputs = []
        for input_BE in input_BTE.unbind(dim=1):
            state = self.step(input_BE, state)
            outputs.append(state.top_BD)
        return torch.stack(outputs, dim=1)

    def layer_step(self, layer: int, input_BE: Tensor, state: CellState) -> CellState:
        """See ``RecurrentStack.layer_step``."""
        inputs = torch.split(input_BE, self._parts[layer], dim=1)
        *_, input_bias_G, recurrent_bias_G = self.rnns[layer].parameters()
        input_BG: Tensor = input_bias_G
        for part, weight_GE in zip(inputs, self._input_weights[layer], strict=True):
            input_BG = input_BG + F.linear(part, weight_GE)
        recurrent_BG = F.linear(state.hidden_BD, self._state_weights[layer], recurrent_bias_G)
        return self.cell_step(layer, input_BG, recurrent_BG, state)

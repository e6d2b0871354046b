"""Recurrent layers of a trained model, with weights that are laid out for their products.

Shapes as in ``nmt.nn.recurrent``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from nmt.extras.speed.product import FastWeight, PackedWeight
from nmt.nn.precision import compute_dtype
from nmt.nn.recurrent import CellState, RecurrentStack


class FastRecurrentStack(RecurrentStack):
    """A stack for inference."""

    def __init__(self, stack: RecurrentStack, parts: Sequence[int], lay_out: Callable[[Tensor], FastWeight]) -> None:
        """``parts`` are the widths of the parts of what the bottom layer reads, and ``lay_out`` makes the weights."""
        torch.nn.Module.__init__(self)
        vars(self).update(vars(stack))  # the same modules and sizes
        above = [stack.size, stack.shared_size] if stack.shared_size else [stack.size]
        widths = [list(parts), *[above] * (stack.layers - 1)]
        weights = [[lay_out(weight) for weight in list(rnn.parameters())[:2]] for rnn in stack.rnns]
        self._input_weights = [weight_GE.in_parts(some) for (weight_GE, _), some in zip(weights, widths, strict=True)]
        self._state_weights = [weight_GD for _, weight_GD in weights]

    def run_layer(self, layer: int, input_BTE: Tensor, start: Any) -> Tensor:
        """See ``RecurrentStack.run_layer``. Only the recurrent products are made step by step."""
        if not self._is_faster(input_BTE):
            return super().run_layer(layer, input_BTE, start)
        state = CellState(start[0][0], start[1][0]) if isinstance(start, tuple) else CellState(start[0], None)
        states_BD = []
        for input_BG in self._inputs(layer, input_BTE).unbind(dim=1):
            state = self._step(layer, input_BG, state)
            states_BD.append(state.hidden_BD)
        return torch.stack(states_BD, dim=1)

    def _is_faster(self, input_BTE: Tensor) -> bool:
        """Returns True if PyTorch takes longer for a layer over a whole sequence."""
        if torch.is_grad_enabled():
            return False
        weight_GD = self._state_weights[0]
        if isinstance(weight_GD, PackedWeight):
            return self.kind == "gru" and weight_GD.kernels(input_BTE[:, 0]) is not None
        return compute_dtype(input_BTE) == torch.float32

    def layer_step(self, layer: int, input_BE: Tensor, state: CellState) -> CellState:
        """See ``RecurrentStack.layer_step``."""
        return self._step(layer, self._inputs(layer, input_BE), state)

    def _inputs(self, layer: int, x: Tensor) -> Tensor:
        """Computes W x + b, for one step or for all."""
        *_, bias_G, _ = self.rnns[layer].parameters()
        weights = self._input_weights[layer]
        parts = torch.split(x, [weight_GE.shape[1] for weight_GE in weights], dim=-1)
        first, *others = map(F.linear, parts, weights)
        return sum(others, first + bias_G)

    def _step(self, layer: int, input_BG: Tensor, state: CellState) -> CellState:
        *_, recurrent_bias_G = self.rnns[layer].parameters()
        recurrent_BG = F.linear(state.hidden_BD, self._state_weights[layer], recurrent_bias_G)
        return self.cell_step(layer, input_BG, recurrent_BG, state)

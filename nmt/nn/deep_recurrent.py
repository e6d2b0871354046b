"""Recurrent layers with layer normalisation, and with more than one cell in a step.

Shapes as in ``nmt.nn.recurrent``.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from nmt.nn.recompute import recomputed
from nmt.nn.recurrent import CellKind, CellState, RecurrentStack


class DeepStack(RecurrentStack):
    """Layers that compute more in a step than PyTorch's kernels know, so that they run step by step.

    ``transitions``: a step of a layer is a chain of 1 + ``transitions`` cells. The first one reads the input x, the
    others only the state, which the next step gets from the last (Pascanu et al. 2014; Miceli Barone et al. 2017,
    section 2.3.1):

        h_0 = cell_0(W_0 x + b, U_0 h + b');   h_k = cell_k(b_k, U_k h_{k-1} + b'_k)

    ``layer_norm``: each gate of W x and of U h is normalised over its D units, LN(a) = g * (a - mean(a)) / std(a), and
    an LSTM's memory cell, too, where the hidden state reads it, h = o * tanh(LN(c)) (Ba et al. 2016, supplementary
    material). They normalise all gates of an LSTM, and r and z of a GRU, as one vector; here each gate has its own
    mean, as in Elman's cell have W x and U h. The gain g of U h begins at 1 / sqrt(1 + ``transitions``): with 1, each
    cell of a long chain would multiply the gradient, since a small state is normalised, too (compare the initial 0.1 of
    Cooijmans et al. 2017, section 3).
    """

    def __init__(
        self, cell: CellKind, *, input_size: int, size: int, layers: int, residual: bool = False,
        shared_size: int = 0, layer_norm: bool = False, transitions: int = 0,
    ) -> None:  # fmt: skip
        super().__init__(
            cell, input_size=input_size, size=size, layers=layers, residual=residual, shared_size=shared_size
        )
        gates = self.cell.gates * size
        self.transitions = nn.ModuleList(
            nn.ModuleList(Transition(gates, size) for _ in range(transitions)) for _ in range(layers)
        )
        self._initialize(self.transitions)
        self.norms = nn.ModuleList(
            nn.ModuleList(
                CellNorm(cell, gates, size, reads=index == 0, gain=(1 + transitions) ** -0.5)
                for index in range(1 + transitions)
            )
            for _ in range(layers if layer_norm else 0)
        )

    def run_layer(self, layer: int, input_BTE: Tensor, start: Any) -> Tensor:
        """See ``RecurrentStack.run_layer``."""
        states_BTD: Tensor = recomputed(self._run_steps)(layer, input_BTE, start)
        return states_BTD

    def _run_steps(self, layer: int, input_BTE: Tensor, start: Any) -> Tensor:
        hidden_1BD, cell_1BD = start if self.kind == "lstm" else (start, None)
        state, states = CellState(hidden_1BD[0], None if cell_1BD is None else cell_1BD[0]), []
        # the products with the input need no state, so they are computed for all steps at once
        for input_BG in self._input_gates(layer, input_BTE).unbind(dim=1):
            state = self._advance(layer, input_BG, state)
            states.append(state.hidden_BD)
        return torch.stack(states, dim=1)

    def layer_step(self, layer: int, input_BE: Tensor, state: CellState) -> CellState:
        """See ``RecurrentStack.layer_step``."""
        return self._advance(layer, self._input_gates(layer, input_BE), state)

    def _input_gates(self, layer: int, input: Tensor) -> Tensor:
        """Computes LN(W x) + b, for one step or for all."""
        rnn: Any = self.rnns[layer]
        gates = F.linear(input, rnn.weight_ih_l0)
        bias_G: Tensor = rnn.bias_ih_l0
        return self._normalized(layer, 0, "input_gain_G", gates) + bias_G

    def _advance(self, layer: int, input_BG: Tensor, state: CellState) -> CellState:
        """Computes the chain of cells of a step, from LN(W x) + b of the first one."""
        rnn: Any = self.rnns[layer]
        above: Any = self.transitions[layer]
        cells: Any = [(None, rnn.weight_hh_l0, rnn.bias_hh_l0), *(each.parameters() for each in above)]
        for index, (bias_G, weight_GD, recurrent_bias_G) in enumerate(cells):
            # the cells above the first read no input: b_k in place of LN(W x) + b
            input_BG = input_BG if bias_G is None else bias_G.expand_as(input_BG)
            recurrent_BG = F.linear(state.hidden_BD, weight_GD)
            recurrent_BG = self._normalized(layer, index, "recurrent_gain_G", recurrent_BG) + recurrent_bias_G
            state = self.cell_step(layer, input_BG, recurrent_BG, state, index)
        return state

    def cell_step(
        self, layer: int, input_BG: Tensor, recurrent_BG: Tensor, state: CellState, index: int = 0
    ) -> CellState:
        """See ``RecurrentStack.cell_step``."""
        after = self.cell.step(input_BG, recurrent_BG, state)
        if not self.norms or after.cell_BD is None:
            return after
        # h = o * tanh(LN(c)); the next step gets c as it is
        o_BD = (input_BG + recurrent_BG).chunk(4, dim=1)[3].sigmoid()
        norm: Any = self.norms[layer]
        return CellState(o_BD * norm[index].cell(after.cell_BD).tanh(), after.cell_BD)

    def _normalized(self, layer: int, index: int, gain: str, gates: Tensor) -> Tensor:
        """Computes LN of a product, gate by gate."""
        if not self.norms:
            return gates
        norms: Any = self.norms[layer]
        parts = gates.view(*gates.shape[:-1], self.cell.gates, self.size)
        gain_G: Tensor = getattr(norms[index], gain)
        return F.layer_norm(parts, (self.size,)).view_as(gates) * gain_G


class Transition(nn.Module):
    """Parameters of a cell without input."""

    def __init__(self, gates: int, size: int) -> None:
        """``gates`` is the width of all gates."""
        super().__init__()
        self.bias_ih = nn.Parameter(torch.empty(gates))
        self.weight_hh = nn.Parameter(torch.empty(gates, size))
        self.bias_hh = nn.Parameter(torch.empty(gates))


class CellNorm(nn.Module):
    """Gains of the normalisations in a cell; those of the gates need no biases, because the cell has them."""

    def __init__(self, kind: CellKind, gates: int, size: int, *, reads: bool, gain: float) -> None:
        """``gates`` is the width of all gates; ``reads`` is False for a cell without input. ``gain`` is the first value
        of that of the state."""
        super().__init__()
        self.input_gain_G = nn.Parameter(torch.ones(gates)) if reads else None
        self.recurrent_gain_G = nn.Parameter(torch.full((gates,), gain))
        self.cell = nn.LayerNorm(size) if kind == "lstm" else None

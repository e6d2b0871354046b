"""Recurrent cells, and a stack of layers that runs over a whole sequence or step by step.

Shapes: B batch, T time, E width of an input, D width of a state, G the number of gates times D.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from nmt.core.record import BatchRecord
from nmt.nn.dropout import Dropout
from nmt.nn.recompute import recomputed

CellKind: TypeAlias = Literal["elman", "gru", "lstm"]


class CellState(NamedTuple):
    """The state of one layer."""

    hidden_BD: Tensor
    cell_BD: Tensor | None
    """The memory cell of an LSTM; None for the others."""


@dataclass(frozen=True)
class StackState(BatchRecord):
    """The states of all layers, bottom first."""

    hidden: tuple[Tensor, ...]
    cell: tuple[Tensor, ...]
    """Empty for cells other than the LSTM."""
    top_BD: Tensor
    """Output of the top layer: its hidden state, with residual connections plus its input."""


def elman(input_BG: Tensor, recurrent_BG: Tensor, state: CellState) -> CellState:
    """h = tanh(x + W h) (Elman 1990)."""
    return CellState((input_BG + recurrent_BG).tanh(), None)


def gru(input_BG: Tensor, recurrent_BG: Tensor, state: CellState) -> CellState:
    """r, z = sigmoid(...), n = tanh(x_n + r * (W h)_n), h = (1 - z) * n + z * h (Cho et al. 2014).

    As in cuDNN the reset gate multiplies after the recurrent product, not before it.
    """
    x_r, x_z, x_n = input_BG.chunk(3, dim=1)
    h_r, h_z, h_n = recurrent_BG.chunk(3, dim=1)
    new_BD = (x_n + (x_r + h_r).sigmoid() * h_n).tanh()
    return CellState(torch.lerp(new_BD, state.hidden_BD.to(new_BD.dtype), (x_z + h_z).sigmoid()), None)


def lstm(input_BG: Tensor, recurrent_BG: Tensor, state: CellState) -> CellState:
    """i, f, g, o from x + W h; c = f * c + i * g; h = o * tanh(c) (Hochreiter & Schmidhuber 1997; Gers et al. 2000)."""
    assert state.cell_BD is not None
    i_BD, f_BD, g_BD, o_BD = (input_BG + recurrent_BG).chunk(4, dim=1)
    cell_BD = f_BD.sigmoid() * state.cell_BD + i_BD.sigmoid() * g_BD.tanh()
    return CellState(o_BD.sigmoid() * cell_BD.tanh(), cell_BD)


class CellType(NamedTuple):
    """A kind of recurrent cell."""

    gates: int
    module: type[nn.RNN | nn.GRU | nn.LSTM]
    step: Callable[[Tensor, Tensor, CellState], CellState]
    """The next state from W x + b, W h + b, both (B, G), and the state h."""


CELL_TYPES: dict[CellKind, CellType] = {
    "elman": CellType(1, nn.RNN, elman),
    "gru": CellType(3, nn.GRU, gru),
    "lstm": CellType(4, nn.LSTM, lstm),
}


class RecurrentStack(nn.Module):
    """Layers of one cell, run over a whole sequence or step by step with the same weights.

    Parameters live in torch's own one-layer ``nn.RNN``, ``nn.GRU`` or ``nn.LSTM``. The matrices of each gate start as
    Glorot & Bengio 2010 (input) and orthogonal (recurrent, Saxe et al. 2014), biases as 0, the forget gate of the LSTM
    as 1 (Jozefowicz et al. 2015). With ``residual`` the output of each layer above the bottom one is its hidden state
    plus its input, before dropout (Wu et al. 2016, equation 5).
    """

    def __init__(self, cell: CellKind, *, input_size: int, size: int, layers: int, residual: bool = False) -> None:
        super().__init__()
        self.residual = residual
        self.kind = cell
        self.cell = CELL_TYPES[cell]
        self.input_size = input_size
        self.size = size
        self.layers = layers
        self.rnns = nn.ModuleList(
            self.cell.module(size if layer else input_size, size, batch_first=True) for layer in range(layers)
        )
        for name, parameter in self.rnns.named_parameters():
            if "weight" in name:
                for gate in parameter.data.chunk(self.cell.gates):
                    (nn.init.orthogonal_ if "weight_hh" in name else nn.init.xavier_uniform_)(gate)
            else:
                parameter.data.zero_()
                if cell == "lstm" and "bias_ih" in name:
                    parameter.data[size : 2 * size] = 1.0

    def forward(self, input_BTE: Tensor, state: StackState | None, dropout: Dropout) -> Tensor:
        """Outputs of the top layer (B, T, D) over a whole sequence, by torch's fused kernels.

        Starts from zeros without a ``state``; ``dropout`` is applied between the layers.
        """
        for layer, rnn in enumerate(self.rnns):
            below_BTE = input_BTE
            if layer > 0:
                input_BTE = dropout(input_BTE)
            start: Any = None
            if state is not None:
                start = state.hidden[layer][None].to(input_BTE.dtype)
                if state.cell:
                    start = (start, state.cell[layer][None].to(input_BTE.dtype))
            input_BTE = recomputed(_run)(rnn, input_BTE, start)
            if layer > 0 and self.residual:
                input_BTE = input_BTE + below_BTE
        return input_BTE

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Puts a copy's weights side by side again, as ``to`` does: cuDNN would do so at every call."""
        super().__setstate__(state)  # type: ignore[no-untyped-call]
        for rnn in self.rnns:
            rnn.flatten_parameters()  # type: ignore[operator]

    def start(self, hidden: Sequence[Tensor]) -> StackState:
        """The state before the first step, from the hidden states of the layers; the LSTM's cell starts at 0."""
        cells = tuple(torch.zeros_like(hidden_BD) for hidden_BD in hidden) if self.kind == "lstm" else ()
        return StackState(tuple(hidden), cells, top_BD=hidden[-1])

    def step(self, input_BE: Tensor, state: StackState, factors: Sequence[Tensor | None] = ()) -> StackState:
        """One step of all layers. ``factors``: those of dropout for the input of each layer above the bottom one."""
        output_BD, layers = input_BE, list[CellState]()
        for layer, hidden_BD in enumerate(state.hidden):
            below_BD = input_BE = output_BD
            if layer > 0 and factors and (factor_BD := factors[layer - 1]) is not None:
                input_BE = input_BE * factor_BD
            layers.append(
                self.layer_step(layer, input_BE, CellState(hidden_BD, state.cell[layer] if state.cell else None))
            )
            output_BD = layers[-1].hidden_BD
            if layer > 0 and self.residual:
                output_BD = output_BD + below_BD
        cells = tuple(after.cell_BD for after in layers if after.cell_BD is not None)
        return StackState(tuple(after.hidden_BD for after in layers), cells, output_BD)

    def layer_step(self, layer: int, input_BE: Tensor, state: CellState) -> CellState:
        """One step of a layer: the cell of W x + b and W h + b."""
        weight_GE, weight_GD, input_bias_G, recurrent_bias_G = self.rnns[layer].parameters()
        input_BG = F.linear(input_BE, weight_GE, input_bias_G)
        recurrent_BG = F.linear(state.hidden_BD, weight_GD, recurrent_bias_G)
        return self.cell.step(input_BG, recurrent_BG, state)


def _run(rnn: nn.Module, input_BTE: Tensor, start: Any) -> Tensor:
    """The hidden states of one layer in the precision of autocast, which leaves recurrent modules alone by itself."""
    if input_BTE.shape[0] == 1 and input_BTE.device.type == "cpu":
        # For a batch of one PyTorch takes other kernels, which round otherwise: a result must not depend on the batch.
        start = tuple(_twice(tensor) for tensor in start) if isinstance(start, tuple) else _twice(start)
        return _run(rnn, input_BTE.repeat(2, 1, 1), start)[:1]
    device = input_BTE.device.type
    if torch.is_autocast_enabled(device):
        dtype = torch.get_autocast_dtype(device)
        weights: dict[str, Tensor] = dict(rnn.named_parameters())
        if any(weight.dtype != dtype for weight in weights.values()):
            # as one tensor, because cuDNN wants the weights of a layer side by side
            flat = torch.cat([weight.to(dtype).flatten() for weight in weights.values()])
            parts = torch.split(flat, [weight.numel() for weight in weights.values()])
            weights = {name: part.view_as(weights[name]) for name, part in zip(weights, parts, strict=True)}
        with torch.autocast(device, enabled=False):
            if start is not None:
                start = tuple(tensor.to(dtype) for tensor in start) if isinstance(start, tuple) else start.to(dtype)
            states_BTD, _ = torch.func.functional_call(rnn, weights, (input_BTE.to(dtype), start))
    else:
        states_BTD, _ = rnn(input_BTE, start)
    assert isinstance(states_BTD, Tensor)
    return states_BTD


def _twice(start_1BD: Tensor | None) -> Tensor | None:
    return None if start_1BD is None else start_1BD.repeat(1, 2, 1)

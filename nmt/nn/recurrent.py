"""Recurrent cells, and a stack of layers that runs over a whole sequence or step by step.

Shapes: B batch, T time, E width of an input, D width of a state, G the number of gates times D.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Self, TypeAlias

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
    """The memory cell of an LSTM; None for other kinds of cell."""


@dataclass(frozen=True)
class StackState(BatchRecord):
    """The states of all layers, bottom first."""

    hidden: tuple[Tensor, ...]
    cell: tuple[Tensor, ...]
    """The memory cell of each layer; empty if the cell is not an LSTM."""
    top_BD: Tensor
    """Output of the top layer: its hidden state, to which residual connections add its input."""


def elman(input_BG: Tensor, recurrent_BG: Tensor, state: CellState) -> CellState:
    """h = tanh(x + W h) (Elman 1990)."""
    return CellState((input_BG + recurrent_BG).tanh(), None)


def gru(input_BG: Tensor, recurrent_BG: Tensor, state: CellState) -> CellState:
    """r, z = sigmoid(...), n = tanh(x_n + r * (W h)_n), h = (1 - z) * n + z * h (Cho et al. 2014).

    The reset gate multiplies after the recurrent product, as in cuDNN, not before it.
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
    run: Callable[..., tuple[Tensor, ...]]
    """Function of PyTorch that the module calls, over whole sequences."""
    step: Callable[[Tensor, Tensor, CellState], CellState]
    """Function that computes the next state from W x + b, W h + b, both (B, G), and the state h."""


CELL_TYPES: dict[CellKind, CellType] = {
    "elman": CellType(1, nn.RNN, torch.rnn_tanh, elman),
    "gru": CellType(3, nn.GRU, torch.gru, gru),
    "lstm": CellType(4, nn.LSTM, torch.lstm, lstm),
}


class RecurrentStack(nn.Module):
    """Layers of one cell, run over a whole sequence or step by step with the same weights.

    Parameters live in torch's own one-layer ``nn.RNN``, ``nn.GRU`` or ``nn.LSTM``. The matrices of each gate are
    initialised by Glorot & Bengio 2010 (input) and as orthogonal (recurrent, Saxe et al. 2014), biases as 0, except
    that the forget gate of the LSTM starts with 1 (Jozefowicz et al. 2015). With ``residual`` the output of each layer
    above the bottom one is its hidden state plus its input, before dropout (Wu et al. 2016, equation 5).
    """

    def __init__(
        self, cell: CellKind, *, input_size: int, size: int, layers: int, residual: bool = False, shared_size: int = 0
    ) -> None:
        """``shared_size`` is the width of a further input of all layers above the bottom one, step by step alone."""
        super().__init__()
        self.residual = residual
        self.kind = cell
        self.cell = CELL_TYPES[cell]
        self.input_size = input_size
        self.shared_size = shared_size
        self.size = size
        self.layers = layers
        self.rnns = nn.ModuleList(
            self.cell.module(size + shared_size if layer else input_size, size, batch_first=True)
            for layer in range(layers)
        )
        self._initialize(self.rnns)

    def _initialize(self, cells: nn.Module) -> None:
        """Draws the parameters of cells; see the class."""
        for name, parameter in cells.named_parameters():
            if "weight" in name:
                for gate in parameter.data.chunk(self.cell.gates):
                    (nn.init.orthogonal_ if "weight_hh" in name else nn.init.xavier_uniform_)(gate)
            else:
                parameter.data.zero_()
                if self.kind == "lstm" and "bias_ih" in name:
                    parameter.data[self.size : 2 * self.size] = 1.0

    def forward(self, input_BTE: Tensor, state: StackState | None, dropout: Dropout) -> Tensor:
        """Computes the outputs of the top layer (B, T, D) over a whole sequence by torch's fused kernels.

        Without a ``state`` it starts from zeros; ``dropout`` is applied between the layers.
        """
        for layer in range(self.layers):
            below_BTE = input_BTE
            if layer > 0:
                input_BTE = dropout(input_BTE)
            start: Any = None
            if state is not None:
                start = state.hidden[layer][None].to(input_BTE.dtype)
                if state.cell:
                    start = (start, state.cell[layer][None].to(input_BTE.dtype))
            if start is None:
                zeros_1BD = input_BTE.new_zeros(1, input_BTE.shape[0], self.size)
                start = (zeros_1BD, zeros_1BD) if self.kind == "lstm" else zeros_1BD
            input_BTE = self.run_layer(layer, input_BTE, start)
            if layer > 0 and self.residual:
                input_BTE = input_BTE + below_BTE
        return input_BTE

    def run_layer(self, layer: int, input_BTE: Tensor, start: Any) -> Tensor:
        """Computes the hidden states of a layer from the state ``start``, (1, B, D), which has a cell, too, for an
        LSTM."""
        states_BTD: Tensor = recomputed(_run)(self.cell, list(self.rnns[layer].parameters()), input_BTE, start)
        return states_BTD

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Makes the weights of a copy contiguous again."""
        super().__setstate__(state)  # type: ignore[no-untyped-call]
        self._join_weights()

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        """Moves or casts the weights, and makes them contiguous again."""
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        self._join_weights()
        return self

    def _join_weights(self) -> None:
        """Makes the weights of a layer contiguous in memory; otherwise they are copied at every call of cuDNN.
        ``flatten_parameters`` does not support bfloat16."""
        for rnn in self.rnns:
            weights = list(rnn.parameters())
            if weights[0].device.type == "cuda":
                flat = torch.cat([weight.data.flatten() for weight in weights])
                parts = torch.split(flat, [weight.numel() for weight in weights])
                for weight, part in zip(weights, parts, strict=True):
                    weight.data = part.view_as(weight)

    def start(self, hidden: Sequence[Tensor]) -> StackState:
        """Builds the state before the first step from the hidden states of the layers; the LSTM's cell starts at 0."""
        cells = tuple(torch.zeros_like(hidden_BD) for hidden_BD in hidden) if self.kind == "lstm" else ()
        return StackState(tuple(hidden), cells, top_BD=hidden[-1])

    def step(
        self,
        input_BE: Tensor,
        state: StackState,
        dropout_masks: Sequence[Tensor | None] = (),
        shared_BE: Tensor | None = None,
    ) -> StackState:
        """Computes one step of all layers. ``dropout_masks`` are those for the input of each layer above the bottom
        one, which read ``shared_BE`` as well."""
        output_BD, layers = input_BE, list[CellState]()
        for layer, hidden_BD in enumerate(state.hidden):
            below_BD = input_BE = output_BD
            if layer > 0 and dropout_masks and (mask_BD := dropout_masks[layer - 1]) is not None:
                # dropout between layers, none on the recurrence (Zaremba et al. 2014)
                input_BE = input_BE * mask_BD
            if layer > 0 and shared_BE is not None:
                input_BE = torch.cat([input_BE, shared_BE], dim=1)
            layers.append(
                self.layer_step(layer, input_BE, CellState(hidden_BD, state.cell[layer] if state.cell else None))
            )
            output_BD = layers[-1].hidden_BD
            if layer > 0 and self.residual:
                # the input of the bottom layer has another width than its output, so it has no residual
                output_BD = output_BD + below_BD
        cells = tuple(after.cell_BD for after in layers if after.cell_BD is not None)
        return StackState(tuple(after.hidden_BD for after in layers), cells, output_BD)

    def layer_step(self, layer: int, input_BE: Tensor, state: CellState) -> CellState:
        """Computes one step of a layer: the cell of W x + b and W h + b."""
        # G: the gates side by side, four for an LSTM, three for a GRU, one for Elman's cell
        weight_GE, weight_GD, input_bias_G, recurrent_bias_G = self.rnns[layer].parameters()
        input_BG = F.linear(input_BE, weight_GE, input_bias_G)
        recurrent_BG = F.linear(state.hidden_BD, weight_GD, recurrent_bias_G)
        return self.cell_step(layer, input_BG, recurrent_BG, state)

    def cell_step(
        self, layer: int, input_BG: Tensor, recurrent_BG: Tensor, state: CellState, index: int = 0
    ) -> CellState:
        """Computes a cell of a layer from W x + b and W h + b; ``index`` is its number where a layer has several."""
        return self.cell.step(input_BG, recurrent_BG, state)


def _run(cell: CellType, weights: list[Tensor], input_BTE: Tensor, start: Any) -> Tensor:
    """Computes the hidden states of one layer in the precision of autocast, which by itself does not apply to recurrent
    modules.

    It calls PyTorch's function and not the module, because the module would keep the cast weights, and with them the
    graph of autograd, until its next call.
    """
    device = input_BTE.device.type
    if input_BTE.shape[0] == 1 and device == "cpu":
        # For a batch of one PyTorch takes other kernels, which round differently, but a result must not depend on the
        # batch.
        start = tuple(each.repeat(1, 2, 1) for each in start) if isinstance(start, tuple) else start.repeat(1, 2, 1)
        return _run(cell, weights, input_BTE.repeat(2, 1, 1), start)[:1]
    if torch.is_autocast_enabled(device):
        dtype = torch.get_autocast_dtype(device)
        if any(weight.dtype != dtype for weight in weights):
            # as one tensor, because cuDNN needs contiguous weights of a layer
            flat = torch.cat([weight.to(dtype).flatten() for weight in weights])
            parts = torch.split(flat, [weight.numel() for weight in weights])
            weights = [part.view_as(weight) for part, weight in zip(parts, weights, strict=True)]
        input_BTE = input_BTE.to(dtype)
        start = tuple(tensor.to(dtype) for tensor in start) if isinstance(start, tuple) else start.to(dtype)
    # biases; one layer; no dropout; whether a backward pass may follow; one direction; batch first
    options = (True, 1, 0.0, torch.is_grad_enabled(), False, True)
    with torch.autocast(device, enabled=False):
        return cell.run(input_BTE, start, weights, *options)[0]

"""Gated recurrence: one cell as plain functions, a stack of them as a module.

Shapes: B batch, T time, D width of the state, G gates (a multiple of D), L layers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import Any, ClassVar, Literal, NamedTuple, TypeAlias

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from nmt.core.record import BatchRecord
from nmt.nn import native
from nmt.nn.deferred import DeferredLinear, DeferredSum
from nmt.nn.dropout import Dropout
from nmt.nn.precision import compute_dtype
from nmt.nn.quantized import lstm_weights
from nmt.nn.recompute import recomputed

KNOWN_ROWS = 256
"""Of what is known of steps before they are taken, so many rows are formed at a time: they stay in the cache."""

CellKind: TypeAlias = Literal["elman", "gru", "lstm"]


class CellState(NamedTuple):
    """What one layer carries from step to step."""

    hidden_BD: Tensor
    cell_BD: Tensor | None
    """The LSTM's memory; None for the others."""


@dataclass(frozen=True)
class StackState(BatchRecord):
    """The states of all layers, bottom first."""

    hidden: tuple[Tensor, ...]
    cell: tuple[Tensor, ...]
    """Empty but for the LSTM."""
    top_BD: Tensor
    """What the top layer gives out: its hidden state, with residual connections plus its input."""


class Recurrent:
    """What a state adds to the next one's pre-activations: W h + b."""

    def __init__(self, weight_GD: Tensor, bias_G: Tensor) -> None:
        self._linear = DeferredLinear(weight_GD)
        self._bias_G = bias_G

    def __call__(self, hidden_BD: Tensor) -> Tensor:
        """(B, G)."""
        return self._linear(hidden_BD, self._bias_G)

    def onto(self, input_BG: Tensor, hidden_BD: Tensor) -> Tensor:
        """``input_BG`` plus it; where no gradients are recorded, ``input_BG`` itself, to which it is added."""
        return self._linear.onto(input_BG, hidden_BD, self._bias_G)


class Cell(ABC):
    """One layer's step."""

    gates: ClassVar[int]
    module: ClassVar[type[nn.RNN | nn.GRU | nn.LSTM]]

    @staticmethod
    @abstractmethod
    def step(input_BG: Tensor, recurrent: Recurrent, state: CellState) -> CellState:
        """The next state from the input's half of the pre-activations; where no gradients are recorded, that is what it
        is computed in."""


class SummingCell(Cell):
    """A cell that wants no more of input and state than the sum of what they add to its pre-activations."""

    @staticmethod
    @abstractmethod
    def gated(gates_BG: Tensor, state: CellState) -> CellState:
        """The next state from that sum."""

    @classmethod
    def step(cls, input_BG: Tensor, recurrent: Recurrent, state: CellState) -> CellState:
        """See ``Cell``."""
        return cls.gated(recurrent.onto(input_BG, state.hidden_BD), state)


class Elman(SummingCell):
    """h = tanh(x + W h) (Elman 1990)."""

    gates = 1
    module = nn.RNN

    @staticmethod
    def gated(gates_BG: Tensor, state: CellState) -> CellState:
        """See ``SummingCell``."""
        return CellState(gates_BG.tanh(), None)


class GRU(Cell):
    """r, z = sigmoid(...), n = tanh(x_n + r * (W h)_n), h = (1 - z) * n + z * h (Cho et al. 2014).

    As in cuDNN the reset gate multiplies after the recurrent product, not before it.
    """

    gates = 3
    module = nn.GRU

    @staticmethod
    def step(input_BG: Tensor, recurrent: Recurrent, state: CellState) -> CellState:
        """See ``Cell``."""
        x_r, x_z, x_n = input_BG.chunk(3, dim=1)
        h_r, h_z, h_n = recurrent(state.hidden_BD).chunk(3, dim=1)
        new_BD = (x_n + (x_r + h_r).sigmoid() * h_n).tanh()
        return CellState(torch.lerp(new_BD, state.hidden_BD.to(new_BD.dtype), (x_z + h_z).sigmoid()), None)


class LSTM(SummingCell):
    """i, f, g, o from x + W h; c = f * c + i * g; h = o * tanh(c) (Hochreiter & Schmidhuber 1997; Gers et al. 2000)."""

    gates = 4
    module = nn.LSTM

    @staticmethod
    def gated(gates_BG: Tensor, state: CellState) -> CellState:
        """See ``SummingCell``."""
        assert state.cell_BD is not None
        kernels = native.kernels(gates_BG)  # a search need not go through autograd
        if kernels is not None and gates_BG.dtype == state.cell_BD.dtype:
            return CellState(*kernels.lstm(gates_BG, state.cell_BD))
        hidden_BD, cell_BD = _LSTMPointwise.apply(gates_BG, state.cell_BD)  # type: ignore[no-untyped-call]
        return CellState(hidden_BD, cell_BD)


class _LSTMPointwise(torch.autograd.Function):
    """The element-wise half of an LSTM step: by the kernels in one pass each way, for which gates are computed twice;
    else in half the passes over memory that autograd's chain of small steps takes."""

    @staticmethod
    def forward(ctx: Any, gates_BG: Tensor, cell_BD: Tensor) -> tuple[Tensor, Tensor]:
        kernels = native.kernels(gates_BG)
        ctx.is_native = kernels is not None and gates_BG.dtype == cell_BD.dtype
        if kernels is not None and ctx.is_native:
            ctx.save_for_backward(gates_BG, cell_BD)
            return kernels.lstm(gates_BG, cell_BD)
        width = cell_BD.shape[1]
        if any(ctx.needs_input_grad):
            gates_BG = gates_BG.clone()
        gates_BG[:, : 2 * width].sigmoid_()
        gates_BG[:, 2 * width : 3 * width].tanh_()
        gates_BG[:, 3 * width :].sigmoid_()
        i, f, g, o = gates_BG.chunk(4, dim=1)
        new_cell_BD = torch.addcmul(f * cell_BD, i, g)
        tanh_BD = new_cell_BD.tanh()
        ctx.save_for_backward(gates_BG, cell_BD, tanh_BD)
        return o * tanh_BD, new_cell_BD

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, hidden_gradient_BD: Tensor, cell_gradient_BD: Tensor) -> tuple[Tensor, Tensor]:
        if ctx.is_native:
            gates_BG, cell_BD = ctx.saved_tensors
            return native.expected(gates_BG).lstm_back(gates_BG, cell_BD, hidden_gradient_BD, cell_gradient_BD)
        gates_BG, cell_BD, tanh_BD = ctx.saved_tensors
        width = cell_BD.shape[1]
        i, f, g, o = gates_BG.chunk(4, dim=1)
        # d tanh(c) = 1 - tanh(c)^2
        into_tanh_BD = hidden_gradient_BD * o
        cell_gradient_BD = cell_gradient_BD + torch.addcmul(into_tanh_BD, into_tanh_BD * tanh_BD, tanh_BD, value=-1.0)
        gradient_BG = torch.empty_like(gates_BG)
        torch.mul(cell_gradient_BD, g, out=gradient_BG[:, :width])
        torch.mul(cell_gradient_BD, cell_BD, out=gradient_BG[:, width : 2 * width])
        torch.mul(cell_gradient_BD, i, out=gradient_BG[:, 2 * width : 3 * width])
        torch.mul(hidden_gradient_BD, tanh_BD, out=gradient_BG[:, 3 * width :])
        sigmoid_BG = gates_BG[:, : 2 * width]
        gradient_BG[:, : 2 * width] *= torch.addcmul(sigmoid_BG, sigmoid_BG, sigmoid_BG, value=-1.0)
        gradient_BG[:, 2 * width : 3 * width] *= 1.0 - g * g
        gradient_BG[:, 3 * width :] *= torch.addcmul(o, o, o, value=-1.0)
        return gradient_BG, cell_gradient_BD * f


CELLS: dict[CellKind, type[Cell]] = {"elman": Elman, "gru": GRU, "lstm": LSTM}


class RecurrentStack(nn.Module):
    """Layers of one cell, to be run over a whole sequence or step by step with the same weights.

    Parameters live in torch's own one-layer ``nn.RNN``, ``nn.GRU`` or ``nn.LSTM``. Each gate's matrices start as Glorot
    & Bengio 2010 (input) and orthogonal (recurrent, Saxe et al. 2014), biases as 0, the LSTM's forget gate as 1
    (Jozefowicz et al. 2015). With ``residual`` each layer above the bottom one gives out its hidden state plus its
    input, before dropout (Wu et al. 2016, equation 5).
    """

    def __init__(self, cell: CellKind, *, input_size: int, size: int, layers: int, residual: bool = False) -> None:
        super().__init__()
        self.residual = residual
        self.kind = cell
        self.cell = CELLS[cell]
        self.input_size = input_size
        self.size = size
        self.layers = layers
        self.for_steps: dict[tuple[str, int], Tensor] = {}
        self._steppers: dict[int, Stepper] = {}
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

    def step_parameter(self, name: str, layer: int) -> Tensor:
        """``parameter``, or what stands in for it where steps are taken one by one."""
        return self.for_steps.get((name, layer), self.parameter(name, layer))

    def parameter(self, name: str, layer: int) -> nn.Parameter:
        """A layer's weight_ih, weight_hh, bias_ih or bias_hh."""
        parameter = getattr(self.rnns[layer], f"{name}_l0")
        assert isinstance(parameter, nn.Parameter)
        return parameter

    def forward(
        self, input_BTE: Tensor, state: StackState | None, dropout: Dropout, length_B: Tensor | None = None
    ) -> Tensor:
        """What the top layer gives out (B, T, D) over a whole sequence, from zero states if there is no ``state``;
        dropout goes between the layers. What it gives out beyond the ``length_B`` of a row may be anything. Runs in
        torch's own fused kernels, but step by step where steps have weights of 8-bit integers, unless torch's can run
        in bfloat16."""
        if self.for_steps and compute_dtype(input_BTE) == torch.float32:
            if length_B is None:
                length_B = torch.full((input_BTE.shape[0],), input_BTE.shape[1])
            return self._in_steps(input_BTE, state, length_B)
        for layer, rnn in enumerate(self.rnns):
            below_BTE = input_BTE
            if layer > 0:
                input_BTE = dropout(input_BTE)
            start: Any = None
            if state is not None:
                start = state.hidden[layer][None].to(input_BTE.dtype)
                if state.cell:
                    start = (start, state.cell[layer][None].to(input_BTE.dtype))
            input_BTE = recomputed(_run, rnn, input_BTE, start)
            if layer > 0 and self.residual:
                input_BTE = input_BTE + below_BTE
        return input_BTE

    def _in_steps(self, input_BTE: Tensor, state: StackState | None, length_B: Tensor) -> Tensor:
        """The longest first, so that those that are at their end are the last rows, and no longer looked at."""
        rows, time, _ = input_BTE.shape
        if state is None:
            zeros_BD = input_BTE.new_zeros(rows, self.size)
            state = self.start([zeros_BD] * self.layers)
        in_order_B = torch.argsort(length_B, descending=True, stable=True)
        is_in_order = bool((length_B[1:] <= length_B[:-1]).all())
        if not is_in_order:
            input_BTE, state = input_BTE[in_order_B], state.select(in_order_B)
        step = self.stepper(fed=0)
        states_BTD = input_BTE.new_zeros(rows, time, self.size)
        left_T = (length_B[:, None] > torch.arange(time)).sum(dim=0).tolist()
        place = 0
        for left, alike in groupby(left_T):
            end = place + len(list(alike))
            state = state.part(slice(0, left))
            while left and place < end:
                steps = slice(place, min(place + max(KNOWN_ROWS // left, 1), end))
                for known in step.known(input_BTE[:left, steps]):
                    state = step(known, [], state, [None] * (self.layers - 1))
                    states_BTD[:left, place] = state.top_BD
                    place += 1
        return states_BTD if is_in_order else torch.empty_like(states_BTD).index_copy_(0, in_order_B, states_BTD)

    def start(self, hidden: Sequence[Tensor]) -> StackState:
        """The state before the first step, from the layers' hidden states; the LSTM's memory starts at 0."""
        cells = tuple(torch.zeros_like(each) for each in hidden) if self.kind == "lstm" else ()
        return StackState(tuple(hidden), cells, top_BD=hidden[-1])

    def stepper(self, *, fed: int, in_turn: bool = False) -> Stepper:
        """A loop's view of the weights; the last ``fed`` columns of the bottom layer's input are known only inside
        the loop (the context, the last readout), the others before it. ``in_turn``: ``known`` is asked once, for all
        steps."""
        if in_turn and torch.is_grad_enabled() and issubclass(self.cell, SummingCell) and not self.for_steps:
            return _Joined(self, self.cell, fed)
        if not self.for_steps:
            return _Apart(self, fed)
        if fed not in self._steppers:  # such weights do not change, and are cut and packed once
            self._steppers[fed] = (_AtOnce if self.cell is LSTM else _Apart)(self, fed)
        return self._steppers[fed]


def side_by_side(parts: Sequence[Tensor]) -> Tensor:
    """(B, E)."""
    return parts[0] if len(parts) == 1 else torch.cat(list(parts), dim=1)


Known: TypeAlias = Callable[[Sequence[Tensor], CellState], CellState]
"""The bottom layer's step, with what is known of it beforehand: from the parts of the input that come to it and the
state before, the next one."""


class Stepper(ABC):
    """Runs a stack step by step. Make one for each loop; see ``DeferredLinear``."""

    def __init__(self, stack: RecurrentStack) -> None:
        self._stack = stack

    @abstractmethod
    def known(self, known_BTE: Tensor) -> Sequence[Known]:
        """The inputs known before the loop, ready for each of T steps."""

    def __call__(
        self, known: Known, fed: Sequence[Tensor], state: StackState, factors: Sequence[Tensor | None]
    ) -> StackState:
        """One step. ``fed``: the parts of the bottom layer's input that are known only now. ``factors`` holds dropout's
        for the input of each layer above the bottom one."""
        cells = state.cell or [None] * self._stack.layers
        new = [known(fed, CellState(state.hidden[0], cells[0]))]
        top_BD = new[0].hidden_BD
        for layer in range(1, self._stack.layers):
            factor_BD = factors[layer - 1]
            below_BD = top_BD if factor_BD is None else top_BD * factor_BD
            new.append(self._above(layer, below_BD, CellState(state.hidden[layer], cells[layer])))
            top_BD = new[-1].hidden_BD + top_BD if self._stack.residual else new[-1].hidden_BD
        kept = tuple(each.cell_BD for each in new if each.cell_BD is not None)
        return StackState(tuple(each.hidden_BD for each in new), kept, top_BD)

    @abstractmethod
    def _above(self, layer: int, below_BD: Tensor, state: CellState) -> CellState: ...


class _Apart(Stepper):
    """Products with the input and with the state, each by itself: for every cell, and for steps that are not known to
    come in turn."""

    def __init__(self, stack: RecurrentStack, fed: int) -> None:
        super().__init__(stack)
        self._cell = stack.cell
        known = stack.input_size - fed
        self._known = DeferredLinear(stack.step_parameter("weight_ih", 0)[:, :known])
        self._biases_G = [stack.step_parameter("bias_ih", n) for n in range(stack.layers)]
        self._fed = DeferredLinear(stack.step_parameter("weight_ih", 0)[:, known:]) if fed else None
        self._inputs = [DeferredLinear(stack.step_parameter("weight_ih", n)) for n in range(1, stack.layers)]
        self._recurrent = [
            Recurrent(stack.step_parameter("weight_hh", n), stack.step_parameter("bias_hh", n))
            for n in range(stack.layers)
        ]

    def known(self, known_BTE: Tensor) -> Sequence[Known]:
        """See ``Stepper``. Where no gradients are recorded a step writes to what is known of it, so that is rows of its
        own, side by side."""
        known_TBG = self._known(known_BTE.transpose(0, 1), self._biases_G[0])
        return [partial(self._bottom, each_BG) for each_BG in known_TBG]

    def _bottom(self, known_BG: Tensor, fed: Sequence[Tensor], state: CellState) -> CellState:
        if self._fed is not None:
            known_BG = self._fed.onto(known_BG, side_by_side(fed))
        return self._cell.step(known_BG, self._recurrent[0], state)

    def _above(self, layer: int, below_BD: Tensor, state: CellState) -> CellState:
        return self._cell.step(self._inputs[layer - 1](below_BD, self._biases_G[layer]), self._recurrent[layer], state)


class _AtOnce(_Apart):
    """Of LSTMs with weights of bytes. Where there is a kernel for it, a step is made of the sums of its products while
    they are in the cache."""

    def __init__(self, stack: RecurrentStack, fed: int) -> None:
        super().__init__(stack, fed)
        self._known_size = stack.input_size - fed
        self._made: dict[int, native.LstmWeights] = {}
        """The weights of each layer."""

    def known(self, known_BTE: Tensor) -> Sequence[Known]:
        """See ``Stepper``."""
        if self._kernels(known_BTE) is None:
            return super().known(known_BTE)
        return [partial(self._bottom_at_once, each_BE) for each_BE in known_BTE.transpose(0, 1).contiguous()]

    def _bottom_at_once(self, known_BE: Tensor, fed: Sequence[Tensor], state: CellState) -> CellState:
        return self._step(0, [known_BE, side_by_side(fed)] if fed else [known_BE], state)

    def _above(self, layer: int, below_BD: Tensor, state: CellState) -> CellState:
        if self._kernels(below_BD) is None:
            return super()._above(layer, below_BD, state)
        return self._step(layer, [below_BD], state)

    def _step(self, layer: int, parts: Sequence[Tensor], state: CellState) -> CellState:
        dtype = parts[0].dtype
        assert state.cell_BD is not None
        given = [each.to(dtype).contiguous() for each in (*parts, state.hidden_BD)]
        if layer not in self._made:  # where there is no kernel nothing is packed
            input_GE, hidden_GD = (self._stack.step_parameter(name, layer) for name in ("weight_ih", "weight_hh"))
            cut = [input_GE] if len(parts) == 1 else [input_GE[:, : self._known_size], input_GE[:, self._known_size :]]
            bias_G = self._biases_G[layer] + self._stack.step_parameter("bias_hh", layer)
            self._made[layer] = lstm_weights([*cut, hidden_GD], bias_G)
        cell_BD, kernels = state.cell_BD.to(dtype).contiguous(), native.expected(parts[0])
        return CellState(*kernels.lstm_step(given, self._made[layer], cell_BD))

    @staticmethod
    def _kernels(x: Tensor) -> native.Kernels | None:
        found = native.kernels(x)
        return found if found is not None and found.has_product() else None


class _Joined(Stepper):
    """For training: one product with input and state side by side, which the bottom layer's adds to what is known."""

    def __init__(self, stack: RecurrentStack, cell: type[SummingCell], fed: int) -> None:
        super().__init__(stack)
        self._cell = cell
        weights_GX = [
            torch.cat([stack.parameter("weight_ih", n), stack.parameter("weight_hh", n)], dim=1)
            for n in range(stack.layers)
        ]
        self._biases_G = [stack.parameter("bias_ih", n) + stack.parameter("bias_hh", n) for n in range(stack.layers)]
        self._known_GE, self._rest_GX = weights_GX[0].tensor_split([stack.input_size - fed], dim=1)
        self._products = [DeferredLinear(each_GX) for each_GX in weights_GX[1:]]

    def known(self, known_BTE: Tensor) -> Sequence[Known]:
        """See ``Stepper``."""
        known_TBG = F.linear(known_BTE.transpose(0, 1), self._known_GE, self._biases_G[0])
        return [partial(self._bottom, term) for term in DeferredSum(known_TBG, self._rest_GX).terms()]

    def _bottom(self, term: Callable[[Sequence[Tensor]], Tensor], fed: Sequence[Tensor], state: CellState) -> CellState:
        return self._cell.gated(term([*fed, state.hidden_BD]), state)

    def _above(self, layer: int, below_BD: Tensor, state: CellState) -> CellState:
        x_BX = torch.cat([below_BD, state.hidden_BD.to(below_BD.dtype)], dim=1)
        return self._cell.gated(self._products[layer - 1](x_BX, self._biases_G[layer]), state)


def _run(rnn: nn.Module, input_BTE: Tensor, start: Any) -> Tensor:
    """The hidden states of one layer in autocast's precision; autocast itself leaves recurrent modules alone."""
    if input_BTE.shape[0] == 1 and input_BTE.device.type == "cpu":
        # A batch of one takes other kernels, which round otherwise: a sentence shall not depend on having company.
        start = tuple(_doubled(each) for each in start) if isinstance(start, tuple) else _doubled(start)
        return _run(rnn, input_BTE.repeat(2, 1, 1), start)[:1]
    device = input_BTE.device.type
    if torch.is_autocast_enabled(device):
        dtype = torch.get_autocast_dtype(device)
        weights = {name: parameter.to(dtype) for name, parameter in rnn.named_parameters()}
        with torch.autocast(device, enabled=False):
            if start is not None:
                start = tuple(each.to(dtype) for each in start) if isinstance(start, tuple) else start.to(dtype)
            states_BTD, _ = torch.func.functional_call(rnn, weights, (input_BTE.to(dtype), start))
    else:
        states_BTD, _ = rnn(input_BTE, start)
    assert isinstance(states_BTD, Tensor)
    return states_BTD


def _doubled(start_1BD: Tensor | None) -> Tensor | None:
    return None if start_1BD is None else start_1BD.repeat(1, 2, 1)

"""Layer normalisation and deep transitions against loops over single numbers."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from nmt.nn.deep_recurrent import DeepStack
from nmt.nn.dropout import Dropout
from nmt.nn.recurrent import CELL_TYPES, CellKind
from tests.nn.test_recurrent import assert_gives

SIZE = 4


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def product(weight: Tensor, x: list[float], gain: Tensor | None, bias: Tensor) -> list[list[float]]:
    """Each gate of g * (W x - mean) / std + b, or of W x + b without a gain."""
    gates = []
    for first in range(0, len(weight), SIZE):
        sums = [sum(float(weight[first + i, j]) * x[j] for j in range(len(x))) for i in range(SIZE)]
        mean = sum(sums) / SIZE
        deviation = math.sqrt(sum((each - mean) ** 2 for each in sums) / SIZE + 1e-5)
        if gain is not None:
            sums = [float(gain[first + i]) * (sums[i] - mean) / deviation for i in range(SIZE)]
        gates.append([sums[i] + float(bias[first + i]) for i in range(SIZE)])
    return gates


def next_state(kind: CellKind, x: Any, u: Any, h: list[float], c: list[float], norm: nn.LayerNorm | None) -> Any:
    """h and c of a cell from the gates of W x and U h."""
    units = range(SIZE)
    if kind == "elman":
        return [math.tanh(x[0][i] + u[0][i]) for i in units], c
    if kind == "gru":
        r, z = ([sigmoid(x[k][i] + u[k][i]) for i in units] for k in (0, 1))
        n = [math.tanh(x[2][i] + r[i] * u[2][i]) for i in units]
        return [(1 - z[i]) * n[i] + z[i] * h[i] for i in units], c
    i_, f, o = ([sigmoid(x[k][i] + u[k][i]) for i in units] for k in (0, 1, 3))
    c = [f[i] * c[i] + i_[i] * math.tanh(x[2][i] + u[2][i]) for i in units]
    read = c
    if norm is not None:
        identity = torch.eye(SIZE, dtype=torch.float64)
        (read,) = product(identity, c, norm.weight, norm.bias)
    return [o[i] * math.tanh(read[i]) for i in units], c


def plain(stack: DeepStack, x_TE: list[list[float]], hidden: list[list[float]]) -> list[list[float]]:
    """The hidden states of the top layer over a sequence, layer by layer."""
    for layer, rnn in enumerate(list[Any](stack.rnns)):
        h, c, states = hidden[layer], [0.0] * SIZE, []
        norms: Any = stack.norms[layer] if stack.norms else [None] * (1 + len(stack.transitions[layer]))  # type: ignore[arg-type]
        for x_E in x_TE:
            gain = None if norms[0] is None else norms[0].input_gain_G
            x = product(rnn.weight_ih_l0, x_E, gain, rnn.bias_ih_l0)
            cells = [(x, rnn.weight_hh_l0, rnn.bias_hh_l0)]
            for above in list[Any](stack.transitions[layer]):
                cells += [(above.bias_ih.view(-1, SIZE).tolist(), above.weight_hh, above.bias_hh)]
            for (x, weight, bias), norm in zip(cells, norms, strict=True):
                u = product(weight, h, None if norm is None else norm.recurrent_gain_G, bias)
                h, c = next_state(stack.kind, x, u, h, c, None if norm is None else norm.cell)
            states.append(h)
        x_TE = states
    return x_TE


@pytest.mark.parametrize("cell", list(CELL_TYPES))
@pytest.mark.parametrize(("layer_norm", "transitions"), [(True, 0), (False, 1), (True, 2)])
def test_steps_and_sequences_equal_plain_loops(cell: CellKind, layer_norm: bool, transitions: int) -> None:
    stack = DeepStack(cell, input_size=3, size=SIZE, layers=2, layer_norm=layer_norm, transitions=transitions).double()
    for parameter in stack.parameters():
        nn.init.normal_(parameter)
    x_BTE, hidden_LBD = torch.randn(2, 4, 3).double(), torch.randn(2, 2, SIZE).double()
    with torch.no_grad():
        expected = [plain(stack, x_BTE[row].tolist(), hidden_LBD[:, row].tolist()) for row in range(2)]
    assert_gives(stack, x_BTE, hidden_LBD, torch.tensor(expected, dtype=torch.float64))


def test_parameters_begin_as_in_other_cells() -> None:
    stack = DeepStack("lstm", input_size=3, size=SIZE, layers=1, layer_norm=True, transitions=1)
    (transition,), norms = list[Any](stack.transitions[0]), list[Any](stack.norms)  # type: ignore[arg-type]
    assert transition.bias_ih.tolist() == [0.0] * SIZE + [1.0] * SIZE + [0.0] * 2 * SIZE
    for gate in transition.weight_hh.chunk(4):
        torch.testing.assert_close(gate @ gate.T, torch.eye(SIZE))
    assert all((norm.recurrent_gain_G == 0.5**0.5).all() for norm in norms[0])


@pytest.mark.parametrize(("cell", "transitions"), [("lstm", 4), ("gru", 7), ("elman", 7)])
def test_gradients_of_long_chains_do_not_explode(cell: CellKind, transitions: int) -> None:
    """With gains of 1 they reach 1e5 to 1e13 here."""
    torch.manual_seed(1)
    stack = DeepStack(cell, input_size=8, size=32, layers=1, layer_norm=True, transitions=transitions)
    stack(0.3 * torch.randn(4, 40, 8), None, Dropout(0.0))[:, -1].sum().backward()
    assert all(parameter.grad.norm() < 1000 for parameter in stack.parameters() if parameter.grad is not None)

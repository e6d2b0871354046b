"""Layers against torch's own modules, plain formulas and numerical gradients."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from nmt.layers.deferred import DeferredLinear
from nmt.layers.dropout import Dropout, random_bytes
from nmt.layers.output import OutputLayer
from nmt.layers.recurrent import CELLS, LSTM, CellKind, CellState, RecurrentStack, StackState


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


def test_deferred_gradients_equal_those_of_a_plain_linear_map_in_a_loop() -> None:
    weight = torch.randn(5, 3, dtype=torch.float64, requires_grad=True)
    start = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
    back = torch.randn(3, 5, dtype=torch.float64)

    def loss(linear: object) -> torch.Tensor:
        x = start
        total = torch.zeros((), dtype=torch.float64)
        for _ in range(6):
            y = linear(x)  # type: ignore[operator]
            total = total + (y**2).sum()
            x = torch.tanh(y @ back.T)
        return total

    plain = torch.autograd.grad(loss(lambda x: F.linear(x, weight)), [weight, start])
    deferred = torch.autograd.grad(loss(DeferredLinear(weight)), [weight, start])
    for one, other in zip(plain, deferred, strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.4])
@pytest.mark.parametrize("chunk", [1, 3, 100])
def test_cross_entropy_equals_torchs(smoothing: float, chunk: int) -> None:
    layer = OutputLayer(6, 11).double()
    nn.init.normal_(layer.bias_V)
    readout = torch.randn(7, 6, dtype=torch.float64, requires_grad=True)
    gold = torch.randint(11, (7,))
    parameters = [readout, layer.weight_VD, layer.bias_V]

    loss = layer.loss(readout, gold, smoothing=smoothing, chunk=chunk)
    expected = F.cross_entropy(layer(readout), gold, label_smoothing=smoothing, reduction="sum")
    assert loss.objective.item() == pytest.approx(expected.item(), rel=1e-5)
    assert loss.cross_entropy.item() == pytest.approx(
        F.cross_entropy(layer(readout), gold, reduction="sum").item(), rel=1e-5
    )
    assert loss.correct.item() == (layer(readout).argmax(1) == gold).sum().item()
    ours = torch.autograd.grad(loss.objective * 0.5, parameters)
    theirs = torch.autograd.grad(expected * 0.5, parameters)
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other)


def test_tied_output_layer_is_the_embedding_itself() -> None:
    table = nn.Parameter(torch.randn(9, 4))
    assert OutputLayer(4, 9, tied=table).weight_VD is table
    with pytest.raises(AssertionError, match="output 9 x 5"):
        OutputLayer(5, 9, tied=table)


def test_lstm_pointwise_gradient_is_the_numerical_one() -> None:
    gates = torch.randn(3, 8, dtype=torch.float64, requires_grad=True)
    cell = torch.randn(3, 2, dtype=torch.float64, requires_grad=True)

    def step(gates_BG: torch.Tensor, cell_BD: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        state = LSTM.step(gates_BG, torch.zeros_like(gates_BG), CellState(cell_BD, cell_BD))
        assert state.cell_BD is not None
        return state.hidden_BD, state.cell_BD

    assert torch.autograd.gradcheck(step, (gates, cell))


@pytest.mark.parametrize("cell", list(CELLS))
@pytest.mark.parametrize("layers", [1, 3])
@pytest.mark.parametrize("fed", [0, 2])
def test_stepping_equals_torchs_recurrence(cell: CellKind, layers: int, fed: int) -> None:
    stack = RecurrentStack(cell, input_size=5, size=4, layers=layers)
    for parameter in stack.parameters():
        nn.init.normal_(parameter)
    reference = CELLS[cell].module(5, 4, num_layers=layers, batch_first=True)
    reference.load_state_dict({f"{name[:-1]}{n}": stack.parameter(name[:-3], n) for n in range(layers)
                               for name in ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")})  # fmt: skip
    x_BTE = torch.randn(3, 6, 5)
    hidden = torch.randn(layers, 3, 4)
    start = (hidden, torch.zeros_like(hidden)) if cell == "lstm" else hidden
    expected, _ = reference(x_BTE, start)

    state = stack.start(list(hidden))
    torch.testing.assert_close(stack(x_BTE, state, Dropout(0.0)), expected)
    stepper = stack.stepper(fed=fed)
    known = stepper.known(x_BTE[:, :, : 5 - fed])
    for time in range(6):
        fed_BF = x_BTE[:, time, 5 - fed :] if fed else None
        state = stepper(known[:, time], fed_BF, state, [None] * (layers - 1), 1.0)
        torch.testing.assert_close(state.top_BD, expected[:, time])


def test_state_carries_every_field() -> None:
    state = StackState((torch.tensor([[1.0], [2.0], [3.0]]),), (torch.tensor([[4.0], [5.0], [6.0]]),))
    assert len(state) == 3
    chosen = state.select(torch.tensor([2, 0, 0]))
    assert [each.flatten().tolist() for each in chosen.tensors()] == [[3, 1, 1], [6, 4, 4]]
    assert [each.flatten().tolist() for each in state.repeat(2).tensors()] == [[1, 1, 2, 2, 3, 3], [4, 4, 5, 5, 6, 6]]


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.9])
def test_dropout_keeps_the_mean_and_drops_the_share(rate: float) -> None:
    dropped = Dropout(rate)(torch.ones(100, 100, 100))
    assert (dropped == 0).float().mean().item() == pytest.approx(rate, abs=0.004)
    assert dropped.mean().item() == pytest.approx(1.0, abs=0.01)
    assert dropped.unique().tolist() == pytest.approx([0.0, Dropout(rate).scale])


def test_variational_dropout_has_one_mask_for_all_positions() -> None:
    dropped = Dropout(0.5, variational=True)(torch.ones(4, 7, 50))
    assert (dropped == dropped[:, :1]).all()
    assert not (dropped[0] == dropped[1]).all()
    assert not (Dropout(0.5)(torch.ones(4, 7, 50)) == dropped[:, :1]).all()


def test_dropout_changes_nothing_in_eval_mode_and_repeats_with_the_seed() -> None:
    layer = Dropout(0.5)
    x = torch.randn(2, 3, 4)
    assert layer.eval()(x) is x
    layer.train()
    torch.manual_seed(7)
    first = layer(x)
    assert not torch.equal(first, layer(x))
    torch.manual_seed(7)
    assert torch.equal(first, layer(x))


def test_random_bytes_are_uniform_in_every_place_of_a_word() -> None:
    values = random_bytes((8 * 60_000,), torch.device("cpu")).view(-1, 8)
    for place in range(8):
        counts = torch.bincount(values[:, place].long(), minlength=256).double()
        chi_squared = ((counts - 60_000 / 256) ** 2 / (60_000 / 256)).sum().item()
        assert 180 < chi_squared < 345  # 255 degrees of freedom: p about 1e-4 on either side


def test_a_sentence_alone_is_rounded_as_in_company() -> None:
    """A batch of one would take other kernels, whose bfloat16 sums come out otherwise in one place of a thousand."""
    stack = RecurrentStack("lstm", input_size=256, size=256, layers=1).bfloat16()
    x_BTE = torch.randn(6, 12, 256).bfloat16()
    together = stack(x_BTE, None, Dropout(0.0))
    for row in range(6):
        assert torch.equal(stack(x_BTE[row : row + 1], None, Dropout(0.0))[0], together[row])

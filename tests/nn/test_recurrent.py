"""Recurrent layers against torch's own modules."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from nmt.nn.dropout import Dropout
from nmt.nn.recurrent import CELL_TYPES, CellKind, RecurrentStack, StackState


@pytest.mark.parametrize("cell", list(CELL_TYPES))
@pytest.mark.parametrize("layers", [1, 3])
def test_stepping_equals_torchs_recurrence(cell: CellKind, layers: int) -> None:
    stack = RecurrentStack(cell, input_size=5, size=4, layers=layers)
    for parameter in stack.parameters():
        nn.init.normal_(parameter)
    reference = CELL_TYPES[cell].module(5, 4, num_layers=layers, batch_first=True)
    weights = {f"{name[:-1]}{n}": w for n, rnn in enumerate(stack.rnns) for name, w in rnn.named_parameters()}
    reference.load_state_dict(weights)
    x_BTE = torch.randn(3, 6, 5)
    hidden = torch.randn(layers, 3, 4)
    start = (hidden, torch.zeros_like(hidden)) if cell == "lstm" else hidden
    expected, _ = reference(x_BTE, start)

    assert_gives(stack, x_BTE, hidden, expected)


def assert_gives(
    stack: RecurrentStack, x_BTE: torch.Tensor, hidden: torch.Tensor, expected_BTD: torch.Tensor
) -> StackState:
    """Over the whole sequence and step by step, in value and gradient; returns the last state."""
    whole_BTD = stack(x_BTE, stack.start(list(hidden)), Dropout(0.0))
    torch.testing.assert_close(whole_BTD, expected_BTD)
    state, steps = stack.start(list(hidden)), []
    for x_BE in x_BTE.unbind(dim=1):
        state = stack.step(x_BE, state)
        steps.append(state.top_BD)
    steps_BTD = torch.stack(steps, dim=1)
    torch.testing.assert_close(steps_BTD, expected_BTD)
    parameters, back_BTD = list(stack.parameters()), torch.randn_like(expected_BTD)
    gradients = (torch.autograd.grad((y_BTD * back_BTD).sum(), parameters) for y_BTD in (steps_BTD, whole_BTD))
    torch.testing.assert_close(*gradients, atol=1e-4, rtol=1e-4)
    return state


def layer_by_layer(stack: RecurrentStack, x_BTE: torch.Tensor, start: torch.Tensor) -> torch.Tensor:
    """Computes the output of the top layer by torch's own one-layer modules; each but the lowest adds its input."""
    for layer in range(stack.layers):
        module = CELL_TYPES[stack.kind].module(x_BTE.shape[-1], stack.size, batch_first=True, dtype=x_BTE.dtype)
        module.load_state_dict(stack.rnns[layer].state_dict())
        hidden = start[layer : layer + 1]
        states_BTD, _ = module(x_BTE, (hidden, torch.zeros_like(hidden)) if stack.kind == "lstm" else hidden)
        x_BTE = states_BTD if layer == 0 else states_BTD + x_BTE
    return x_BTE


@pytest.mark.parametrize("cell", list(CELL_TYPES))
@pytest.mark.parametrize("layers", [2, 4])
def test_a_residual_stack_equals_torchs_layers_with_their_inputs_added(cell: CellKind, layers: int) -> None:
    stack = RecurrentStack(cell, input_size=5, size=4, layers=layers, residual=True).double()
    for parameter in stack.parameters():
        nn.init.normal_(parameter)
    x_BTE, hidden = torch.randn(3, 6, 5, dtype=torch.float64), torch.randn(layers, 3, 4, dtype=torch.float64)
    expected = layer_by_layer(stack, x_BTE, hidden)

    last = assert_gives(stack, x_BTE, hidden, expected)
    assert not torch.allclose(last.hidden[-1], last.top_BD), "what recurs is not what is given out"


def test_dropout_in_a_residual_stack_spares_the_shortcut() -> None:
    """If all of a layer's input is dropped, its shortcut still adds the input to the state."""
    stack = RecurrentStack("elman", input_size=4, size=4, layers=2, residual=True)
    x_BTE = torch.randn(2, 3, 4)
    below_BTD = stack.rnns[0](x_BTE)[0]
    nothing = Dropout(0.0)
    nothing.forward = torch.zeros_like  # type: ignore[method-assign]
    torch.testing.assert_close(stack(x_BTE, None, nothing), stack.rnns[1](torch.zeros(2, 3, 4))[0] + below_BTD)
    state = stack.step(x_BTE[:, 0], stack.start([torch.zeros(2, 4)] * 2), [torch.zeros(2, 4)])
    torch.testing.assert_close(state.top_BD, stack.rnns[1](torch.zeros(2, 1, 4))[0][:, 0] + below_BTD[:, 0])


def test_a_sentence_alone_is_rounded_as_in_company() -> None:
    """A batch of one would take other kernels, whose bfloat16 sums come out otherwise in one place of a thousand."""
    stack = RecurrentStack("lstm", input_size=256, size=256, layers=1).bfloat16()
    x_BTE = torch.randn(6, 12, 256).bfloat16()
    together = stack(x_BTE, None, Dropout(0.0))
    for row in range(6):
        assert torch.equal(stack(x_BTE[row : row + 1], None, Dropout(0.0))[0], together[row])

"""Layers against torch's own modules, plain formulas and numerical gradients."""

from __future__ import annotations

import pytest
import torch
from pydantic import TypeAdapter, ValidationError
from torch import nn
from torch.nn import functional as F

from nmt.nn.config import Size
from nmt.nn.dropout import Dropout, random_bytes
from nmt.nn.output import OutputLayer
from nmt.nn.recurrent import CELL_TYPES, CellKind, RecurrentStack, StackState


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.4])
def test_cross_entropy_equals_torchs(smoothing: float) -> None:
    layer = OutputLayer(6, 11).double()
    nn.init.normal_(layer.bias_V)
    readout = torch.randn(7, 6, dtype=torch.float64, requires_grad=True)
    gold = torch.randint(11, (7,))
    parameters = [readout, layer.weight_VD, layer.bias_V]

    loss = layer.loss(readout, gold, smoothing=smoothing)
    expected = F.cross_entropy(layer(readout), gold, label_smoothing=smoothing, reduction="sum")
    assert loss.objective.item() == pytest.approx(expected.item(), rel=1e-5)
    assert loss.cross_entropy.item() == pytest.approx(
        F.cross_entropy(layer(readout), gold, reduction="sum").item(), rel=1e-5
    )
    assert loss.correct is None
    with torch.no_grad():
        measured = layer.loss(readout, gold, smoothing=smoothing)
    assert measured.objective.item() == pytest.approx(expected.item(), rel=1e-5)
    torch.testing.assert_close(measured.cross_entropy_N, loss.cross_entropy_N)
    assert measured.correct is not None
    assert measured.correct.item() == (layer(readout).argmax(1) == gold).sum().item()
    ours = torch.autograd.grad(loss.objective * 0.5, parameters)
    theirs = torch.autograd.grad(expected * 0.5, parameters)
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize("spread", [0.0, 5.0, 15.0])
def test_in_float16_rare_tokens_leave_no_range(spread: float) -> None:
    """Half of the tokens are ``spread`` nats rarer by their bias than the rest, and some rows ask for them alone."""
    torch.manual_seed(0)
    layer = OutputLayer(16, 40)
    layer.weight_VD.data = layer.weight_VD.data.half().float()
    layer.bias_V.data[20:] -= spread
    one = (3.0 * torch.randn(24, 16)).half().float()
    other = (one + 0.3 * torch.randn(24, 16)).half().float()
    one.data[:12] = 4.0 * layer.weight_VD.data[20:32]  # of the rare tokens, some of these are the most probable
    gold = torch.randint(40, (24,))
    parameters = [one.requires_grad_(), other.requires_grad_(), layer.weight_VD, layer.bias_V]

    def gradients(loss: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return torch.autograd.grad(loss, parameters, allow_unused=True)

    with torch.autocast("cpu", torch.float16):
        loss = layer.loss(one, gold, smoothing=0.1).objective
        divergence = layer.divergence(one, other, chunk=10)
    expected = F.cross_entropy(layer(one), gold, label_smoothing=0.1, reduction="sum")
    for mine, true in ((loss, expected), (divergence, divergence_by_softmax(layer, one, other))):
        assert mine.item() == pytest.approx(true.item(), rel=5e-3)
        for found, exact in zip(gradients(mine), gradients(true), strict=True):
            assert (found is None) == (exact is None)
            if found is not None and exact is not None:
                assert (found - exact).norm() < 0.01 * exact.norm()


def test_in_float16_a_scaled_loss_has_gradients_for_improbable_tokens() -> None:
    """The tokens have probabilities down to 1e-8 and below, which in float16 are 0 before the loss is scaled and not
    after."""
    torch.manual_seed(0)
    layer = OutputLayer(4, 12)
    layer.weight_VD.data = torch.randint(-2, 3, (12, 4)).float() / 8
    layer.weight_VD.data[4:, 0] = -torch.arange(13.0, 21.0)
    one, other = (torch.randint(1, 5, (6, 4)) / 4 for _ in range(2))
    one[:, 0] = other[:, 0] = 1.0
    one.requires_grad_()
    other.requires_grad_()
    gold, scale = torch.tensor([0, 1, 2, 3, 0, 1]), 65536.0
    exact_one, exact_other = one.detach().double(), other.detach().double()
    exact = OutputLayer(4, 12).double()
    exact.load_state_dict(layer.state_dict())
    with torch.autocast("cpu", torch.float16):
        loss = layer.loss(one, gold)
        losses = loss.objective, layer.divergence(one, other, chunk=4)
    assert loss.correct is None
    truths = (
        F.cross_entropy(exact(exact_one), gold, reduction="sum"),
        divergence_by_softmax(exact, exact_one, exact_other),
    )
    for loss, truth in zip(losses, truths, strict=True):
        (true_V,) = torch.autograd.grad(truth, [exact.bias_V])
        (ours_V,) = torch.autograd.grad(scale * loss, [layer.bias_V])
        assert 0 < true_V[4:].abs().min() < 1e-8
        torch.testing.assert_close(ours_V[4:].double() / scale, true_V[4:], rtol=0.1, atol=0.0)


def divergence_by_softmax(layer: OutputLayer, one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    wide = torch.promote_types(one.dtype, torch.float32)
    log_p, log_q = (layer(each).log_softmax(1, dtype=wide) for each in (one, other))
    return 0.5 * ((log_p.exp() * (log_p - log_q)).sum() + (log_q.exp() * (log_q - log_p)).sum())


@pytest.mark.parametrize("shift", [-600.0, -90.0, 0.0, 90.0, 600.0])
@pytest.mark.parametrize("chunk", [1, 3, 100])
def test_divergence_is_that_of_the_softmaxes(chunk: int, shift: float) -> None:
    """In double precision, with logits whose exponentials overflow or vanish in float32 in some rows, on one side."""
    torch.manual_seed(0)
    layer = OutputLayer(6, 40).double()
    nn.init.normal_(layer.bias_V)
    layer.weight_VD.data[:, 0] = shift
    one, other = (torch.randn(7, 6, dtype=torch.float64) for _ in range(2))
    one[:, 0] = torch.tensor([0.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0])
    other[:, 0] = torch.tensor([0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 1.0])
    parameters = [one.requires_grad_(), other.requires_grad_(), layer.weight_VD, layer.bias_V]
    found, expected = layer.divergence(one, other, chunk=chunk), divergence_by_softmax(layer, one, other)
    torch.testing.assert_close(found, expected)
    ours, theirs = (torch.autograd.grad(each * 0.5, parameters) for each in (found, expected))
    for mine, yours in zip(ours, theirs, strict=True):
        torch.testing.assert_close(mine, yours)


@pytest.mark.parametrize("size", [1.0, 10.0, 60.0], ids=["small logits", "large logits", "logits that overflow"])
def test_divergence_in_bfloat16_is_that_of_float32_but_for_rounding(size: float) -> None:
    """The readouts are near each other, as after two draws of dropout: the error must not exceed that of a softmax in
    float32 whose logits are rounded."""
    torch.manual_seed(0)
    layer = OutputLayer(32, 700)
    nn.init.normal_(layer.bias_V)
    layer.weight_VD.data = (size * layer.weight_VD.data).bfloat16().float()
    one = torch.randn(300, 32).bfloat16().float()
    other = (one + 0.3 * torch.randn(300, 32)).bfloat16().float()
    parameters = [one.requires_grad_(), other.requires_grad_(), layer.weight_VD, layer.bias_V]
    expected = divergence_by_softmax(layer, one, other)
    with torch.autocast("cpu", torch.bfloat16):
        found, rounded = layer.divergence(one, other, chunk=128), divergence_by_softmax(layer, one, other)
    assert found.dtype == torch.float32
    assert abs(found - expected) < 1.5 * abs(rounded - expected) + 0.01 * expected
    ours, theirs, exact = (torch.autograd.grad(each, parameters) for each in (found, rounded, expected))
    for mine, yours, true in zip(ours, theirs, exact, strict=True):
        assert mine.dtype == torch.float32
        assert (mine - true).norm() < 1.5 * (yours - true).norm() + 0.01 * true.norm()


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.4])
@pytest.mark.parametrize("chunk", [1, 3, 100])
def test_likelihood_equals_log_softmax(smoothing: float, chunk: int) -> None:
    """Each token's by itself, with gradients that differ from token to token."""
    layer = OutputLayer(6, 11).double()
    nn.init.normal_(layer.bias_V)
    readout = torch.randn(7, 6, dtype=torch.float64, requires_grad=True)
    gold, back = torch.randint(11, (7,)), torch.randn(7, dtype=torch.float64)
    gold[2] = layer(readout)[2].argmax()
    parameters = [readout, layer.weight_VD, layer.bias_V]

    found = layer.likelihood(readout, gold, smoothing=smoothing, chunk=chunk)
    log_p_NV = layer(readout).log_softmax(dim=1)
    gold_N = log_p_NV.gather(1, gold[:, None])[:, 0]
    rows = zip(log_p_NV, gold, strict=True)
    smoothed_N = torch.stack([(1 - smoothing) * row[word] + smoothing * row.mean() for row, word in rows])
    torch.testing.assert_close(found.log_p_N.double(), gold_N, atol=1e-6, rtol=1e-5)
    torch.testing.assert_close(found.smoothed_N.double(), smoothed_N, atol=1e-6, rtol=1e-5)
    assert found.is_best_N.tolist() == (log_p_NV.argmax(1) == gold).tolist()
    assert found.is_best_N[2]
    assert not found.log_p_N.requires_grad
    ours = torch.autograd.grad((found.smoothed_N * back).sum(), parameters)
    theirs = torch.autograd.grad((smoothed_N * back).sum(), parameters)
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-4)


def test_likelihood_keeps_no_logits_for_the_backward_pass() -> None:
    """They would be the largest tensor by far where each token is scored from each source position."""
    layer = OutputLayer(2, 1000)
    readout, gold = torch.randn(64, 2, requires_grad=True), torch.zeros(64, dtype=torch.int64)
    kept: list[int] = []

    def note(tensor: torch.Tensor) -> torch.Tensor:
        kept.append(tensor.numel())
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        found = layer.likelihood(readout, gold, smoothing=0.1, chunk=16)
    assert max(kept, default=0) < 16 * 1000
    found.smoothed_N.sum().backward()
    assert readout.grad is not None


def test_tied_output_layer_is_the_embedding_itself() -> None:
    table = nn.Parameter(torch.randn(9, 4))
    assert OutputLayer(4, 9, tied=table).weight_VD is table
    with pytest.raises(AssertionError, match="output 9 x 5"):
        OutputLayer(5, 9, tied=table)


@pytest.mark.parametrize("cell", list(CELL_TYPES))
@pytest.mark.parametrize("layers", [1, 3])
def test_stepping_equals_torchs_recurrence(cell: CellKind, layers: int) -> None:
    stack = RecurrentStack(cell, input_size=5, size=4, layers=layers)
    for parameter in stack.parameters():
        nn.init.normal_(parameter)
    reference = CELL_TYPES[cell].module(5, 4, num_layers=layers, batch_first=True)
    reference.load_state_dict({f"{name[:-1]}{n}": stack.rnns[n].get_parameter(name) for n in range(layers)
                               for name in ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")})  # fmt: skip
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
    ours, theirs = (torch.autograd.grad((y_BTD * back_BTD).sum(), parameters) for y_BTD in (steps_BTD, whole_BTD))
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other, atol=1e-4, rtol=1e-4)
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


def test_state_carries_every_field() -> None:
    hidden, cell, top = (torch.tensor([[1.0], [2.0], [3.0]]) + 3 * n for n in range(3))
    state = StackState((hidden,), (cell,), top)
    assert len(state) == 3
    chosen = state.select(torch.tensor([2, 0, 0]))
    assert [each.flatten().tolist() for each in chosen.tensors()] == [[3, 1, 1], [6, 4, 4], [9, 7, 7]]
    twice = [[1, 1, 2, 2, 3, 3], [4, 4, 5, 5, 6, 6], [7, 7, 8, 8, 9, 9]]
    assert [each.flatten().tolist() for each in state.repeat(2).tensors()] == twice


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


def test_a_size_is_bounded_where_no_use_reaches() -> None:
    assert TypeAdapter(Size).validate_python(1 << 20) == 1 << 20
    for size in (0, (1 << 20) + 1):
        with pytest.raises(ValidationError):
            TypeAdapter(Size).validate_python(size)

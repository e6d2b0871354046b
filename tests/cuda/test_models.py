"""Models and operations on a device: outputs and gradients are those of the CPU."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

import nmt
from nmt import ops
from nmt.attention.registry import SCORES, WEIGHTS
from nmt.attention.scores.additive import additive_energy
from nmt.core.device import Compute, compute
from nmt.evaluation.perplexity import predict, token_log_probs
from nmt.models.feed import FreeRunning, TeacherForcing
from nmt.models.loss import CrossEntropy, token_loss
from nmt.models.scheduled_sampling import ScheduledSampling
from nmt.nn.dropout import Dropout
from nmt.training.objective import training_criterion
from tests.cuda import on_device
from tests.cuda.on_device import BOTH, CPU, GPU, IS_GPU, PRETENDED, SOURCE_BS, TARGET_BT, THERE, Device
from tests.models.variants import TRANSFORMER, WIRINGS, kinds, make, tree, variants

PRODUCT = [
    pytest.param(tree(score=score, weights=weights, decoder=wiring), id=f"product-{score}-{weights}")
    for score in SCORES
    for weights, wiring in zip(WEIGHTS, list(WIRINGS.values()) * len(WEIGHTS), strict=False)
]
"""Every score with all weights."""


TEACHER = TeacherForcing()


def losses_and_gradients(model: Any, compute: Compute, feed: Any = TEACHER) -> dict[str, Tensor]:
    """Computes the losses and gradients of a batch with padding, by name."""
    torch.manual_seed(1)
    model.zero_grad()
    with compute.autocast():
        batch = SOURCE_BS.to(compute.device), TARGET_BT.to(compute.device)
        loss = token_loss(model, *batch, feed, training_criterion(model, 0.1))
    loss.objective.backward()
    found = {f"gradient of {name}": each.grad for name, each in model.named_parameters() if each.grad is not None}
    return {"objective": loss.objective.detach(), "cross entropy": loss.cross_entropy, **found}


def assert_learns_alike(device: Device, model: Any, there: Any, feed: Any = TEACHER) -> None:
    """Asserts that the losses and gradients on the device are those of the CPU."""
    expected = losses_and_gradients(model, CPU, feed)
    with device.in_use():
        found = losses_and_gradients(there, device.compute, feed)
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        device.close(found[name], value, name)


@on_device.on_a_gpu
@pytest.mark.parametrize("config", [*variants(), *PRODUCT])
def test_a_model_learns_what_it_learns_on_the_cpu(config: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Both have the same dropout, and the same draws if attention draws a position."""
    on_device.draw_on_the_host(monkeypatch)
    model, there = GPU.pair_of(make(config).train())
    assert_learns_alike(GPU, model, there)
    with torch.no_grad():
        expected = model.eval().output(model.teacher_forced(TARGET_BT, model.encode(SOURCE_BS)).readout_BTR)
        memory = there.eval().encode(SOURCE_BS.to(THERE))
        GPU.close(there.output(there.teacher_forced(TARGET_BT.to(THERE), memory).readout_BTR), expected, "logits")


@on_device.each_device
@pytest.mark.parametrize(
    ("config", "feeds"),
    [
        *(pytest.param(*each.values, [TEACHER, FreeRunning(), ScheduledSampling(0.5)], id=each.id) for each in kinds()),
        pytest.param(on_device.MARGINAL, [TEACHER], id="marginal"),
    ],
)
def test_feeds_of_predicted_tokens(
    device: Device, config: dict[str, Any], feeds: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    if not device.is_pretended:
        on_device.draw_on_the_host(monkeypatch)
    pair = device.pair_of(make(config).train())
    for feed in feeds:
        assert_learns_alike(device, *pair, feed)


def test_weights_that_nobody_asks_for_are_not_formed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Scores and perplexity come from fused attention, which has none."""
    model, there = PRETENDED.pair_of(make(BOTH))

    def scores(model: Any, compute: Compute) -> list[float]:
        by_feed = predict(model, *on_device.PAIRS, TEACHER, compute, batch_tokens=20)
        log_p = token_log_probs(model, *on_device.PAIRS, compute, batch_tokens=20)
        return [by_feed.loss, *(float(each.sum()) for each in log_p)]

    expected = scores(model, CPU)
    monkeypatch.setattr(ops.attend, "body", lambda *_: pytest.fail("weights are formed"))
    with PRETENDED.in_use():
        assert scores(there, PRETENDED.compute) == pytest.approx(expected, abs=1e-4)


SMOOTH = {
    **{
        f"{cell} {name}": tree(encoder={"cell": cell, "layers": 2}, decoder={"cell": cell, **wiring})
        for cell in ("elman", "gru", "lstm")
        for name, wiring in WIRINGS.items()
    },
    "transformer": BOTH,
    "rnn to transformer": tree(decoder=TRANSFORMER, score="scaled_dot"),
}


@on_device.on_a_gpu
@pytest.mark.parametrize("precision", ["bfloat16", pytest.param("float16", marks=on_device.only_on_a_gpu)])
@pytest.mark.parametrize("name", list(SMOOTH))
def test_half_precision_is_near_float32(name: str, precision: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    on_device.draw_on_the_host(monkeypatch)
    model, there = GPU.pair_of(make(SMOOTH[name], scale=1.0).train())
    expected = losses_and_gradients(model, CPU)
    found = losses_and_gradients(there, Compute(THERE, precision))
    assert all(each.dtype == torch.float32 for key, each in found.items() if key.startswith("gradient"))
    assert found["objective"].item() == pytest.approx(expected["objective"].item(), rel=0.03)
    one, other = (
        torch.cat([each.flatten().float().cpu() for key, each in of.items() if key.startswith("gradient")])
        for of in (found, expected)
    )
    assert torch.cosine_similarity(one, other, dim=0) > 0.98
    assert one.norm().item() == pytest.approx(other.norm().item(), rel=0.1)


@on_device.on_a_gpu
@on_device.only_on_a_gpu
@on_device.each_side
def test_a_loss_that_is_still_held_is_in_no_graphs_way(config: dict[str, Any]) -> None:
    """Autograd would wait for the stream on which it was computed, which a recording does not allow."""
    _, there = GPU.pair_of(make(config).train())
    for each in there.modules():
        if isinstance(each, Dropout):
            each.threshold = 0
    held = token_loss(there, SOURCE_BS.to(THERE), TARGET_BT.to(THERE), TEACHER, CrossEntropy(0.1))
    expected, *_, found = [losses_and_gradients(there, GPU.compute) for _ in range(4)]
    for name, value in expected.items():
        GPU.close(found[name], value.cpu(), name)
    assert held.objective.requires_grad


@on_device.on_a_gpu
@on_device.each_side
def test_inputs_of_another_device_are_refused(config: dict[str, Any]) -> None:
    there = make(config).to(THERE)
    if IS_GPU:
        with pytest.raises(RuntimeError, match="device"):
            there.encode(SOURCE_BS)
    with pytest.raises(nmt.InputError, match="there are only" if IS_GPU else "cuda:99"):
        compute("cuda:99", "float32")


# ---- operations

TOLERANCE = {torch.float32: 1e-4, torch.bfloat16: 0.05, torch.float16: 0.01}
each_type = pytest.mark.parametrize(
    "dtype", [torch.float32, torch.bfloat16, pytest.param(torch.float16, marks=on_device.only_on_a_gpu)], ids=str
)


def both(*shape: int, dtype: torch.dtype, factor: float = 1.0) -> tuple[Tensor, Tensor]:
    """A random tensor in float64 on the CPU, and the same, in a type, on the device."""
    values = (factor * torch.randn(shape)).to(dtype)
    return values.double().requires_grad_(), values.to(THERE).requires_grad_()


@on_device.on_a_gpu
@each_type
@pytest.mark.parametrize(("positions", "width"), [(5, 8), (7, 5), (9, 16), (33, 64), (64, 64)])
@pytest.mark.parametrize("mask", ["none", "padding", "causal", "both"])
@pytest.mark.parametrize("with_weights", [False, True])
@pytest.mark.parametrize("drops", [False, True])
def test_fused_attention(
    drops: bool, mask: str, positions: int, width: int, with_weights: bool, dtype: torch.dtype
) -> None:
    nmt.accelerate()
    factors = 1.25 * (torch.rand(2, 2, positions, positions) > 0.2).double() if drops else None
    tensors = [both(2, 2, length, width, dtype=dtype) for length in (positions, positions, positions)]
    place = torch.arange(positions)
    padding_B11S = place >= torch.tensor([positions, positions - 3])[:, None, None, None]
    causal_11TS = (place > place[:, None])[None, None]
    hidden = {"none": None, "padding": padding_B11S, "causal": causal_11TS, "both": padding_B11S | causal_11TS}[mask]
    results = []
    for side, attend in enumerate((ops.attend.body, ops.attend)):
        inputs = [pair[side] for pair in tensors]
        is_hidden = None if hidden is None else hidden.to(inputs[0].device)
        context, weights = attend(*inputs, is_hidden, width**-0.5, None if factors is None else factors.to(inputs[0]))
        parts = [context, weights()] if with_weights else [context]
        total = sum((part.float() ** 2).sum() for part in parts)
        results.append([*parts, *torch.autograd.grad(total, inputs)])
    for expected, found in zip(results[0][:-3], results[1][:-3], strict=True):  # contexts, weights
        GPU.close(found, expected, atol=TOLERANCE[dtype], rtol=TOLERANCE[dtype])
    for expected, found in zip(results[0][-3:], results[1][-3:], strict=True):
        assert found.dtype == dtype
        error = (found.detach().cpu().double() - expected).norm() / expected.norm()
        assert error < TOLERANCE[dtype], f"relative error of a gradient {error:.1e}"


@on_device.on_a_gpu
@pytest.mark.parametrize("layers", [0, 2])
@pytest.mark.parametrize("records", [False, True])
def test_additive_energy(records: bool, layers: int) -> None:
    nmt.accelerate()
    tensors = [both(*shape, dtype=torch.float32) for shape in ((2, 1, 4, 24), (2, 1, 5, 24), (24,))]
    upper = [both(24, 24, dtype=torch.float32, factor=0.2) for _ in range(layers)]
    results = []
    for side, energy in enumerate((additive_energy.body, additive_energy)):
        inputs, weights = [pair[side] for pair in tensors], [pair[side] for pair in upper]
        with torch.set_grad_enabled(records):
            energy_BHTS = energy(*inputs, weights)
        gradients = torch.autograd.grad((energy_BHTS**2).sum(), [*inputs, *weights]) if records else ()
        results.append([energy_BHTS, *gradients])
    for expected, found in zip(*results, strict=True):
        GPU.close(found, expected)


@on_device.on_a_gpu
@each_type
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("factor", [1.0, 20.0], ids=["small logits", "large logits"])
@pytest.mark.parametrize("rows", [3, 700])
def test_cross_entropy(rows: int, factor: float, smoothing: float, dtype: torch.dtype) -> None:
    nmt.accelerate()
    readout, gold_N = both(rows, 16, dtype=dtype, factor=factor), torch.arange(rows) % 40
    # the weights of a model stay in float32; values that half precision holds
    weight, bias = (
        (values.detach().requires_grad_(), there.detach().float().requires_grad_())
        for values, there in (both(*shape, dtype=dtype) for shape in ((40, 16), (40,)))
    )
    results = []
    for side, operation in enumerate((ops.cross_entropy.body, ops.cross_entropy)):
        inputs = [readout[side], weight[side], bias[side]]
        with torch.autocast(THERE.type, dtype, enabled=side == 1 and dtype != torch.float32):
            objective, cross_entropy_N = operation(*inputs, gold_N.to(inputs[0].device), smoothing)
        gradients = torch.autograd.grad(objective / rows, inputs)
        results.append([objective / rows, cross_entropy_N, *gradients])
    tolerance = TOLERANCE[dtype]
    for name, expected, found in zip(("mean", "each", "readout", "weight", "bias"), *results, strict=True):
        scale = max(1.0, expected.abs().max().item())  # half precision rounds in proportion to the logits
        GPU.close(found, expected, name, atol=tolerance * scale, rtol=2 * tolerance)


@on_device.on_a_gpu
@torch.no_grad()
@pytest.mark.parametrize("normalized", [False, True])
@pytest.mark.parametrize("count", [1, 5])
@each_type
def test_top_tokens_and_log_normalizer(count: int, normalized: bool, dtype: torch.dtype) -> None:
    nmt.accelerate()
    logits = torch.stack([torch.randperm(200).to(dtype) / 8 for _ in range(6)])
    logits[2, 3:] = -torch.inf
    for each in (logits, logits.T.contiguous().T):
        there_NV = each.to(THERE)
        expected = ops.top_tokens.body(each.double(), count, normalized)
        found = ops.top_tokens(there_NV, count, normalized)
        GPU.close(found.logit_NK, expected.logit_NK)
        is_finite = expected.logit_NK.isfinite()
        assert found.token_NK.cpu()[is_finite].tolist() == expected.token_NK[is_finite].tolist()
        assert (found.log_normalizer_N is None) == (not normalized)
        if found.log_normalizer_N is not None and expected.log_normalizer_N is not None:
            GPU.close(found.log_normalizer_N, expected.log_normalizer_N)
        GPU.close(ops.log_normalizer(there_NV), ops.log_normalizer.body(each.double()))


@on_device.on_a_gpu
@on_device.only_on_a_gpu
def test_tf32_is_what_it_is_named_and_is_reset() -> None:
    left, right = (torch.randn(512, 512, dtype=torch.float64) for _ in range(2))
    rnn, x = torch.nn.LSTM(256, 256, batch_first=True), torch.randn(8, 20, 256)
    exact, exact_states = left @ right, rnn(x)[0].detach().double()
    rnn_there = rnn.to(THERE)
    for precision, is_coarse in (("tf32", True), ("float32", False), ("bfloat16", False), ("tf32", True)):
        chosen = compute(on_device.DEVICE, precision)
        assert torch.backends.cuda.matmul.allow_tf32 == torch.backends.cudnn.allow_tf32 == is_coarse
        assert chosen.dtype == (torch.bfloat16 if precision == "bfloat16" else torch.float32)
        product = (left.float().to(THERE) @ right.float().to(THERE)).cpu().double()
        error = (product - exact).norm() / exact.norm()
        assert (1e-4 < error < 1e-2) if is_coarse else error < 1e-5, f"{precision}: error of products {error:.1e}"
        states = rnn_there(x.to(THERE))[0].cpu().double()
        error = (states - exact_states).norm() / exact_states.norm()
        assert (1e-5 < error < 1e-2) if is_coarse else error < 5e-6, f"{precision}: error of an LSTM {error:.1e}"

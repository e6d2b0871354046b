"""A model made ready for searches against the plain one."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from nmt.core import device
from nmt.core.device import Compute
from nmt.extras.accel.native.compiled import compiled
from nmt.extras.accel.optimize import optimize, quantize, register
from nmt.extras.accel.transformer_decoder import BackpointerState, FastTransformerDecoder
from nmt.models.seq2seq import Seq2Seq
from nmt.translator.loading import for_inference
from tests.models.plain_decoder import SOURCES, padded
from tests.models.test_transformer import IS_PAD_BS, SOURCE_BS, TARGET_BT, settings
from tests.models.variants import make, tree

BEAMS = 3
CPU = torch.device("cpu")

CONFIGS = pytest.mark.parametrize(
    "config",
    [
        settings(),
        settings(norm="post", activation="swiglu"),
        settings(positions="rotary"),
        settings(size=12, heads=3, tie="all", positions="learned"),
        settings(score="additive", source="cosine"),
        tree(),
        tree(score="concat", decoder={"query": "previous", "input_feeding": False}),
        tree(score="general", decoder={"cell": "gru"}),
    ],
    ids=["usual", "post", "rotary", "wider", "others", "additive", "previous", "gru"],
)


def made(config: dict[str, Any], precision: Any, *, fast: bool) -> Seq2Seq[Any, Any]:
    compute, model = Compute(CPU, precision), make(config)
    if fast:
        return optimize(model, compute)
    if precision == "int8":
        quantize(model, compute.dtype)
        return model.requires_grad_(False).eval().to(compute.dtype)
    return for_inference.body(model, compute)


@torch.no_grad()
def stepped(config: dict[str, Any], precision: Any, *, fast: bool) -> tuple[Tensor, Tensor]:
    """Logits (T, N, V) and weights (T, N, H, S) of more steps than there are positions formed at once."""
    model = made(config, precision, fast=fast)
    with Compute(CPU, precision).autocast():
        memory = model.encode(padded(SOURCES))
        state = model.start(memory).repeat(2)
        steps = []
        for time in range(70):
            steps.append(model.step(torch.arange(6).add(time) % 6, memory, state))
            state = steps[-1].state
    return torch.stack([step.logits_NV for step in steps]), torch.stack([step.weights_NHS for step in steps])


@CONFIGS
@pytest.mark.parametrize("precision", ["float32", "int8"])
def test_a_fast_model_makes_the_same_steps(
    config: dict[str, Any], precision: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Compute, "dtype", torch.float32)  # beside integers too, where the CPU has bfloat16
    close = 1e-5 if precision == "float32" else 1e-2  # what lies between two integers is rounded to either
    pairs = zip(stepped(config, precision, fast=True), stepped(config, precision, fast=False), strict=True)
    for one, other in pairs:
        assert (one - other).abs().mean() < close


@CONFIGS
def test_a_fast_model_errs_no_more_in_bfloat16(config: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device, "_cpu_has_bfloat16", lambda: True)
    exact_TNV = stepped(config, "float32", fast=False)[0]
    fast_TNV, plain_TNV = (stepped(config, "bfloat16", fast=fast)[0] for fast in (True, False))
    assert fast_TNV.dtype == plain_TNV.dtype == torch.bfloat16
    assert 0.0 < (fast_TNV - exact_TNV).abs().mean() < 1.3 * (plain_TNV - exact_TNV).abs().mean()


@CONFIGS
@torch.no_grad()
def test_fast_steps_follow_rows_that_change_places_and_leave(config: dict[str, Any]) -> None:
    results = []
    for fast in (True, False):
        model = made(config, "float32", fast=fast)
        memory, generator = model.encode(padded(SOURCES)), torch.Generator().manual_seed(7)
        state, logits = model.start(memory).repeat(BEAMS), []
        for time in range(12):
            step = model.step(torch.randint(6, (len(memory) * BEAMS,), generator=generator), memory, state)
            logits.append(step.logits_NV)
            parent_BK = torch.randint(BEAMS, (len(memory), BEAMS), generator=generator)
            row_N = (parent_BK + BEAMS * torch.arange(len(memory))[:, None]).flatten()
            if time in (3, 8):  # the first sentence leaves
                memory, row_N = memory.select(torch.arange(1, len(memory))), row_N[BEAMS:]
            state = step.state.select(row_N)
        results.append(torch.cat(logits))
    torch.testing.assert_close(*results, atol=1e-4, rtol=1e-4)


@torch.no_grad()
def test_a_fast_model_can_step_twice_from_one_state() -> None:
    model = made(settings(), "float32", fast=True)
    memory = model.encode(SOURCE_BS)
    state = model.step(torch.tensor([4, 5, 1]), memory, model.start(memory)).state
    one = model.step(torch.tensor([4, 4, 4]), memory, state)
    expected_NV = model.step(torch.tensor([1, 5, 4]), memory, one.state).logits_NV
    model.step(torch.tensor([5, 5, 5]), memory, state)
    assert torch.equal(model.step(torch.tensor([1, 5, 4]), memory, one.state).logits_NV, expected_NV)


@torch.no_grad()
@pytest.mark.skipif(compiled() is None, reason="no C++ compiler: the plain decoder steps")
def test_states_of_two_searches_are_not_joined() -> None:
    """Rows of either know their past by where it stands in their own search."""
    model = made(settings(), "float32", fast=True)
    assert isinstance(model.decoder, FastTransformerDecoder)
    memory, token_B = model.encode(SOURCE_BS), torch.tensor([4, 5, 1])
    one, other = (model.step(token_B, memory, model.start(memory)).state for _ in range(2))
    assert len(BackpointerState.joined([one, one])) == 2 * len(one)
    with pytest.raises(AssertionError):
        BackpointerState.joined([one, other])


def test_a_fast_model_still_has_gradients() -> None:
    model = made(settings(), "float32", fast=True)
    embedded_BSE = model.encoder.embed(SOURCE_BS).detach().requires_grad_()
    memory = model.encode_embedded(embedded_BSE, IS_PAD_BS)
    step = model.step(TARGET_BT[:, 0], memory, model.start(memory))
    (gradient_BSE,) = torch.autograd.grad(step.logits_NV.logsumexp(1).sum(), embedded_BSE)
    assert gradient_BSE.abs().max() > 1e-4


def test_without_registration_the_textbook_model_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(for_inference, "implementation", for_inference.body)
    assert not isinstance(for_inference(make(settings()), Compute(CPU, "float32")).decoder, FastTransformerDecoder)
    register()
    fast = for_inference(make(settings()), Compute(CPU, "float32")).decoder
    assert isinstance(fast, FastTransformerDecoder) == (compiled() is not None)

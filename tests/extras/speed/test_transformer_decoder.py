"""The fast decoder of a Transformer against the plain one; more of its steps are compared in ``test_optimize.py``."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from nmt.core import device
from nmt.core.device import Compute, Precision
from nmt.extras.speed.optimize import optimize
from nmt.extras.speed.transformer_decoder import BackpointerState, FastTransformerDecoder
from tests.extras.speed.test_native import needs_kernels
from tests.extras.speed.test_optimize import CPU, SOURCE_BS, fast, plain, searched, transformer
from tests.models.plain_decoder import padded
from tests.models.variants import make

LONG_BS = padded([[4 + position % 2 for position in range(length)] for length in (37, 1, 16)])
each_type = pytest.mark.parametrize("precision", ["float32", "bfloat16", "int8"])


@pytest.fixture(autouse=True)
def in_float32(monkeypatch: pytest.MonkeyPatch) -> None:
    """Numbers beside 8-bit integers are in float32."""
    monkeypatch.setitem(device.FASTEST, "cpu", lambda: ("float32", ""))


@needs_kernels
@each_type
@pytest.mark.parametrize(("heads", "width"), [(2, 1), (2, 7), (3, 32), (2, 65)])
def test_widths_and_lengths_that_no_vector_fits(heads: int, width: int, precision: Precision) -> None:
    config = transformer(size=heads * width, heads=heads, feed_forward=70)
    exact_XV, exact_XHS = searched(plain(config, "float32"), "float32", 20, LONG_BS)
    model = fast(config, precision)
    assert isinstance(model.decoder, FastTransformerDecoder)
    found_XV, found_XHS = searched(model, precision, 20, LONG_BS)
    if precision == "float32":
        torch.testing.assert_close(found_XV, exact_XV, atol=1e-4, rtol=1e-4)
        torch.testing.assert_close(found_XHS, exact_XHS, atol=1e-4, rtol=1e-4)
    else:
        plain_XV, _ = searched(plain(config, precision), precision, 20, LONG_BS)
        assert (found_XV - exact_XV).abs().mean() < 1.2 * (plain_XV - exact_XV).abs().mean() + 1e-6


@needs_kernels
@each_type
@torch.no_grad()
def test_threads_share_the_rows_and_change_nothing(precision: Precision, monkeypatch: pytest.MonkeyPatch) -> None:
    model, source_BS = fast(transformer(), precision), SOURCE_BS.repeat(25, 1)
    alone = searched(model, precision, 6, source_BS)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 4)
    assert all(map(torch.equal, searched(model, precision, 6, source_BS), alone))


@needs_kernels
@each_type
@torch.no_grad()
def test_what_is_hidden_has_exactly_no_weight_and_a_lost_row_takes_no_other_with_it(precision: Precision) -> None:
    changed = make(transformer())
    changed.decoder.embedding.weight_VD.data[5] = torch.nan
    steps = []
    for model in (fast(transformer(), precision), optimize(changed, Compute(CPU, precision))):
        memory = model.encode(torch.tensor([[4, 3, 0], [4, 4, 3], [4, 3, 0]]))
        if steps:
            for source in memory.layers:
                source.keys_BHSA[0, :, 2], source.values_BHSA[0, :, 2] = 1e9, -1e9
        steps.append(model.step(torch.tensor([4, 5, 1]), memory, model.start(memory)).logits_NV)
    assert steps[1][1].isnan().all()
    assert torch.equal(steps[0][[0, 2]], steps[1][[0, 2]])


@needs_kernels
@torch.no_grad()
def test_no_rows_are_none_and_steps_of_other_rows_are_refused() -> None:
    model = fast(transformer(), "float32")
    memory = model.encode(SOURCE_BS)
    state = model.step(torch.tensor([4, 5, 1]), memory, model.start(memory)).state
    with pytest.raises(AssertionError):
        model.step(torch.tensor([4, 5, 1]), memory, replace(state, backpointer_NT=state.backpointer_NT[:, :0]))
    nothing = torch.tensor([], dtype=torch.int64)
    none = model.step(nothing, memory.select(nothing), state.select(nothing))
    assert none.logits_NV.shape[0] == 0
    with pytest.raises(AssertionError):
        model.step(torch.tensor([4, 5]), memory, state.select(torch.tensor([0, 1])))


@needs_kernels
@torch.no_grad()
def test_a_state_may_be_stepped_from_twice() -> None:
    model = fast(transformer(), "float32")
    memory = model.encode(SOURCE_BS)
    state = model.step(torch.tensor([4, 5, 1]), memory, model.start(memory)).state
    one = model.step(torch.tensor([4, 4, 4]), memory, state)
    expected_NV = model.step(torch.tensor([1, 5, 4]), memory, one.state).logits_NV
    model.step(torch.tensor([5, 5, 5]), memory, state)
    assert torch.equal(model.step(torch.tensor([1, 5, 4]), memory, one.state).logits_NV, expected_NV)


@needs_kernels
@torch.no_grad()
def test_states_of_two_searches_are_not_joined() -> None:
    """Backpointers are rows of their own search."""
    model = fast(transformer(), "float32")
    memory = model.encode(SOURCE_BS)
    one, other = (model.step(torch.tensor([4, 5, 1]), memory, model.start(memory)).state for _ in range(2))
    assert len(BackpointerState.joined([one, one])) == 2 * len(one)
    with pytest.raises(AssertionError):
        BackpointerState.joined([one, other])


def test_gradients_reach_the_embeddings() -> None:
    model = fast(transformer(), "float32")
    embedded_BSE = model.encoder.embed(SOURCE_BS).detach().requires_grad_()
    memory = model.encode_embedded(embedded_BSE, SOURCE_BS)
    step = model.step(torch.tensor([4, 5, 1]), memory, model.start(memory))
    (gradient_BSE,) = torch.autograd.grad(step.logits_NV.logsumexp(1).sum(), embedded_BSE)
    assert gradient_BSE.abs().max() > 1e-4

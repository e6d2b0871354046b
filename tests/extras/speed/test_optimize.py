"""Models made ready for searches, against the same models as trained."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor

from nmt.core import device
from nmt.core.device import Compute, Precision
from nmt.extras.speed import native
from nmt.extras.speed.compiled import SWITCH, compiled
from nmt.extras.speed.int8 import Int8Weight
from nmt.extras.speed.optimize import lay_out, optimize, register
from nmt.extras.speed.transformer_decoder import FastTransformerDecoder
from nmt.models.seq2seq import Seq2Seq
from nmt.models.transformer.decoder import TransformerDecoder
from nmt.translator.loading import for_inference
from tests.extras.speed.test_native import needs_kernels
from tests.models.plain_decoder import SOURCES, padded
from tests.models.variants import MARIAN, PROTOTYPE, TRANSFORMER, WIRINGS, make, tree, variants

CPU = torch.device("cpu")
SOURCE_BS = padded(SOURCES)
BEAMS = 3


def transformer(source: str = "scaled_dot", tie: str = "none", **options: Any) -> dict[str, Any]:
    sides = {**TRANSFORMER, **options}
    return tree(score=source, tie=tie, encoder=sides, decoder=sides)


LARGE = {
    "previous": tree(decoder={**WIRINGS["previous"], "layers": 2}),
    "parallel": tree(decoder=WIRINGS["parallel"], score="concat"),
    "without attention": tree(score="none", decoder={"input_feeding": False}),
    "raw start, word in the query": tree(
        decoder={"size": 10, "start": "raw", "context": "every_step", "query_embedding": True}
    ),
    "embeddings to rnn": PROTOTYPE,
    "transformer": transformer(),
    "post-norm": transformer(norm="post"),
    "post-norm, swiglu": transformer(norm="post", activation="swiglu"),
    "rotary, GELU": transformer(positions="rotary", activation="gelu"),
    "learned positions, tied": transformer(size=12, heads=3, tie="all", positions="learned"),
    "as Marian": transformer(**MARIAN),
    "other scores": transformer(score="additive", source="cosine"),
}
every_kind = pytest.mark.parametrize("config", LARGE.values(), ids=LARGE)


def plain(config: dict[str, Any], precision: Precision, seed: int = 0) -> Seq2Seq[Any, Any]:
    """The model with the modules it is trained with."""
    model, dtype = make(config, seed=seed), Compute(CPU, precision).dtype
    if precision == "int8":
        lay_out(model, partial(Int8Weight.of, dtype=dtype))
    return model.requires_grad_(False).eval().to(dtype)


def fast(config: dict[str, Any], precision: Precision, seed: int = 0) -> Seq2Seq[Any, Any]:
    return optimize(make(config, seed=seed), Compute(CPU, precision))


@torch.no_grad()
def searched(
    model: Seq2Seq[Any, Any], precision: Precision, steps: int, source_BS: Tensor = SOURCE_BS
) -> tuple[Tensor, Tensor]:
    """Logits (X, V) and weights (X, H, S) of all rows of a search whose rows change places and leave."""
    generator = torch.Generator().manual_seed(7)
    with Compute(CPU, precision).autocast():
        memory = model.encode(source_BS)
        state, results = model.start(memory).repeat(BEAMS), []
        for time in range(steps):
            rows = len(memory) * BEAMS
            results.append(model.step(torch.randint(6, (rows,), generator=generator), memory, state))
            parent_BK = torch.randint(BEAMS, (len(memory), BEAMS), generator=generator)
            row_N = (parent_BK + BEAMS * torch.arange(len(memory))[:, None]).flatten()
            if time in (2, 4):  # the first sentence leaves
                memory, row_N = memory.select(torch.arange(1, len(memory))), row_N[BEAMS:]
            state = results[-1].state.select(row_N)
        return torch.cat([step.logits_NV for step in results]), torch.cat([step.weights_NHS for step in results])


def assert_same_steps(config: dict[str, Any], steps: int) -> None:
    results = (searched(way(config, "float32"), "float32", steps) for way in (fast, plain))
    for one, other in zip(*results, strict=True):
        torch.testing.assert_close(one, other, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("config", list(variants()))
def test_steps_of_a_search_are_the_same(config: dict[str, Any]) -> None:
    assert_same_steps(config, steps=6)


@every_kind
def test_steps_of_a_long_search_are_the_same(config: dict[str, Any]) -> None:
    """The search has more steps than vectors of positions are computed at once."""
    assert_same_steps(config, steps=70)


@every_kind
@pytest.mark.parametrize(
    ("precision", "dtype"), [("bfloat16", torch.bfloat16), ("int8", torch.bfloat16), ("int8", torch.float32)], ids=str
)
def test_rounding_errors_are_no_larger(
    config: dict[str, Any], precision: Precision, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    fastest: Precision = "bfloat16" if dtype == torch.bfloat16 else "float32"
    monkeypatch.setitem(device.FASTEST, "cpu", lambda: (fastest, ""))
    errors = dict.fromkeys((fast, plain), 0.0)
    for seed in range(4):
        exact_XV, _ = searched(plain(config, "float32", seed), "float32", 15)
        for way in errors:
            found_XV, _ = searched(way(config, precision, seed), precision, 15)
            assert found_XV.dtype == dtype
            errors[way] += float((found_XV - exact_XV).abs().mean())
    # those of the encoders are independent: over 60 seeds, the sums differ by a factor of 0.8 to 1.02
    assert 0.0 < errors[fast] < 1.5 * errors[plain]


@needs_kernels
@torch.no_grad()
def test_parts_are_replaced_where_kernels_support_them() -> None:
    assert isinstance(fast(transformer(), "float32").decoder, FastTransformerDecoder)
    assert isinstance(fast(LARGE["other scores"], "float32").decoder, TransformerDecoder)
    odd = transformer(feed_forward=7)  # pairs of numbers are multiplied together
    kinds = [type(fast(odd, precision).decoder) for precision in ("float32", "bfloat16")]
    assert kinds == [FastTransformerDecoder, TransformerDecoder]


@pytest.fixture
def without_kernels(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    caches = (compiled, native._kernels)
    monkeypatch.setenv(SWITCH, "off")
    for cache in caches:
        cache.cache_clear()
    yield
    monkeypatch.undo()
    for cache in caches:
        cache.cache_clear()


@pytest.mark.usefixtures("without_kernels")
@pytest.mark.parametrize("precision", ["float32", "int8"])
@every_kind
def test_without_kernels_a_model_makes_its_plain_steps(config: dict[str, Any], precision: Precision) -> None:
    model = fast(config, precision)
    assert not isinstance(model.decoder, FastTransformerDecoder)
    pairs = zip(searched(model, precision, 6), searched(plain(config, precision), precision, 6), strict=True)
    assert all(torch.equal(one, other) for one, other in pairs)


@needs_kernels
@pytest.mark.parametrize(("in_float32", "has_product"), [(False, False), (True, False), (True, True)])
def test_int8_warns_where_it_is_slower(in_float32: bool, has_product: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    warnings = list[str]()
    monkeypatch.setattr("nmt.extras.speed.optimize.IN_FLOAT32", in_float32)
    for dtype in (torch.float32, torch.bfloat16):
        monkeypatch.setattr(native.kernels_for(dtype, CPU), "has_integers", has_product)
    monkeypatch.setattr("nmt.core.log.warning", warnings.append)
    for precision in ("float32", "int8"):
        fast(transformer(), precision)
    is_slower = in_float32 and not has_product
    assert warnings == ["--precision float32 will be faster on this CPU than int8"] * is_slower


@needs_kernels
def test_loading_gives_a_fast_model_where_it_is_registered(monkeypatch: pytest.MonkeyPatch) -> None:
    compute = Compute(CPU, "float32")
    monkeypatch.setattr(for_inference, "implementation", for_inference.body)
    assert isinstance(for_inference(make(transformer()), compute).decoder, TransformerDecoder)
    register()
    assert isinstance(for_inference(make(transformer()), compute).decoder, FastTransformerDecoder)


def test_few_programs_are_kept_unless_the_user_asks_for_more(monkeypatch: pytest.MonkeyPatch) -> None:
    variable = "ONEDNN_PRIMITIVE_CACHE_CAPACITY"
    monkeypatch.setenv(variable, "7")
    register()
    assert os.environ[variable] == "7"
    monkeypatch.delenv(variable)
    register()
    assert os.environ[variable] == "64"

"""The fast layers of a Transformer encoder against the plain ones; ``test_optimize.py`` compares more kinds of them."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from nmt.core import device
from nmt.core.device import Compute, Precision
from nmt.extras.speed.transformer_encoder import FastEncoderLayers
from nmt.models.seq2seq import Seq2Seq
from tests.extras.speed.test_native import needs_kernels
from tests.extras.speed.test_optimize import CPU, fast, plain, transformer
from tests.models.plain_decoder import padded

LENGTHS = (1, 101, 37, 16, 2)
SOURCES = [[4 + position % 2 for position in range(length - 1)] + [3] for length in LENGTHS]
each_type = pytest.mark.parametrize("precision", ["float32", "bfloat16", "int8"])


@pytest.fixture(autouse=True)
def in_float32(monkeypatch: pytest.MonkeyPatch) -> None:
    """Numbers beside 8-bit integers are in float32."""
    monkeypatch.setitem(device.FASTEST, "cpu", lambda: ("float32", ""))


@torch.no_grad()
def states(model: Seq2Seq[Any, Any], precision: Precision, sources: list[list[int]]) -> list[Tensor]:
    source_BS = padded(sources)
    with Compute(CPU, precision).autocast():
        encoded = model.encoder(model.encoder.embed(source_BS), source_BS == model.pad)
    return [encoded.states_BSD[row, : len(source)].float() for row, source in enumerate(sources)]


def is_fast(model: Seq2Seq[Any, Any]) -> bool:
    return isinstance(model.encoder.layers[0], FastEncoderLayers)  # type: ignore[index, union-attr]


@needs_kernels
@each_type
@pytest.mark.parametrize(
    "options",
    [
        {"size": 2, "heads": 2},
        {"size": 14, "heads": 2, "norm": "post"},
        {"size": 130, "heads": 2, "activation": "swiglu"},
    ],
)
def test_states_are_those_of_the_plain_layers(options: dict[str, Any], precision: Precision) -> None:
    config = transformer(feed_forward=70, **options)
    model, exact = fast(config, precision), states(plain(config, "float32"), "float32", SOURCES)
    assert is_fast(model) or precision == "bfloat16"
    found = states(model, precision, SOURCES)
    if precision == "float32":
        torch.testing.assert_close(found, exact, atol=1e-4, rtol=1e-4)
        return
    expected = states(plain(config, precision), precision, SOURCES)
    errors, usual = (torch.cat([(a - b).abs() for a, b in zip(each, exact, strict=True)]) for each in (found, expected))
    assert errors.mean() < 1.2 * usual.mean() + 1e-6


@needs_kernels
@each_type
def test_neither_company_nor_threads_change_a_sentence(precision: Precision, monkeypatch: pytest.MonkeyPatch) -> None:
    model, sources = fast(transformer(size=32, heads=2), precision), SOURCES * 5
    alone = [states(model, precision, [source])[0] for source in SOURCES] * 5
    assert all(map(torch.equal, states(model, precision, sources), alone))
    monkeypatch.setattr(torch, "get_num_threads", lambda: 4)
    assert all(map(torch.equal, states(model, precision, sources), alone))
    assert torch.equal(states(model, precision, [SOURCES[1]])[0], alone[1])


@needs_kernels
@pytest.mark.parametrize("options", [{"positions": "rotary"}, {"causal": True}, {"score": "cosine"}])
def test_other_kinds_of_attention_keep_their_layers(options: dict[str, Any]) -> None:
    assert is_fast(fast(transformer(), "float32"))
    encoder = {**transformer()["encoder"], **options}
    assert not is_fast(fast({**transformer(), "encoder": encoder}, "float32"))

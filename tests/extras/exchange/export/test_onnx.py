"""ONNX graphs compute what the model does, for sizes other than those that they were made from."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from nmt.core.device import Compute
from nmt.data.vocabulary import BOS, EOS, PAD
from nmt.models.config import ModelConfig
from nmt.models.seq2seq import Seq2Seq
from nmt.search.config import SearchConfig
from nmt.search.engine import TorchEngine
from tests.extras.exchange.shared import made

onnx = pytest.importorskip("onnx", reason="ONNX is not installed")
onnxruntime = pytest.importorskip("onnxruntime", reason="ONNX Runtime is not installed")
pytest.importorskip("onnxscript", reason="ONNX Script is not installed")

from nmt.extras.exchange.export.onnx import save  # noqa: E402
from nmt.extras.exchange.export.session import OnnxSession  # noqa: E402

TOKENS = 40
TRANSFORMER = {"kind": "transformer", "layers": 1, "size": 16, "heads": 2, "feed_forward": 12}
RNN = {"kind": "rnn", "size": 12}

CASES: dict[str, dict[str, Any]] = {
    "GRU encoder, rotary decoder": {
        "encoder": {**RNN, "cell": "gru"},
        "decoder": {**TRANSFORMER, "positions": "rotary"},
    },
    "LSTM, input feeding, additive": {
        "encoder": {**RNN, "layers": 2},
        "decoder": {**RNN, "layers": 2, "residual": True},
        "attention": {"score": "additive"},
    },
    "Transformer encoder, GRU that looks through a window": {
        "encoder": TRANSFORMER,
        "decoder": {**RNN, "cell": "gru", "input_feeding": False},
        "attention": {"score": "dot", "weights": "local_p"},
    },
    "Transformer": {"encoder": {**TRANSFORMER, "layers": 2}, "decoder": {**TRANSFORMER, "layers": 2}},
    "Elman networks": {"encoder": {**RNN, "cell": "elman"}, "decoder": {**RNN, "cell": "elman"}},
    "Transformer encoder, LSTM without attention": {
        "encoder": {**TRANSFORMER, "positions": "rotary"},
        "decoder": RNN,
        "attention": {"score": "none"},
    },
    "post-norm, learned positions that end early, swiglu": {
        "encoder": {**TRANSFORMER, "layers": 2, "norm": "post", "positions": "learned", "max_positions": 5},
        "decoder": {**TRANSFORMER, "norm": "post", "positions": "learned", "max_positions": 5, "activation": "swiglu"},
    },
    "Transformer of other scores": {
        "encoder": {**TRANSFORMER, "score": "additive", "activation": "gelu"},
        "decoder": {**TRANSFORMER, "score": "cosine", "positions": "rotary"},
        "attention": {"score": "gaussian", "weights": "sparsemax"},
    },
    "Bahdanau's wiring": {
        "encoder": {**RNN, "cell": "gru", "bidirectional": False},
        "decoder": {**RNN, "cell": "gru", "query": "previous", "readout_embedding": True},
        "attention": {"score": "concat"},
    },
    "the classical decoder with attention": {
        "encoder": RNN,
        "decoder": {**RNN, "size": 24, "start": "raw", "context": "every_step", "query_embedding": True},
        "attention": {"score": "additive"},
    },
    "a context in the first step": {
        "encoder": RNN,
        "decoder": RNN,
        "attention": {"score": "none"},
        "context": "first_step",
    },
    "Transformer encoder, LSTM that looks by place": {
        "encoder": TRANSFORMER,
        "decoder": {**RNN, "layers": 2},
        "attention": {"score": {"kind": "location", "positions": 6}},
    },
    "embeddings, deep score of projected keys, argmax": {
        "encoder": {"kind": "embeddings", "positions": "learned"},
        "decoder": RNN,
        "attention": {"score": {"kind": "concat", "layers": 2}, "weights": "argmax", "key_size": 8},
    },
    "GRU, attention to its own states and between two cells": {
        "encoder": RNN,
        "decoder": {**RNN, "cell": "gru", "query": "between", "self_attention": "dot"},
        "attention": {"score": "additive"},
    },
    "LSTM decoder of two normalised cells": {
        "encoder": RNN,
        "decoder": {**RNN, "layer_norm": True, "transitions": 1},
        "attention": {"score": "dot"},
    },
    "LSTM, two heads of coverage, copies": {
        "encoder": RNN,
        "decoder": RNN,
        "attention": {"score": "coverage", "heads": 2},
        "copying": {"heads": "head2"},
    },
    "LSTM, coverage by a GRU": {
        "encoder": RNN,
        "decoder": {**RNN, "query": "previous"},
        "attention": {"score": {"kind": "coverage", "coverage": "gru", "width": 3}},
    },
    "LSTM, location-sensitive and a window that moves on": {
        "encoder": RNN,
        "decoder": RNN,
        "attention": {"score": "location_sensitive", "weights": "mocha"},
    },
    **{
        f"LSTM, {weights}": {"encoder": RNN, "decoder": RNN, "attention": {"score": "general", "weights": weights}}
        for weights in ("sparsemax", "local_m", "hard", "gumbel", "glimpse", "entmax", "monotonic", "shift")
    },
}


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], tuple[Seq2Seq[Any, Any], dict[str, Any], Path]]:
    """A model by its name, its graphs and their folder, each made once: the exporter takes seconds."""

    @cache
    def save_once(name: str) -> tuple[Seq2Seq[Any, Any], dict[str, Any], Path]:
        config = ModelConfig.model_validate({"embedding": {"size": 16}, **CASES[name]})
        model, folder = made(config, TOKENS, end=1.0), tmp_path_factory.mktemp("onnx")
        return model, save(model, folder), folder

    return save_once


def padded(lengths: tuple[int, ...]) -> torch.Tensor:
    draw = torch.Generator().manual_seed(3)
    source_BS = torch.randint(4, TOKENS, (len(lengths), max(lengths)), generator=draw)
    for row, length in enumerate(lengths):
        source_BS[row, length - 1] = EOS
        source_BS[row, length:] = PAD
    return source_BS


def run(graph: dict[str, Any], folder: Path, feeds: dict[str, Any]) -> dict[str, Any]:
    """Returns the results of a graph, by name; checks that types and shapes are the declared ones."""
    session = onnxruntime.InferenceSession(str(folder / graph["file"]), providers=["CPUExecutionProvider"])
    given = dict(zip((port["name"] for port in graph["outputs"]), session.run(None, feeds), strict=True))
    sizes: dict[str, int] = {}
    for port in graph["inputs"]:
        sizes |= {
            name: size for name, size in zip(port["shape"], feeds[port["name"]].shape, strict=True) if name != size
        }
    sizes["steps + 1"] = sizes.get("steps", -1) + 1
    for port in graph["outputs"]:
        assert given[port["name"]].dtype == port["type"]
        assert given[port["name"]].shape == tuple(sizes.get(size, size) for size in port["shape"])
    return given


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_the_graphs_compute_what_the_model_does(name: str, saved: Any) -> None:
    model, graphs, folder = saved(name)
    onnx.checker.check_model(folder / graphs["encoder"]["file"], full_check=True)
    onnx.checker.check_model(folder / graphs["step"]["file"], full_check=True)
    _compare_steps(model, graphs["encoder"], graphs["step"], folder)


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_greedy_search_finds_the_same(name: str, saved: Any) -> None:
    model, _, folder = saved(name)
    sources = [row[: length - 1] for length in (2, 3, 6, 9, 14) for row in padded((length,) * 3).tolist()]
    own = TorchEngine(model, Compute(torch.device("cpu"), "float32")).translate_ids(
        sources, SearchConfig(beam=1, max_length_ratio=1.0, repetition_margin=None)
    )
    limits = [len(source) + 10 for source in sources]
    assert OnnxSession(folder, threads=1).greedy(sources, limits) == [found.tokens for (found,) in own]
    assert len({found.tokens for (found,) in own}) > 4


def _compare_steps(model: Seq2Seq[Any, Any], encoder: dict[str, Any], step: dict[str, Any], folder: Path) -> None:
    for lengths in ((1,), (4, 9, 2, 9), (130, 11)):
        source_BS = padded(lengths)
        kept = run(encoder, folder, {"source": source_BS.numpy()})
        memory = model.encode(source_BS)
        state = model.start(memory)
        token_B = torch.full((len(lengths),), BOS)
        for _ in range(5):
            given = run(step, folder, {"token": token_B.numpy(), **kept})
            own = model.step(token_B, memory, state)
            state = own.state
            _assert_close(given["logits"], own.logits_NV)
            _assert_close(given["weights"], own.weights_NHS)
            after = dict(zip(state.names(), state.tensors(), strict=True))
            for name, value in given.items():
                if name.startswith("next."):
                    _assert_close(value, after[name.removeprefix("next.")])
            kept |= {name: given[name.replace("state.", "next.")] for name in kept if name.startswith("state.")}
            token_B = own.logits_NV.argmax(dim=1)


def _assert_close(given: Any, own: torch.Tensor) -> None:
    np.testing.assert_allclose(given, own.numpy(), rtol=1e-4, atol=1e-4)


@pytest.mark.slow
def test_what_no_step_reads_is_left_out(saved: Any) -> None:
    _, graphs, _ = saved("Transformer encoder, GRU that looks through a window")
    names = {port["name"] for port in graphs["step"]["inputs"]}
    assert names == {"token", *(port["name"] for port in graphs["encoder"]["outputs"])}
    assert "memory.attention.is_pad" in names
    assert not {"memory.is_pad", "memory.summary", "state.stack.top"} & names

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch

from nmt.attention.registry import SCORES, WEIGHTS
from nmt.models.build import build
from nmt.models.config import ModelConfig
from nmt.models.seq2seq import Seq2Seq
from nmt.nn.feed_forward import BRANCH

VOCABULARY = 6


WIRINGS = {
    "previous": {"query": "previous", "input_feeding": False},
    "feeding": {"query": "current", "input_feeding": True},
    "parallel": {"query": "current", "input_feeding": False},
}
"""The three ways attention stands to the steps: before the cell, after it and fed back, after all of them at once."""


_LAYERS: dict[str, Any] = {"kind": "transformer", "layers": 2, "size": 8, "heads": 2, "feed_forward": 6}
_SMALL: dict[str, dict[str, dict[str, Any]]] = {
    "rnn": {"encoder": {"kind": "rnn", "size": 5}, "decoder": {"kind": "rnn", "size": 7}},
    "transformer": {"encoder": _LAYERS, "decoder": _LAYERS},
    "reencoding": {"decoder": {"size": 7}},
    "glimpses": {"decoder": {"size": 7}},
    "embeddings": {"encoder": {"kind": "embeddings"}},
}

TRANSFORMER = {"kind": "transformer"}

MARIAN = {
    "norm": "post", "activation": "silu", "positions": "sinusoidal_halves", "attention_bias": True,
    "scale_embedding": False,
}  # fmt: skip
"""Options that imported models have."""

READERS: dict[str, dict[str, Any]] = {
    "reencoding": {"kind": "reencoding"},
    "reencoding, residual layers": {"kind": "reencoding", "cell": "gru", "layers": 2, "residual": True},
    "glimpses": {"kind": "glimpses"},
    "glimpses, one of one word": {"kind": "glimpses", "count": 1, "scales": 1, "cell": "gru", "input_feeding": True},
}
"""Recurrent decoders that look at the source by other means than attention."""
EMBEDDINGS = {"kind": "embeddings"}


def tree(
    *,
    score: Any = "additive",
    weights: Any = "softmax",
    key_size: int | None = None,
    heads: int = 1,
    context: Any = None,
    tie: str = "none",
    encoder: Any = None,
    decoder: Any = None,
    copying: Any = None,
) -> dict[str, Any]:
    return {
        "embedding": {"size": 8, "tie": tie},
        "encoder": {**_SMALL[(encoder or {}).get("kind", "rnn")]["encoder"], **(encoder or {})},
        "decoder": {**_SMALL[(decoder or {}).get("kind", "rnn")]["decoder"], **(decoder or {})},
        "attention": {"score": score, "weights": weights, "key_size": key_size, "heads": heads},
        "context": context,
        "copying": copying,
    }


PROTOTYPE = tree(
    encoder={**EMBEDDINGS, "positions": "learned"},
    decoder=WIRINGS["parallel"],
    score={"kind": "additive", "layers": 2},
    weights="argmax",
    key_size=3,
    tie="all",
)
"""Attention without an encoder: a key for each word, and a choice by argmax."""


def variants() -> Iterator[Any]:
    """Every option of encoder, decoder and attention at least once.

    Any two options of a cell, the number of layers, the query and input feeding occur together. Each score occurs
    with the softmax, and all weights with the additive score; ``tests/attention`` has every score with all weights.
    """
    for cell in ("elman", "gru", "lstm"):
        for layers in (1, 2):
            for query in ("previous", "current"):
                feeding = (layers == 1) == (query == "current")
                decoder = {"cell": cell, "layers": layers, "query": query, "input_feeding": feeding}
                encoder = {"cell": cell, "layers": layers}
                yield pytest.param(
                    tree(encoder=encoder, decoder=decoder), id=f"{cell}-{layers}-{query}-{'feeding' * feeding}"
                )
    for row, score in enumerate(SCORES):
        for column, weights in enumerate(WEIGHTS):
            for place, (name, wiring) in enumerate(WIRINGS.items()):
                simple = {score, weights} & {"additive", "softmax"}
                if len(simple) == 2 or (simple and place == (row + column) % 3):
                    yield pytest.param(
                        tree(score=score, weights=weights, decoder=wiring), id=f"{score}-{weights}-{name}"
                    )
    marginal = {"kind": "hard", "training": "marginal"}
    for score in ("general", "location"):
        yield pytest.param(
            tree(score=score, weights=marginal, decoder=WIRINGS["parallel"]), id=f"{score}-hard marginal"
        )
    for context in ("every_step", "first_step", "initial_state", "projected_initial_state"):
        for feeding, layers, vector in ((True, 1, "last"), (False, 2, "mean")):
            yield pytest.param(
                tree(
                    score="none",
                    context={"kind": context, "summary": vector},
                    decoder={"size": 10, "input_feeding": feeding, "layers": layers},
                ),
                id=f"none-{context}-{vector}-{'feeding' * feeding}",
            )
    yield from starts_and_queries()
    yield pytest.param(tree(score={"kind": "location", "positions": 3}), id="location, three positions")
    for weights in ("local_m", "local_p"):
        for score in ("location", "dot"):
            yield pytest.param(
                # all steps at once, so that positions are not counted by the same code as step by step
                tree(score=score, weights={"kind": weights, "width": 1}, decoder=WIRINGS["parallel"]),
                id=f"{score}-{weights}, a narrow window",
            )
    yield pytest.param(tree(score={"kind": "gaussian", "learned": False, "bandwidth": 2.0}), id="fixed bandwidth")
    yield pytest.param(tree(weights={"kind": "glimpse", "scales": 1}), id="one glimpse")
    residual = {"layers": 3, "residual": True}
    for name, wiring in WIRINGS.items():
        yield pytest.param(tree(encoder=residual, decoder={**residual, **wiring}), id=f"residual-{name}")
    yield pytest.param(
        tree(encoder={**residual, "bidirectional": False, "cell": "gru"}, decoder={**residual, "cell": "gru"}),
        id="residual-gru-one direction",
    )
    for (name, wiring), cell in zip(WIRINGS.items(), ("gru", "elman", "lstm"), strict=True):
        deep = {"cell": cell, "layer_norm": name != "parallel", "transitions": int(name != "feeding"), "layers": 2}
        yield pytest.param(tree(encoder=deep, decoder={**deep, **wiring}), id=f"normalised or deep {cell}, {name}")
    deep = {"cell": "gru", "layer_norm": True, "transitions": 2}
    yield pytest.param(tree(encoder=deep, decoder={**deep, "query": "between"}), id="deep transitions, between")
    yield pytest.param(tree(encoder={"bidirectional": False, "layers": 2}), id="one direction")
    yield pytest.param(tree(tie="output"), id="tied output")
    yield pytest.param(tree(tie="all"), id="tied all")
    yield pytest.param(tree(decoder={"readout_embedding": True, "input_feeding": False}), id="readout embedding")
    yield pytest.param(tree(decoder={"readout_embedding": True, "readout_size": 3}), id="readout size")
    yield pytest.param(
        tree(decoder={"query": "previous", "readout_context": False, "start_layers": 3, "layers": 2}),
        id="no context in the readout, three layers to the start",
    )
    for layered in ("additive", "concat"):
        yield pytest.param(
            tree(score={"kind": layered, "layers": 3, "size": 4}, decoder=WIRINGS["parallel"]),
            id=f"{layered} of layers",
        )
    yield pytest.param(
        tree(score={"kind": "additive", "normed": True}, decoder=WIRINGS["parallel"]), id="normed additive"
    )
    for (name, wiring), (score, weights) in zip(
        WIRINGS.items(), (("additive", "softmax"), ("coverage", "shift"), ("scaled_dot", "sparsemax")), strict=True
    ):
        config = tree(score=score, weights=weights, heads=2, decoder=wiring)
        yield pytest.param(config, id=f"two heads of {score} {weights}, {name}")
    for score, (name, wiring) in zip(("additive", "scaled_dot", "gaussian"), WIRINGS.items(), strict=True):
        yield pytest.param(tree(decoder={**wiring, "self_attention": score}), id=f"self-attention by {score}, {name}")
    yield pytest.param(
        tree(score="none", decoder={"self_attention": "dot", "input_feeding": False}), id="self-attention alone"
    )
    for cell, layers in (("gru", 1), ("lstm", 2)):
        decoder = {"cell": cell, "layers": layers, "query": "between", "input_feeding": layers == 2}
        yield pytest.param(tree(decoder=decoder), id=f"attention between two cells, {cell}")
    for score, residual in (("additive", False), ("coverage", True)):
        decoder = {"query": "bottom", "layers": 3 - (score == "additive"), "residual": residual, "cell": "gru"}
        yield pytest.param(tree(score=score, decoder=decoder), id=f"attention from the bottom layer by {score}")
    for name, wiring in WIRINGS.items():
        gated = {**wiring, "context_gate": True, "readout_embedding": name == "parallel"}
        yield pytest.param(tree(decoder=gated), id=f"context gate, {name}")
    for coverage, wiring in (("gru", "previous"), ("fertility", "feeding"), ("gru", "parallel")):
        score = {"kind": "coverage", "coverage": coverage, "width": 3}
        yield pytest.param(tree(score=score, decoder=WIRINGS[wiring]), id=f"coverage by {coverage}, {wiring}")
    yield pytest.param(tree(score="location_sensitive", weights="mocha"), id="score and weights with a state")
    for name, wiring in WIRINGS.items():
        yield pytest.param(tree(decoder=wiring, tie="all", copying="pointer"), id=f"copies, {name}")
    transformer = tree(encoder=TRANSFORMER, decoder=TRANSFORMER, score="scaled_dot", copying={"heads": "*.head2"})
    yield pytest.param(transformer, id="copies by a Transformer")
    for name, reader in READERS.items():
        yield pytest.param(tree(score="none", decoder=reader), id=name)
    yield from embeddings()
    yield from transformers()


def embeddings() -> Iterator[Any]:
    """An encoder of embeddings, with each decoder, and keys apart from values."""
    for positions, wiring in zip(("none", "sinusoidal", "learned"), WIRINGS.values(), strict=True):
        encoder = {**EMBEDDINGS, "positions": positions}
        yield pytest.param(tree(encoder=encoder, decoder=wiring, key_size=3), id=f"embeddings, {positions} positions")
    yield pytest.param(tree(encoder=EMBEDDINGS, decoder=TRANSFORMER, tie="all"), id="embeddings to transformer, tied")
    yield pytest.param(
        tree(encoder=EMBEDDINGS, score="none", decoder={"size": 8, "start": "raw"}), id="embeddings without attention"
    )
    yield pytest.param(PROTOTYPE, id="embeddings, projected keys, deep score, argmax")


def starts_and_queries() -> Iterator[Any]:
    """Starts and contexts that no shorthand names, with attention and without, and the last word in the query."""
    for score, decoder in (
        ("additive", {"start": "raw", "context": "every_step", "query_embedding": True, **WIRINGS["previous"]}),
        ("dot", {"start": "zeros", "context": {"enters": "first_step", "placeholder": "zeros"}, "summary": "mean"}),
        ("general", {"start": "raw", "context": "first_step", "query_embedding": True, **WIRINGS["parallel"]}),
        ("gaussian", {"start": "zeros", "query_embedding": True, "layers": 2, **WIRINGS["feeding"]}),
        ("none", {"start": "raw", "context": "every_step", "layers": 2, "input_feeding": False}),
        ("none", {"context": {"enters": "first_step", "placeholder": "zeros"}}),
    ):
        name = ", ".join([score, *(f"{key} {value}" for key, value in decoder.items())])
        yield pytest.param(tree(score=score, decoder={"size": 10, **decoder}), id=name)


def kinds() -> Iterator[Any]:
    """Each wiring and weighting once, ways without attention, and Transformers: for what depends on no score."""
    for name, wiring in WIRINGS.items():
        yield pytest.param(tree(decoder=wiring), id=name)
    for weights in WEIGHTS:
        yield pytest.param(tree(weights=weights), id=weights)
    for context in ("every_step", "initial_state"):
        yield pytest.param(tree(score="none", context=context, decoder={"size": 10}), id=context)
    classical = {"size": 10, "start": "raw", "context": "every_step", "query_embedding": True}
    yield pytest.param(tree(decoder=classical), id="raw start, context and word in the query")
    yield pytest.param(tree(encoder=TRANSFORMER, decoder=TRANSFORMER, score="scaled_dot"), id="transformer")
    for kind in ("reencoding", "glimpses"):
        yield pytest.param(tree(score="none", decoder=READERS[kind]), id=kind)
    yield pytest.param(tree(encoder=TRANSFORMER), id="transformer to rnn")
    yield pytest.param(
        tree(decoder={**TRANSFORMER, "positions": "rotary"}, score="scaled_dot"), id="rnn to transformer"
    )
    yield pytest.param(PROTOTYPE, id="embeddings to rnn")


def transformers() -> Iterator[Any]:
    """Every option of a Transformer at least once, with either side recurrent too."""

    def both(name: str, score: Any = "scaled_dot", weights: Any = "softmax", tie: str = "none", **options: Any) -> Any:
        sides = {**TRANSFORMER, **options}
        return pytest.param(tree(score=score, weights=weights, tie=tie, encoder=sides, decoder=sides), id=name)

    for norm in ("pre", "post"):
        for positions in ("sinusoidal", "learned", "rotary"):
            yield both(f"transformer-{norm}-{positions}", norm=norm, positions=positions)
    for activation in ("gelu", "swiglu"):
        yield both(f"transformer-{activation}", activation=activation)
    yield both("transformer-marian", **MARIAN)
    yield both("transformer-few positions", positions="learned", max_positions=3)
    yield both("transformer-one head, one layer", heads=1, layers=1)
    yield both("transformer-tied, narrow embeddings", tie="all", size=12, heads=3)
    yield both("transformer-tied output", tie="output")
    causal = {**TRANSFORMER, "causal": True}
    yield pytest.param(tree(score="scaled_dot", encoder=causal, decoder=TRANSFORMER), id="transformer-causal encoder")
    yield pytest.param(tree(encoder={**causal, "score": "dot"}, decoder={}), id="causal encoder to rnn")
    yield both("transformer-temperature", weights={"kind": "softmax", "temperature": 0.5})
    for score in [name for name, each in SCORES.items() if not each.is_stateful]:
        sides = {**TRANSFORMER, "score": score}
        yield pytest.param(tree(score="dot", encoder=sides, decoder=sides), id=f"transformer-self {score}")
        yield both(f"transformer-source {score}", score=score)
    for weights in [name for name, each in WEIGHTS.items() if not each.is_stateful]:
        yield both(f"transformer-{weights}", weights=weights)
    yield pytest.param(tree(encoder=TRANSFORMER), id="transformer to rnn")
    yield pytest.param(tree(encoder=TRANSFORMER, decoder=WIRINGS["parallel"]), id="transformer to parallel rnn")
    yield pytest.param(
        tree(encoder=TRANSFORMER, score="none", context="every_step", decoder={"input_feeding": False}),
        id="transformer to rnn without attention",
    )
    yield pytest.param(tree(decoder=TRANSFORMER, score="scaled_dot"), id="rnn to transformer")


def scaled(name: str, scale: float) -> float:
    """The factor of a parameter that makes residual branches as strong as the rest."""
    return scale / BRANCH if name.endswith(("fall.weight", "out_weight_QQ")) else scale


def make(
    config: dict[str, Any], *, seed: int = 0, tokens: int = VOCABULARY, scale: float | None = None
) -> Seq2Seq[Any, Any]:
    """A model with weights scaled up: tiny random ones agree on everything."""
    if scale is None:
        scale = 1.5 if "transformer" in (config["encoder"]["kind"], config["decoder"]["kind"]) else 2.5
    torch.default_generator.manual_seed(seed)  # of the CPU alone, which is a hundred times faster
    model = build(ModelConfig.model_validate(config), source_tokens=tokens, target_tokens=tokens, pad=0, bos=2)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.mul_(scaled(name, scale))
            if parameter.dim() == 1:
                parameter.add_(torch.randn_like(parameter) * 0.3)
    return model.eval()

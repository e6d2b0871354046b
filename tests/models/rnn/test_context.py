"""The start of a recurrent decoder and the vector of the sentence among its inputs, against a plain loop."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import torch

from nmt.models.config import ModelConfig
from nmt.models.rnn.decoder import RNNDecoder
from nmt.models.seq2seq import Seq2Seq
from tests.models.plain_decoder import SOURCES, TARGETS, assert_decodes_as_plain_loop, padded
from tests.models.variants import make, tree

KINDS = ("every_step", "first_step", "initial_state", "projected_initial_state")
STARTS = ("zeros", "raw", "projected")
CONTEXTS: dict[str, Any] = {
    "nothing": "nothing",
    "every_step": "every_step",
    "first_step": "first_step",
    "first_step, then zeros": {"enters": "first_step", "placeholder": "zeros"},
}
SETTINGS: tuple[dict[str, Any], ...] = (
    {"cell": "lstm", "layers": 1, "summary": "last", "input_feeding": True, "readout_embedding": True},
    {"cell": "gru", "layers": 3, "summary": "mean", "input_feeding": False},
    {"cell": "elman", "layers": 2, "summary": "last", "input_feeding": False},
)


def shorthand(kind: str, **decoder: Any) -> dict[str, Any]:
    """The decoder's states are as wide as the encoder's."""
    return tree(score="none", context={"kind": kind}, decoder={"size": 10, **decoder})


def combinations() -> list[Any]:
    """Every start with every context, with attention by each query and without."""
    return [
        pytest.param(
            tree(score=score, decoder={"size": 10, "start": start, "context": CONTEXTS[context], **wiring}),
            id=f"{score}{''.join(wiring.values())}-{start}-{context}",
        )
        for start, context in itertools.product(STARTS, CONTEXTS)
        for score, wiring in (("none", {}), ("additive", {"query": "current"}), ("additive", {"query": "previous"}))
        if (score, start, context) != ("none", "zeros", "nothing")
    ]


@pytest.mark.parametrize("settings", SETTINGS, ids=lambda settings: settings["cell"])
@pytest.mark.parametrize("config", combinations())
def test_every_combination_equals_a_plain_loop(config: dict[str, Any], settings: dict[str, Any]) -> None:
    exact = {"atol": 1e-7, "rtol": 1e-7} if config["attention"]["score"] == "none" else {}
    assert_decodes_as_plain_loop({**config, "decoder": {**config["decoder"], **settings}}, **exact)


@torch.no_grad()
@pytest.mark.parametrize("kind", KINDS)
def test_the_sentence_is_heard(kind: str) -> None:
    """At the first step and, through the state at least, at the last."""
    model = make(shorthand(kind))
    target_BT = torch.tensor([[4, 5, 4, 5, 3]])
    one, other = (
        model.teacher_forced(target_BT, model.encode(torch.tensor([source]))).readout_BTR[0]
        for source in ([4, 5, 3], [5, 4, 3])
    )
    assert (one[0] - other[0]).abs().max() > 1e-2
    assert (one[-1] - other[-1]).abs().max() > 1e-4


@torch.no_grad()
def test_a_placeholder_stands_for_the_sentence_after_the_first_step() -> None:
    """It has no say in the first step, and the sentence's vector none in the inputs of the later ones."""
    model = make(shorthand("first_step", input_feeding=False))
    decoder = model.decoder
    assert isinstance(decoder, RNNDecoder)
    source_BS, target_BT = padded(SOURCES), padded(TARGETS)
    before = model.teacher_forced(target_BT, model.encode(source_BS)).readout_BTR
    decoder.handover.get_parameter("placeholder_D").add_(1.0)
    after = model.teacher_forced(target_BT, model.encode(source_BS)).readout_BTR
    assert torch.equal(before[:, 0], after[:, 0])
    assert (before[:, 1] - after[:, 1]).abs().max() > 1e-2


@pytest.mark.parametrize("score", ["none", "dot"])
def test_the_gradient_passes_a_raw_start_to_the_encoder(score: str) -> None:
    """The gradient passes only by the start: attention and all inputs of the cell are cut off from the encoder's
    states."""
    model = make(tree(score=score, decoder={"size": 10, "start": "raw", "layers": 2}))
    memory = model.encode(padded(SOURCES))
    hidden = model.start(memory).stack.hidden
    assert all(torch.equal(each, memory.summary_BD) for each in hidden)
    sum(each.sum() for each in hidden).backward()  # type: ignore[union-attr]
    for name, parameter in model.encoder.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().sum() > 0, name


def shapes(model: Seq2Seq[Any, Any]) -> dict[str, tuple[int, ...]]:
    return {name: tuple(parameter.shape) for name, parameter in model.named_parameters()}


@pytest.mark.parametrize("layers", [1, 3])
def test_what_each_way_learns(layers: int) -> None:
    """The width of the cell's input, and the parameters that come with it under the names of old checkpoints; each
    layer has its own projection."""
    names = {kind: shapes(make(shorthand(kind, layers=layers))) for kind in KINDS}
    width = {kind: shapes["decoder.stack.rnns.0.weight_ih_l0"][1] for kind, shapes in names.items()}
    assert width["every_step"] == width["first_step"] == width["initial_state"] + 10
    assert width["projected_initial_state"] == width["initial_state"]
    own = {
        kind: {name: shape for name, shape in shapes.items() if "handover" in name} for kind, shapes in names.items()
    }
    assert own["every_step"] == own["initial_state"] == {}
    assert own["first_step"] == {"decoder.handover.placeholder_D": (10,)}
    assert own["projected_initial_state"] == {
        f"decoder.handover.layers.{layer}.{name}": shape
        for layer in range(layers)
        for name, shape in (("weight", (10, 10)), ("bias", (10,)))
    }
    assert not [name for shapes in names.values() for name in shapes if "attention" in name]
    both = shapes(make(tree(decoder={"size": 10, "context": "first_step", "layers": layers})))
    assert {name for name in both if "handover" in name} == own["projected_initial_state"].keys() | own["first_step"]


def test_a_projection_is_the_start_by_default() -> None:
    for score in ("none", "additive"):
        decoder = ModelConfig.model_validate(tree(score=score)).decoder
        assert (decoder.start, decoder.context.enters, decoder.summary) == ("projected", "nothing", "last")
        assert "decoder.handover.layers.0.weight" in shapes(make(tree(score=score)))


@torch.no_grad()
def test_a_summary_is_the_last_state_or_the_mean_of_all_but_padding() -> None:
    for vector, expected in (
        ("last", lambda states_SD, final_D: final_D),
        ("mean", lambda states_SD, _: states_SD.mean(0)),
    ):
        model = make(tree(decoder={"summary": vector}))
        encoded = model.encoder(model.encoder.embed(padded(SOURCES)), padded(SOURCES) == 0)
        summary_BD = model.encode(padded(SOURCES)).summary_BD
        for row, source in enumerate(SOURCES):
            one_D = expected(encoded.states_BSD[row, : len(source)], encoded.final_BD[row])
            torch.testing.assert_close(summary_BD[row], one_D)

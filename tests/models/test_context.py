"""Decoders without attention: the four ways to hand on the sentence's vector, against a plain loop."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import torch

from nmt.models.config import ModelConfig
from nmt.models.rnn.config import ContextConfig
from nmt.models.rnn.context import summary
from nmt.models.rnn.decoder import RNNDecoder
from tests.models.plain_decoder import SOURCES, TARGETS, decode, padded
from tests.models.variants import make, tree

KINDS = ("every_step", "first_step", "initial_state", "projected_initial_state")


def config(kind: str, vector: str = "last", **decoder: Any) -> dict[str, Any]:
    """The decoder's states are as wide as the encoder's."""
    return tree(score="none", context={"kind": kind, "summary": vector}, decoder={"size": 10, **decoder})


@torch.no_grad()
@pytest.mark.parametrize("vector", ["last", "mean"])
@pytest.mark.parametrize("feeding", [True, False], ids=["feeding", ""])
@pytest.mark.parametrize(("cell", "layers"), list(itertools.product(("elman", "gru", "lstm"), (1, 3))))
@pytest.mark.parametrize("kind", KINDS)
def test_every_way_equals_a_plain_loop(kind: str, cell: str, layers: int, feeding: bool, vector: str) -> None:
    """In a batch of sentences of different lengths; weights have no heads."""
    decoder = {"cell": cell, "layers": layers, "input_feeding": feeding, "readout_embedding": layers == 1}
    model = make(config(kind, vector, **decoder), scale=1.5).double()
    source_BS, target_BT = padded(SOURCES), padded(TARGETS)
    decoded = model.teacher_forced(target_BT, model.encode(source_BS))
    assert decoded.weights_BHTS.shape == (3, 0, *(target_BT.shape[1], source_BS.shape[1]))
    assert decoded.sampled == ()
    assert decoded.marginal is None
    for row, (source, target) in enumerate(zip(SOURCES, TARGETS, strict=True)):
        expected = decode(model, source, target)
        torch.testing.assert_close(decoded.readout_BTR[row, : len(target)], expected.readout_TR)
        assert expected.weights_HTS == []


@torch.no_grad()
@pytest.mark.parametrize("kind", KINDS)
def test_the_sentence_is_heard(kind: str) -> None:
    """At the first step and, through the state at least, at the last."""
    model = make(config(kind))
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
    model = make(config("first_step", input_feeding=False))
    decoder = model.decoder
    assert isinstance(decoder, RNNDecoder)
    source_BS, target_BT = padded(SOURCES), padded(TARGETS)
    before = model.teacher_forced(target_BT, model.encode(source_BS)).readout_BTR
    decoder.handover.get_parameter("placeholder_D").add_(1.0)
    after = model.teacher_forced(target_BT, model.encode(source_BS)).readout_BTR
    assert torch.equal(before[:, 0], after[:, 0])
    assert (before[:, 1] - after[:, 1]).abs().max() > 1e-2


@pytest.mark.parametrize("layers", [1, 3])
def test_what_each_way_learns(layers: int) -> None:
    """The width of the cell's input, and the parameters that come with it; each layer has its own projection."""
    names = {kind: {name: tuple(each.shape) for name, each in make(config(kind, layers=layers)).named_parameters()}
             for kind in KINDS}  # fmt: skip
    width = {kind: shapes["decoder.stack.rnns.0.weight_ih_l0"][1] for kind, shapes in names.items()}
    assert width["every_step"] == width["first_step"] == width["initial_state"] + 10
    assert width["projected_initial_state"] == width["initial_state"]
    own = {
        kind: {name: shape for name, shape in shapes.items() if "handover" in name} for kind, shapes in names.items()
    }
    assert own["every_step"] == own["initial_state"] == {}
    assert own["first_step"] == {"decoder.handover.placeholder_D": (10,)}
    assert set(own["projected_initial_state"].values()) == {(10, 10), (10,)}
    assert len(own["projected_initial_state"]) == 2 * layers
    assert not [name for shapes in names.values() for name in shapes if "attention" in name]


def test_a_projection_is_the_way_by_default() -> None:
    """With attention too, whose first state is made so."""
    assert ContextConfig() == ContextConfig(kind="projected_initial_state", summary="last")
    no_attention = ModelConfig.model_validate(tree(score="none"))
    assert no_attention.context is None
    names = {name for name, _ in make(tree(score="none")).named_parameters()}
    assert "decoder.handover.layers.0.weight" in names


def test_a_summary_is_the_last_state_or_the_mean_of_all_but_padding() -> None:
    states_BSD = torch.arange(24.0).view(2, 4, 3)
    states_BSD[1, 2:] = torch.nan
    final_BD = torch.randn(2, 3)
    is_pad_BS = torch.tensor([[False] * 4, [False, False, True, True]])
    assert summary(ContextConfig(summary="last"), states_BSD, final_BD, is_pad_BS) is final_BD
    mean = summary(ContextConfig(summary="mean"), states_BSD, final_BD, is_pad_BS)
    for row, length in ((0, 4), (1, 2)):
        assert mean[row].tolist() == [sum(states_BSD[row, :length, d].tolist()) / length for d in range(3)]

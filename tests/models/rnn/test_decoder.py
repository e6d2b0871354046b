"""The recurrent decoder with attention, in all its wirings, against a plain loop."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch

from nmt.attention.registry import SCORES
from nmt.config.structure import parse_document
from nmt.models.rnn.decoder import RNNDecoder
from tests.attention.oracles import WEIGHTINGS
from tests.models.plain_decoder import SOURCES, assert_decodes_as_plain_loop, padded
from tests.models.variants import WIRINGS, make, tree

BOTH = {"query": "previous", "input_feeding": True}
EVERY_WIRING = {
    **WIRINGS,
    "previous and feeding": BOTH,
    "between": {"query": "between", "input_feeding": False},
    "between and feeding": {"query": "between", "input_feeding": True},
}


every_wiring = pytest.mark.parametrize("wiring", EVERY_WIRING.values(), ids=EVERY_WIRING)


@every_wiring
@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("cell", ["elman", "gru", "lstm"])
def test_every_cell_in_every_wiring(cell: str, layers: int, wiring: dict[str, Any]) -> None:
    assert_decodes_as_plain_loop(tree(decoder={"cell": cell, "layers": layers, **wiring}))


@pytest.mark.parametrize("wiring", [*WIRINGS.values(), BOTH], ids=[*WIRINGS, "previous and feeding"])
@pytest.mark.parametrize("cell", ["elman", "gru", "lstm"])
def test_residual_layers(cell: str, wiring: dict[str, Any]) -> None:
    """Attention asks, and the readout reads, with what the top layer gives out."""
    residual = {"layers": 3, "residual": True, "cell": cell}
    assert_decodes_as_plain_loop(tree(encoder=residual, decoder={**residual, **wiring}))


def combinations() -> Iterator[Any]:
    for text in WEIGHTINGS:
        weights = parse_document(f"weights: {text}", "test").tree["weights"]
        for name, wiring in EVERY_WIRING.items():
            if "marginal" not in text or name == "parallel":  # the exact sum has one wiring
                yield pytest.param(tree(score="general", weights=weights, decoder=wiring), id=f"{text}-{name}")


@pytest.mark.parametrize("config", list(combinations()))
def test_every_weighting_in_every_wiring(config: dict[str, Any]) -> None:
    """Their positions are the decoder's steps."""
    assert_decodes_as_plain_loop(config)


@every_wiring
def test_a_readout_that_sees_the_word(wiring: dict[str, Any]) -> None:
    assert_decodes_as_plain_loop(tree(decoder={"readout_embedding": True, "readout_size": 4, **wiring}))


@every_wiring
@pytest.mark.parametrize(
    ("score", "weights"), [("additive", "softmax"), ("dot", "local_p"), ("coverage", "softmax"), ("general", "shift")]
)
def test_several_heads(score: str, weights: str, wiring: dict[str, Any]) -> None:
    assert_decodes_as_plain_loop(tree(score=score, weights=weights, heads=5, decoder=wiring))


@every_wiring
@pytest.mark.parametrize("score", ["dot", "additive", "location"])
def test_attention_to_its_own_states(score: str, wiring: dict[str, Any]) -> None:
    assert_decodes_as_plain_loop(tree(decoder={**wiring, "self_attention": score, "readout_embedding": True}))


@pytest.mark.parametrize("options", [{}, {"residual": True, "layers": 3}, {"query_embedding": True}], ids=str)
@pytest.mark.parametrize("cell", ["elman", "gru", "lstm"])
def test_attention_from_the_bottom_layer(cell: str, options: dict[str, Any]) -> None:
    assert_decodes_as_plain_loop(tree(decoder={"query": "bottom", "layers": 2, "cell": cell, **options}))


@pytest.mark.parametrize("wiring", EVERY_WIRING.values(), ids=EVERY_WIRING)
@pytest.mark.parametrize("options", [{}, {"readout_embedding": True, "self_attention": "dot"}], ids=["", "all parts"])
def test_a_gate_of_the_context(options: dict[str, Any], wiring: dict[str, Any]) -> None:
    assert_decodes_as_plain_loop(tree(decoder={**wiring, **options, "context_gate": True}))


@pytest.mark.parametrize("layers", [1, 2])
def test_a_network_of_several_layers_between_encoder_and_decoder(layers: int) -> None:
    assert_decodes_as_plain_loop(tree(decoder={"layers": layers, "start_layers": 3}))


@pytest.mark.parametrize("feeding", [True, False], ids=["feeding", ""])
def test_a_readout_that_does_not_see_the_context(feeding: bool) -> None:
    assert_decodes_as_plain_loop(
        tree(decoder={"query": "previous", "readout_context": False, "input_feeding": feeding})
    )


@every_wiring
@pytest.mark.parametrize("score", SCORES)
def test_a_query_that_holds_the_word(score: str, wiring: dict[str, Any]) -> None:
    """The scores are those that project the key to the query's width and those that project both."""
    assert_decodes_as_plain_loop(tree(score=score, decoder={"query_embedding": True, "layers": 2, **wiring}))


@torch.no_grad()
def test_positions_are_counted_from_zero_for_each_row() -> None:
    """A beam's rows may stand at different steps only if each carries its own count."""
    model = make(tree(weights={"kind": "local_m", "width": 1}))
    decoder = model.decoder
    assert isinstance(decoder, RNNDecoder)
    memory = model.encode(padded(SOURCES))
    state = model.start(memory)
    assert state.position_N.tolist() == [0, 0, 0]
    for step in range(3):
        stepped = model.step(torch.tensor([4, 5, 4]), memory, state)
        inside = [abs(place - step) <= 1 for place in range(5)]
        assert (stepped.weights_NHS[0, 0] > 0).tolist() == inside
        state = stepped.state
        assert state.position_N.tolist() == [step + 1] * 3

"""Models from their configuration."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest

from nmt.models.build import build
from nmt.models.config import ModelConfig
from tests.models.variants import make, tree

ENCODERS = {"rnn": "RNNEncoder", "transformer": "TransformerEncoder", "embeddings": "EmbeddingsEncoder"}
DECODERS = {
    "rnn": "RNNDecoder", "transformer": "TransformerDecoder", "reencoding": "RNNDecoder", "glimpses": "GlimpseDecoder"
}  # fmt: skip
CONTEXT_SOURCES = {"reencoding": "SourceReader", "glimpses": "GlimpseSensor"}


@pytest.mark.parametrize(("encoder", "decoder"), list(itertools.product(ENCODERS, DECODERS)))
def test_any_encoder_goes_with_any_decoder(encoder: str, decoder: str) -> None:
    config: dict[str, Any] = tree(encoder={"kind": encoder}, decoder={"kind": decoder}, score="none")
    if decoder in ("rnn", "transformer"):
        config["attention"]["score"] = "dot"
    made = ModelConfig.model_validate(config)
    model = build(made, source_tokens=5, target_tokens=7, pad=1, bos=3)
    assert (type(model.encoder).__name__, type(model.decoder).__name__) == (ENCODERS[encoder], DECODERS[decoder])
    assert type(getattr(model.decoder, "attention", None)).__name__ == CONTEXT_SOURCES.get(
        decoder, "Attention" if decoder == "rnn" else "NoneType"
    )
    assert model.encoder.embedding.table.padding_idx == model.decoder.embedding.table.padding_idx == 1
    assert (model.encoder.embedding.weight_VD.shape, model.output.bias_V.shape) == ((5, 8), (7,))
    assert model.decoder.head_names == made.head_names
    assert (model.encoder.size, model.decoder.readout_size) == (made.memory_size, made.readout_size)
    assert (model.pad, model.bos) == (1, 3)


def test_tying_shares_one_tensor() -> None:
    for tie in ("none", "output", "all"):
        model = make(tree(tie=tie))
        encoder, decoder, output = model.encoder.embedding, model.decoder.embedding, model.output
        assert (output.weight_VD is decoder.weight_VD) == (tie != "none")
        assert (encoder.weight_VD is decoder.weight_VD) == (tie == "all")


@pytest.mark.parametrize("frozen", [True, False])
def test_frozen_embeddings_are_those_that_are_read_from_a_file(frozen: bool) -> None:
    config = tree()
    config["embedding"]["pretrained"] = {"target": Path("target.vec"), "frozen": frozen}
    model = make(config)
    assert model.encoder.embedding.weight_VD.requires_grad
    assert model.decoder.embedding.weight_VD.requires_grad == (not frozen)

"""A model from its configuration."""

from __future__ import annotations

from typing import Any

from nmt.layers.embedding import Embedding
from nmt.layers.output import OutputLayer
from nmt.models.config import ModelConfig
from nmt.models.rnn.config import ContextConfig
from nmt.models.rnn.decoder import RNNDecoder
from nmt.models.rnn.encoder import RNNEncoder
from nmt.models.seq2seq import Seq2Seq


def build(config: ModelConfig, *, source_tokens: int, target_tokens: int, pad: int, bos: int) -> Seq2Seq[Any, Any]:
    """A freshly initialised model; draws from torch's generator. With ``tie: all`` both sides share one vocabulary."""
    width = config.embedding.size
    assert config.embedding.tie != "all" or source_tokens == target_tokens, "tie: all needs one vocabulary"
    target = Embedding(target_tokens, width, pad=pad)
    source = target if config.embedding.tie == "all" else Embedding(source_tokens, width, pad=pad)
    encoder = RNNEncoder(config.encoder, source, width=width, dropout=config.dropout)
    decoder = RNNDecoder(
        config.decoder,
        config.attention,
        config.context or ContextConfig(),
        target,
        width=width,
        memory_size=encoder.size,
        readout_size=config.readout_size,
        dropout=config.dropout,
    )
    tied = target.weight_VD if config.embedding.tie != "none" else None
    return Seq2Seq(encoder, decoder, OutputLayer(config.readout_size, target_tokens, tied=tied), pad=pad, bos=bos)

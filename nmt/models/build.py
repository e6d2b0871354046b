"""A model from its configuration."""

from __future__ import annotations

from typing import Any

from nmt.models.config import EmbeddingsEncoderConfig, ModelConfig
from nmt.models.rnn.config import RNNDecoderConfig, RNNEncoderConfig
from nmt.models.rnn.readers_config import GlimpsesConfig, ReencodingConfig
from nmt.models.seq2seq import Decoder, Encoder, Seq2Seq
from nmt.nn.embedding import Embedding
from nmt.nn.output import OutputLayer


def build(config: ModelConfig, *, source_tokens: int, target_tokens: int, pad: int, bos: int) -> Seq2Seq[Any, Any]:
    """Builds a freshly initialised model, with draws from torch's generator. With ``tie: all``, or copies, both sides
    share one vocabulary."""
    width = config.embedding.size
    needs_one_vocabulary = config.embedding.tie == "all" or config.copying is not None
    assert not needs_one_vocabulary or source_tokens == target_tokens, "tie: all and copying need one vocabulary"
    target = Embedding(target_tokens, width, pad=pad)
    source = target if config.embedding.tie == "all" else Embedding(source_tokens, width, pad=pad)
    pretrained = config.embedding.pretrained
    if pretrained is not None and pretrained.frozen:
        for embedding, path in ((source, pretrained.source), (target, pretrained.target)):
            if path is not None:
                embedding.weight_VD.requires_grad_(False)
    encoder = _encoder(config, source)
    decoder = _decoder(config, target, encoder.size)
    tied = target.weight_VD if config.embedding.tie != "none" else None
    output = OutputLayer(config.readout_size, target_tokens, tied=tied)
    if config.copying is not None:
        from nmt.models.pointer import PointerGenerator

        return PointerGenerator(encoder, decoder, output, heads=config.copying_heads, pad=pad, bos=bos)
    return Seq2Seq(encoder, decoder, output, pad=pad, bos=bos)


def _encoder(config: ModelConfig, embedding: Embedding) -> Encoder:
    width, dropout = config.embedding.size, config.dropout
    if isinstance(config.encoder, RNNEncoderConfig):
        from nmt.models.rnn.encoder import RNNEncoder

        return RNNEncoder(config.encoder, embedding, width=width, dropout=dropout)
    if isinstance(config.encoder, EmbeddingsEncoderConfig):
        from nmt.models.embeddings_encoder import EmbeddingsEncoder

        return EmbeddingsEncoder(config.encoder, embedding, width=width, dropout=dropout)
    from nmt.models.transformer.encoder import TransformerEncoder

    return TransformerEncoder(config.encoder, embedding, width=width, dropout=dropout)


def _decoder(config: ModelConfig, embedding: Embedding, memory_size: int) -> Decoder[Any, Any]:
    shared: dict[str, Any] = {
        "width": config.embedding.size, "memory_size": memory_size,
        "readout_size": config.readout_size, "dropout": config.dropout,
    }  # fmt: skip
    if isinstance(config.decoder, RNNDecoderConfig):
        from nmt.models.rnn.decoder import RNNDecoder

        kind: type[RNNDecoder] = RNNDecoder
        context_source: Any = None
        if isinstance(config.decoder, ReencodingConfig):
            from nmt.models.rnn.reencoding import SourceReader

            context_source = SourceReader(config.decoder, memory_size, dropout=config.dropout)
        elif isinstance(config.decoder, GlimpsesConfig):
            from nmt.models.rnn.glimpses import GlimpseDecoder, GlimpseSensor

            kind, context_source = GlimpseDecoder, GlimpseSensor(config.decoder, memory_size)
        return kind(config.decoder, config.attention, embedding, context_source=context_source, **shared)
    from nmt.models.transformer.decoder import TransformerDecoder

    return TransformerDecoder(config.decoder, config.attention, embedding, **shared)

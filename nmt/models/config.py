"""The model section of a configuration."""

from __future__ import annotations

from typing import Annotated

from pydantic import model_validator

from nmt.attention.config import AttentionConfig
from nmt.core.structure import BareKind, Structure
from nmt.layers.config import DropoutConfig, EmbeddingConfig
from nmt.models.rnn.config import ContextConfig, RNNDecoderConfig, RNNEncoderConfig


class ModelConfig(Structure):
    """An encoder, a decoder, the attention between them and what they share."""

    embedding: EmbeddingConfig = EmbeddingConfig()
    encoder: RNNEncoderConfig = RNNEncoderConfig()
    decoder: RNNDecoderConfig = RNNDecoderConfig()
    attention: AttentionConfig = AttentionConfig()
    context: Annotated[ContextConfig | None, BareKind] = None
    """For ``attention.score: none`` alone, by name or with its settings; null there: ``projected_initial_state``."""
    dropout: DropoutConfig = DropoutConfig()

    @property
    def readout_size(self) -> int:
        """Width of what the output layer reads."""
        if self.decoder.readout_size is not None:
            return self.decoder.readout_size
        return self.decoder.size if self.embedding.tie == "none" else self.embedding.size

    @model_validator(mode="after")
    def _tied_widths_agree(self) -> ModelConfig:
        if self.embedding.tie != "none" and self.readout_size != self.embedding.size:
            raise ValueError(
                f"embedding.tie: {self.embedding.tie} needs decoder.readout_size ({self.readout_size}) to equal "
                f"embedding.size ({self.embedding.size}): change one, or leave readout_size out"
            )
        return self

    @model_validator(mode="after")
    def _context_stands_for_attention(self) -> ModelConfig:
        encoder, decoder, attention, context = self.encoder, self.decoder, self.attention, self.context
        if not attention.is_none:
            if context is not None:
                raise ValueError(
                    f"context: {context.kind} is for a decoder without attention; leave it out, or set "
                    f"attention.score: none instead of {attention.score.kind}"
                )
            return self
        if decoder.query == "previous":
            raise ValueError("decoder.query: previous has no attention to ask with attention.score: none; leave it out")
        if context is not None and context.kind == "initial_state" and encoder.memory_size != decoder.size:
            raise ValueError(
                f"context: initial_state needs decoder.size ({decoder.size}) to equal the width of an encoder state "
                f"({encoder.memory_size}); change a size, or use projected_initial_state"
            )
        return self

    @model_validator(mode="after")
    def _enumeration_is_exact(self) -> ModelConfig:
        attention, decoder = self.attention, self.decoder
        if attention.weights.enumerates and (decoder.query == "previous" or decoder.input_feeding):
            raise ValueError(
                f"attention.weights: {attention.weights.kind} sums over all positions of a step, so no later step may "
                "depend on it: set decoder.query: current and decoder.input_feeding: false, or training: reinforce"
            )
        return self

"""The model section of a configuration."""

from __future__ import annotations

from pydantic import model_validator

from nmt.attention.config import AttentionConfig
from nmt.core.structure import Structure
from nmt.layers.config import DropoutConfig, EmbeddingConfig
from nmt.models.rnn.config import RNNDecoderConfig, RNNEncoderConfig


class ModelConfig(Structure):
    """An encoder, a decoder, the attention between them and what they share."""

    embedding: EmbeddingConfig = EmbeddingConfig()
    encoder: RNNEncoderConfig = RNNEncoderConfig()
    decoder: RNNDecoderConfig = RNNDecoderConfig()
    attention: AttentionConfig = AttentionConfig()
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

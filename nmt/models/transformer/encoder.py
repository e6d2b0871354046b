"""The Transformer encoder (Vaswani et al. 2017, section 3.1)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from nmt.models.seq2seq import Encoded, Encoder, mean_state
from nmt.models.transformer.block import EmbeddingLayer, Residual, feed_forward, last_norm, self_attention
from nmt.models.transformer.config import TransformerEncoderConfig
from nmt.nn.config import DropoutConfig
from nmt.nn.embedding import Embedding
from nmt.nn.recompute import recomputed


class EncoderLayer(nn.Module):
    """Self-attention, then a feed-forward block, each with its residual connection."""

    def __init__(self, config: TransformerEncoderConfig, dropout: DropoutConfig) -> None:
        super().__init__()
        self.attention = self_attention(config, dropout, causal=config.causal)
        self.attention_residual = Residual(config, dropout)
        self.feed_forward = feed_forward(config, dropout)
        self.feed_forward_residual = Residual(config, dropout)

    def forward(self, x_BSD: Tensor, position_1S: Tensor, is_pad_BS: Tensor) -> Tensor:
        """Computes the next states of whole sentences."""
        attended, _ = self.attention.attend_to_self(self.attention_residual.read(x_BSD), position_1S, is_pad_BS)
        x_BSD = self.attention_residual.add(x_BSD, attended.context_NTQ)
        output_BSD = self.feed_forward(self.feed_forward_residual.read(x_BSD))
        return self.feed_forward_residual.add(x_BSD, output_BSD)


class TransformerEncoder(Encoder):
    """Layers over embeddings with positions. The vector of a sentence is the mean of its states."""

    def __init__(
        self, config: TransformerEncoderConfig, embedding: Embedding, *, width: int, dropout: DropoutConfig
    ) -> None:
        super().__init__()
        self.size = config.size
        self.embedding = embedding
        self.entrance = EmbeddingLayer(config, width=width, dropout=dropout)
        self.layers = nn.ModuleList(EncoderLayer(config, dropout) for _ in range(config.layers))
        self.norm = last_norm(config)

    def forward(self, embedded_BSE: Tensor, is_pad_BS: Tensor) -> Encoded:
        """See ``Encoder.forward``."""
        # one row of positions for all sentences, because padding is at the end
        position_1S = torch.arange(is_pad_BS.shape[1], device=is_pad_BS.device)[None]
        x_BSD = self.entrance(embedded_BSE, position_1S)
        for layer in self.layers:
            x_BSD = recomputed(layer)(x_BSD, position_1S, is_pad_BS)
        # with pre-norm the sum of all residuals is not normalised yet
        states_BSD = self.norm(x_BSD)
        return Encoded(states_BSD, mean_state(states_BSD, is_pad_BS), is_pad_BS)

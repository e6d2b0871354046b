"""Parts of Transformer layers.

Shapes as in ``seq2seq``; D width of a state, E of an embedding.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from nmt.attention.config import AttentionConfig
from nmt.attention.multihead import MultiHead
from nmt.models.transformer.config import TransformerConfig
from nmt.nn.config import DropoutConfig
from nmt.nn.dropout import Dropout
from nmt.nn.feed_forward import FeedForward
from nmt.nn.positions import absolute_positions
from nmt.nn.precision import compute_dtype


class EmbeddingLayer(nn.Module):
    """Input of the bottom layer: embeddings, by default times sqrt(E), made as wide as a state; positions; dropout."""

    def __init__(self, config: TransformerConfig, *, width: int, dropout: DropoutConfig) -> None:
        super().__init__()
        self.scale = math.sqrt(width) if config.scale_embedding else 1.0
        self.widen = nn.Linear(width, config.size) if width != config.size else None
        self.positions = absolute_positions(config.positions, config.max_positions, config.size)
        self.dropout = Dropout(dropout.embedding)

    def forward(self, embedded_BTE: Tensor, position_BT: Tensor) -> Tensor:
        """Returns the input (B, T, D) in the precision of the products; ``position_BT`` may have one row for all
        sentences."""
        # times sqrt(E), so that positions of size 1 do not outweigh embeddings of deviation 1 / sqrt(E)
        x_BTE = embedded_BTE.to(compute_dtype(embedded_BTE)) * self.scale
        x_BTD = self.positions(x_BTE if self.widen is None else self.widen(x_BTE), position_BT)
        entered_BTD: Tensor = self.dropout(x_BTD)
        return entered_BTD


class LayerNorm(nn.LayerNorm):
    """Layer normalisation (Ba et al. 2016) whose output has the dtype of its input: on CUDA it avoids the copies in
    float32 that autocast makes of input and output. Mean and variance are computed in float32 nevertheless."""

    def forward(self, x_BTD: Tensor) -> Tensor:
        """Normalises ``x_BTD`` to mean 0 and variance 1 at each position, then multiplies by the weight and adds the
        bias."""
        if x_BTD.device.type != "cuda":
            return super().forward(x_BTD)
        with torch.autocast("cuda", enabled=False):
            weight_D, bias_D = self.weight.to(x_BTD.dtype), self.bias.to(x_BTD.dtype)
            return F.layer_norm(x_BTD, self.normalized_shape, weight_D, bias_D, self.eps)


class Residual(nn.Module):
    """x + block(norm(x)) or norm(x + block(x)), with dropout on the output of the block (Vaswani et al. 2017, section
    5.4)."""

    def __init__(self, config: TransformerConfig, dropout: DropoutConfig) -> None:
        super().__init__()
        self.norm = LayerNorm(config.size)
        self.is_pre_norm = config.norm == "pre"
        self.dropout = Dropout(dropout.layers)

    def read(self, x_BTD: Tensor) -> Tensor:
        """The input of the block."""
        input_BTD: Tensor = self.norm(x_BTD) if self.is_pre_norm else x_BTD
        return input_BTD

    def add(self, x_BTD: Tensor, output_BTD: Tensor) -> Tensor:
        """Adds the output of the block to ``x_BTD``."""
        # dropout on the output of the block only: the residual path is not dropped
        sum_BTD: Tensor = x_BTD + self.dropout(output_BTD)
        return sum_BTD if self.is_pre_norm else self.norm(sum_BTD)


def last_norm(config: TransformerConfig) -> nn.Module:
    """Creates the normalisation after the top layer, which is needed if the blocks normalise their input and not their
    sum."""
    return LayerNorm(config.size) if config.norm == "pre" else nn.Identity()


def self_attention(config: TransformerConfig, dropout: DropoutConfig, *, causal: bool) -> MultiHead:
    """Creates the self-attention of a layer."""
    return MultiHead(
        AttentionConfig(score=config.score),
        heads=config.heads,
        query_size=config.size,
        key_size=config.size,
        dropout=dropout.attention,
        causal=causal,
        rotary=config.positions == "rotary",
        bias=config.attention_bias,
    )


def feed_forward(config: TransformerConfig, dropout: DropoutConfig) -> FeedForward:
    """Creates the feed-forward block of a layer."""
    return FeedForward(config.size, config.feed_forward, config.activation, Dropout(dropout.feed_forward))

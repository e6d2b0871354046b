"""The layers of a Transformer encoder in a search on a CPU with kernels.

A few sentences at a time go through all layers, so that their states stay in the cache.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from nmt.attention.multihead import MultiHead
from nmt.extras.speed import native
from nmt.extras.speed.transformer_decoder import ACTIVATIONS, fields, supports
from nmt.models.transformer.encoder import EncoderLayer, TransformerEncoder


class FastEncoderLayers(nn.Module):
    """All layers of a trained encoder as one; if gradients are recorded, the plain layers run."""

    def __init__(self, layers: Sequence[EncoderLayer]) -> None:
        super().__init__()
        self.plain = nn.ModuleList(layers)
        self._fields_LP, self._kept = fields(layers)
        attention, activation = layers[0].attention, ACTIVATIONS.index(layers[0].feed_forward.activation)
        scale: float = attention.core.scale  # type: ignore[assignment]
        self._heads, self._constants = attention.heads, (scale, 1.0, layers[0].attention_residual.norm.eps, activation)

    @staticmethod
    def supports(encoder: TransformerEncoder, dtype: torch.dtype) -> bool:
        """Returns True if there are kernels for the layers, whose positions must be those of their input."""
        kernels, attention = native.kernels_for(dtype, encoder.embedding.weight_VD.device), encoder.layers[0].attention
        if kernels is None or not kernels.has_floats or not supports(encoder, dtype):
            return False
        assert isinstance(attention, MultiHead)
        return not (attention.rotary or attention.core.causal)

    def forward(self, x_BSD: Tensor, position_1S: Tensor, is_pad_BS: Tensor) -> Tensor:
        """See ``EncoderLayer.forward``. Without gradients, the states are computed in place."""
        kernels = native.kernels(x_BSD)
        if kernels is not None and x_BSD.numel() and not kernels.prefers_tiles(x_BSD, native.TILED_FLOATS):
            x_BSD = x_BSD.contiguous()
            kernels.encode(x_BSD, self._fields_LP, is_pad_BS.contiguous(), self._heads, self._constants)
            return x_BSD
        for layer in self.plain:
            x_BSD = layer(x_BSD, position_1S, is_pad_BS)
        return x_BSD

"""A model whose steps do not join weights."""

from __future__ import annotations

from torch import nn

from nmt.models.transformer.decoder import DecoderLayer


def join(model: nn.Module) -> None:
    """Has every layer keep the weights that its steps multiply with in one. The model is then for inference alone."""
    for module in model.modules():
        if isinstance(module, DecoderLayer):
            module.self_attention.join()

"""A model whose large products are of 8-bit integers."""

from __future__ import annotations

import torch
from torch import nn

from nmt.attention.attention import Attention
from nmt.attention.multihead import MultiHead
from nmt.nn.output import OutputLayer
from nmt.nn.quantized import Int8Weight
from nmt.nn.recurrent import RecurrentStack


def quantize(model: nn.Module, dtype: torch.dtype) -> None:
    """Rounds the weights of a model's products, but for what mechanisms have of their own and the summaries and fusions
    around them. ``dtype`` is that of its other weights. The model is then for inference alone."""
    for module in list(model.modules()):
        if isinstance(module, OutputLayer):
            _replace(module, "weight_VD", dtype)
        elif isinstance(module, nn.Linear):
            _replace(module, "weight", dtype)
        elif isinstance(module, MultiHead):
            for name in ("query_weight_QQ", "key_weight_QK", "value_weight_QK", "out_weight_QQ"):
                if getattr(module, name) is not None:
                    _replace(module, name, dtype)
        elif isinstance(module, Attention):
            for name in ("query_weight_AQ", "key_weight_AK"):
                if getattr(module, name) is not None:
                    _replace(module, name, dtype)
        elif isinstance(module, RecurrentStack):
            module.for_steps = {
                (name, layer): Int8Weight.of(module.parameter(name, layer), dtype)
                for layer in range(module.layers)
                for name in ("weight_ih", "weight_hh")
            }


def _replace(module: nn.Module, name: str, dtype: torch.dtype) -> None:
    weight = Int8Weight.of(getattr(module, name), dtype)
    delattr(module, name)  # a plain attribute from now on: a tied embedding keeps its own
    setattr(module, name, weight)

"""Attention of dot products by fused kernels on CUDA.

Shapes as in ``nmt.attention.attention``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

from torch import Tensor
from torch.nn import functional as F

from nmt.ops import attend


@cache
def short_attention() -> ModuleType | None:
    """The kernels for short sentences; None where Triton, which PyTorch for CUDA brings, is not there."""
    return import_module("nmt.extras.speed.short_attention") if find_spec("triton") else None


def fused_attend(
    query_BHTA: Tensor,
    keys_BHSA: Tensor,
    values_BHSA: Tensor,
    is_hidden: Tensor | None,
    scale: float,
    dropout_mask: Tensor | None,
) -> tuple[Tensor, Callable[[], Tensor]]:
    """Computes ``nmt.ops.attend`` by a kernel on CUDA that never stores the weights: ours for short sentences, else
    torch's."""
    inputs = (query_BHTA, keys_BHSA, values_BHSA)
    short = short_attention() if query_BHTA.device.type == "cuda" else None
    if short is not None and short.supports(*inputs):
        context_BHTA = short.ShortAttention.apply(*inputs, is_hidden, scale, dropout_mask)
    elif query_BHTA.device.type == "cuda" and dropout_mask is None:
        mask = None if is_hidden is None else ~is_hidden
        context_BHTA = F.scaled_dot_product_attention(*inputs, attn_mask=mask, scale=scale)
    else:
        return attend.body(*inputs, is_hidden, scale, dropout_mask)
    return context_BHTA, lambda: attend.body(*inputs, is_hidden, scale, None)[1]()

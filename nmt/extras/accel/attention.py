"""Attention of dot products by torch's fused kernel on CUDA.

Shapes as in ``nmt.attention.attention``.
"""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor
from torch.nn import functional as F

from nmt.ops import attend


def fused_attend(
    query_BHTA: Tensor,
    keys_BHSA: Tensor,
    values_BHSA: Tensor,
    is_hidden: Tensor | None,
    scale: float,
    dropout_factors: Tensor | None,
) -> tuple[Tensor, Callable[[], Tensor]]:
    """``nmt.ops.attend`` by torch's fused kernel on CUDA, which never holds the weights."""
    if query_BHTA.device.type != "cuda" or dropout_factors is not None:
        return attend.body(query_BHTA, keys_BHSA, values_BHSA, is_hidden, scale, dropout_factors)
    mask = None if is_hidden is None else ~is_hidden
    context_BHTA = F.scaled_dot_product_attention(query_BHTA, keys_BHSA, values_BHSA, attn_mask=mask, scale=scale)
    return context_BHTA, lambda: attend.body(query_BHTA, keys_BHSA, values_BHSA, is_hidden, scale, None)[1]()

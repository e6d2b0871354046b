"""Operations by kernels: attention of dot products on CUDA, and in searches on a CPU the additive score, the largest
logits and normalizers.

Shapes as in ``nmt.attention.attention`` and ``nmt.ops``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

import torch
from torch import Tensor
from torch.nn import functional as F

from nmt.attention.scores.additive import additive_energy
from nmt.extras.speed import native
from nmt.ops import TopTokens, attend, log_normalizer, top_tokens
from nmt.search.repetition import payments


@cache
def short_attention() -> ModuleType | None:
    """The kernels for short sentences; None where Triton, which PyTorch for CUDA brings, is not there."""
    return import_module("nmt.extras.speed.short_attention") if find_spec("triton") else None


def fused_attend(
    query_BHTA: Tensor, keys_BHSA: Tensor, values_BHSA: Tensor, is_hidden: Tensor | None, scale: float,
    dropout_mask: Tensor | None,
) -> tuple[Tensor, Callable[[], Tensor]]:  # fmt: skip
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


def kernel_additive_energy(
    query_BHTA: Tensor, keys_BHSA: Tensor, v_A: Tensor, upper_weights_AA: Sequence[Tensor] = ()
) -> Tensor:
    """Computes ``nmt.attention.scores.additive.additive_energy`` in one pass, for one head of one layer."""
    kernels = native.kernels(keys_BHSA)
    if kernels is None or keys_BHSA.shape[1] != 1 or upper_weights_AA:
        return additive_energy.body(query_BHTA, keys_BHSA, v_A, upper_weights_AA)
    query_XA = query_BHTA.reshape(-1, query_BHTA.shape[-1]).contiguous()
    return kernels.additive(query_XA, keys_BHSA[:, 0].contiguous(), v_A.contiguous()).view(*query_BHTA.shape[:3], -1)


def kernel_log_normalizer(logits_NV: Tensor) -> Tensor:
    """Computes ``nmt.ops.log_normalizer`` in one pass that writes nothing."""
    kernels = native.kernels(logits_NV)
    if kernels is None or not logits_NV.is_contiguous():
        return log_normalizer.body(logits_NV)
    return kernels.log_normalizer(logits_NV)


def kernel_payments(token_NK: Tensor, tokens_NT: Tensor, free_N2: Tensor, margin: float) -> tuple[Tensor, Tensor]:
    """Computes ``nmt.search.repetition.payments`` in one pass."""
    kernels = native.kernels_for(torch.float32, tokens_NT.device)
    if kernels is None:
        return payments.body(token_NK, tokens_NT, free_N2, margin)
    return kernels.payments(token_NK.contiguous(), tokens_NT, free_N2.contiguous(), margin)


def kernel_top_tokens(logits_NV: Tensor, count: int, normalized: bool) -> TopTokens:
    """Computes ``nmt.ops.top_tokens`` in one pass; ``topk`` would compare one entry after the other."""
    kernels = native.kernels(logits_NV)
    if kernels is None or not logits_NV.is_contiguous():
        return top_tokens.body(logits_NV, count, normalized)
    values_NK, token_NK = kernels.largest(logits_NV, count)
    return TopTokens(values_NK, token_NK, kernels.log_normalizer(logits_NV) if normalized else None)

"""Kernels for the output layer in searches: largest logits and normalizers."""

from __future__ import annotations

from torch import Tensor

from nmt.extras.speed import native
from nmt.ops import TopTokens, log_normalizer, top_tokens


def kernel_log_normalizer(logits_NV: Tensor) -> Tensor:
    """Computes ``nmt.ops.log_normalizer`` in one pass that writes nothing."""
    kernels = native.kernels(logits_NV)
    if kernels is None or not logits_NV.is_contiguous():
        return log_normalizer.body(logits_NV)
    return kernels.log_normalizer(logits_NV)


def kernel_top_tokens(logits_NV: Tensor, count: int, normalized: bool) -> TopTokens:
    """Computes ``nmt.ops.top_tokens`` in one pass; ``topk`` would compare one entry after the other."""
    kernels = native.kernels(logits_NV)
    if kernels is None or not logits_NV.is_contiguous():
        return top_tokens.body(logits_NV, count, normalized)
    values_NK, token_NK = kernels.largest(logits_NV, count)
    return TopTokens(values_NK, token_NK, kernels.log_normalizer(logits_NV) if normalized else None)

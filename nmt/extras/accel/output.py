"""The output layer in searches: largest logits and normalizers by kernels."""

from __future__ import annotations

import torch
from torch import Tensor

from nmt.extras.accel import native
from nmt.extras.accel.int8 import Int8Weight
from nmt.nn.output import OutputLayer
from nmt.ops import TopTokens, log_normalizer, top_tokens


class Int8OutputLayer(OutputLayer):
    """An output layer of 8-bit integers, which finds the largest logits without keeping the others."""

    def __init__(self, output: OutputLayer, dtype: torch.dtype) -> None:
        torch.nn.Module.__init__(self)
        self.bias_V, self.vocabulary = output.bias_V, output.vocabulary
        self.int8_VD = Int8Weight.of(output.weight_VD, dtype)
        self.weight_VD = self.int8_VD  # type: ignore[assignment]

    def top_tokens(self, readout_ND: Tensor, count: int, normalized: bool) -> TopTokens:
        """See ``OutputLayer.top_tokens``."""
        kernels = native.kernels(readout_ND)
        if kernels is None or not kernels.has_product():
            return super().top_tokens(readout_ND, count, normalized)
        weight, bias_V = self.int8_VD, self.bias_V.to(readout_ND.dtype)
        return kernels.top_outputs(
            readout_ND.contiguous(), weight.packed(), weight.scale_O, bias_V, count, normalized=normalized
        )


def kernel_log_normalizer(logits_NV: Tensor) -> Tensor:
    """``nmt.ops.log_normalizer`` in one pass that writes nothing."""
    kernels = native.kernels(logits_NV)
    if kernels is None or not logits_NV.is_contiguous():
        return log_normalizer.body(logits_NV)
    return kernels.log_normalizer(logits_NV)


def kernel_top_tokens(logits_NV: Tensor, count: int, normalized: bool) -> TopTokens:
    """``nmt.ops.top_tokens`` in one pass; ``topk`` looks at one entry after the other."""
    kernels = native.kernels(logits_NV)
    if kernels is None or not logits_NV.is_contiguous():
        return top_tokens.body(logits_NV, count, normalized)
    if count == 1 and not normalized:
        token_N1 = kernels.argmax(logits_NV)[:, None]
        return TopTokens(logits_NV.gather(1, token_N1).float(), token_N1, None)
    values_NK, token_NK = kernels.largest(logits_NV, count)
    return TopTokens(values_NK, token_NK, kernels.log_normalizer(logits_NV) if normalized else None)

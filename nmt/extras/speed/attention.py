"""Attention of dot products by fused kernels on CUDA, and attention of one step on a CPU.

Shapes as in ``nmt.attention.attention``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from nmt.attention.attention import Attention, AttentionMemory, AttentionOutput, AttentionState, unfold_beams
from nmt.attention.weights.softmax import Softmax
from nmt.ops import attend


@cache
def short_attention() -> ModuleType | None:
    """The kernels for short sentences; None where Triton, which PyTorch for CUDA brings, is not there."""
    return import_module("nmt.extras.speed.short_attention") if find_spec("triton") else None


class SearchAttention(Attention):
    """Attention that computes a step of a search in float32 without operations that change nothing in it."""

    @staticmethod
    def supports(attention: nn.Module) -> bool:
        """Returns True for attention by a plain softmax with one head."""
        if type(attention) is not Attention or attention.is_stateful or attention.causal:
            return False
        weighting = attention.weighting
        return type(weighting) is Softmax and weighting.temperature == 1.0

    def forward(
        self, query_NTQ: Tensor, position_NT: Tensor, memory: AttentionMemory, state: AttentionState | None = None
    ) -> AttentionOutput:
        """See ``Attention.forward``."""
        (rows, time, _), batch, keys_BHSA = query_NTQ.shape, len(memory.is_pad_BS), memory.keys_BHSA
        is_float32 = query_NTQ.dtype == keys_BHSA.dtype == memory.values_BSV.dtype == torch.float32
        if time > 1 or memory.unread_BTS is not None or not is_float32 or torch.is_grad_enabled():
            return super().forward(query_NTQ, position_NT, memory, state)
        query_BHTQ = query_NTQ.reshape(batch, 1, rows // batch, -1)
        scores_BHTS = self.score(query_BHTQ, keys_BHSA, self._parameters_of_score(torch.float32))
        weights_BHTS = scores_BHTS.masked_fill(memory.is_pad_BS[:, None, None], -torch.inf).softmax(dim=-1)
        context_BTV = weights_BHTS[:, 0] @ memory.values_BSV
        return AttentionOutput(context_BTV.view(rows, 1, -1), unfold_beams(weights_BHTS, rows, 1), None)


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

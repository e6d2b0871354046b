"""Additive attention of searches by one kernel, and fused attention on CUDA.

Shapes as in ``nmt.attention.attention``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeGuard

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from nmt.attention.attention import Attended, Attention, AttentionMemory
from nmt.attention.scores.additive import Additive
from nmt.attention.scores.concat import Concat
from nmt.attention.weights.softmax import Softmax
from nmt.extras.accel import native
from nmt.extras.accel.int8 import Int8Weight
from nmt.ops import attend


@dataclass(frozen=True)
class ExpKeyMemory(AttentionMemory):
    """A memory with e^2k instead of each key k, from which tanh(q + k) takes one exponential and a division."""


class FusedAdditiveAttention(Attention):
    """Softmax attention with the score v . tanh(query + key), whose score, weights and context are one pass."""

    @staticmethod
    def supports(attention: nn.Module, dtype: torch.dtype) -> TypeGuard[Attention]:
        """True for additive and concat scores under softmax, where there are kernels for numbers of the type."""
        return (
            isinstance(attention, Attention)
            and isinstance(attention.score, (Additive, Concat))
            and isinstance(attention.normalizer, Softmax)
            and not attention.causal
            and native.kernels_for(dtype, next(attention.parameters()).device) is not None
        )

    def __init__(self, attention: Attention) -> None:
        torch.nn.Module.__init__(self)
        self.__dict__.update(attention.__dict__)

    def memory(self, keys_BSK: Tensor, values_BSV: Tensor, is_pad_BS: Tensor) -> AttentionMemory:
        """See ``Attention.memory``; with kernels an ``ExpKeyMemory``."""
        plain = super().memory(keys_BSK, values_BSV, is_pad_BS)
        keys_BHSA = plain.keys_BHSA
        has_kernel = native.kernels(keys_BHSA) is not None and keys_BHSA.dtype == values_BSV.dtype
        if not has_kernel or bool(keys_BHSA.abs().amax() > native.MAX_KEY_MAGNITUDE):
            return plain
        # 16 bits are exact enough beside weights of 8, and each step of a search reads the whole memory
        dtype = torch.bfloat16 if isinstance(self.key_weight_AK, Int8Weight) else keys_BHSA.dtype
        return ExpKeyMemory(is_pad_BS, native.exp_keys(keys_BHSA).to(dtype), values_BSV.to(dtype))

    def forward(self, query_NTQ: Tensor, position_NT: Tensor, memory: AttentionMemory) -> Attended:
        """See ``Attention.forward``."""
        if not isinstance(memory, ExpKeyMemory):
            return super().forward(query_NTQ, position_NT, memory)
        assert self.query_weight_AQ is not None
        query_NTA = F.linear(query_NTQ, self.query_weight_AQ).contiguous()
        rows, time, width = query_NTA.shape
        context_XV, weights_XS = native.required_kernels(query_NTA).additive_attention(
            query_NTA.view(-1, width),
            memory.keys_BHSA[:, 0].contiguous(),
            self.score_parameters["v_A"].to(query_NTA.dtype).contiguous(),
            memory.values_BSV.contiguous(),
            memory.is_pad_BS.contiguous(),
        )
        return Attended(context_XV.view(rows, time, -1), weights_XS.view(rows, 1, time, -1), None)


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

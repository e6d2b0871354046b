"""Multi-head attention of whole sequences by the kernels, for training.

A sentence's heads are a few products of some twenty rows each. PyTorch's batched products take what is transposed for
them, and a softmax, a mask and dropout each go once through what is as large as all weights; the kernels read queries,
keys and values where one projection has left them, keep a head's weights in the cache, and make them once more on the
way back, which writes the projection's gradient as it is wanted.

Shapes as in ``multihead``; X, Y the widths of rows that hold several projections of H x A numbers.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from nmt.nn import native
from nmt.nn.native import Told


def has_kernels(projected_BTX: Tensor) -> bool:
    """Whether ``attended`` is for such numbers."""
    with torch.no_grad():
        return native.kernels(projected_BTX) is not None


def attended(
    queries_BTX: Tensor, memory_BSY: Tensor, is_pad_BS: Tensor | None, drawn_SBHT: Tensor | None, told: Told
) -> Tensor:
    """See ``Kernels.attend_all``; differentiable. For self-attention queries and memory are one tensor."""
    memory = None if memory_BSY is queries_BTX else memory_BSY
    if is_pad_BS is not None:
        is_pad_BS = is_pad_BS.contiguous()
    context_BTQ: Tensor = _Attended.apply(queries_BTX, memory, is_pad_BS, drawn_SBHT, told)  # type: ignore[no-untyped-call]
    return context_BTQ


class _Attended(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        queries_BTX: Tensor,
        memory_BSY: Tensor | None,
        is_pad_BS: Tensor | None,
        drawn_SBHT: Tensor | None,
        told: Told,
    ) -> Tensor:
        ctx.told = told
        ctx.save_for_backward(queries_BTX, memory_BSY, is_pad_BS, drawn_SBHT)
        memory_BSY = queries_BTX if memory_BSY is None else memory_BSY
        return native.expected(queries_BTX).attend_all(queries_BTX, memory_BSY, is_pad_BS, drawn_SBHT, told)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient_BTQ: Tensor) -> tuple[Tensor | None, ...]:
        queries_BTX, memory_BSY, is_pad_BS, drawn_SBHT = ctx.saved_tensors
        queries_gradient, memory_gradient = native.expected(queries_BTX).attend_all_back(
            queries_BTX,
            queries_BTX if memory_BSY is None else memory_BSY,
            is_pad_BS,
            drawn_SBHT,
            gradient_BTQ,
            ctx.told,
        )
        return queries_gradient, None if memory_BSY is None else memory_gradient, None, None, None

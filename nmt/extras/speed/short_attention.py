"""Attention of dot products between short sentences on CUDA, by kernels in Triton.

The kernels of PyTorch divide a sentence into tiles of 64 or 128 positions, most of which are empty if sentences have
fifteen words. Here a program holds one whole head of one sentence: its queries, keys, values and all weights between
them. The backward pass computes the weights again, which takes less time than reading them.

Shapes as in ``nmt.attention.attention``. In a kernel, T, S and A are rounded up to powers of 2.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.autograd.function import once_differentiable

MOST = 64
"""Maximum number of positions of a sentence, and width of a head, that a program holds; with more, PyTorch's kernels
are faster."""

MANY = 512
"""Number of heads of all sentences from which on a GPU is busy."""


def supports(query_BHTA: Tensor, keys_BHSA: Tensor, values_BHSA: Tensor) -> bool:
    """Returns True if the kernels support the tensors. Other kernels are better for a search with one position at a
    time, and for translating few sentences, which would wait for Triton to compile."""
    batch, heads, time, width = query_BHTA.shape
    dtypes = {query_BHTA.dtype, keys_BHSA.dtype, values_BHSA.dtype}
    return (
        (torch.is_grad_enabled() or batch * heads >= MANY)
        and len(dtypes) == 1
        and dtypes <= {torch.bfloat16, torch.float16}
        and 1 < time <= MOST
        and 1 <= keys_BHSA.shape[2] <= MOST
        and width in (16, 32, 64)
    )


class ShortAttention(torch.autograd.Function):
    """Computes ``nmt.ops.attend`` without the weights."""

    @staticmethod
    def forward(
        ctx: Any, query_BHTA: Tensor, keys_BHSA: Tensor, values_BHSA: Tensor, is_hidden: Tensor | None, scale: float,
        dropout_mask: Tensor | None,
    ) -> Tensor:  # fmt: skip
        """Computes the contexts (B, H, T, A)."""
        ctx.scale = scale
        inputs = [each if each.stride(3) == 1 else each.contiguous() for each in (query_BHTA, keys_BHSA, values_BHSA)]
        shape_BHTS = (*query_BHTA.shape[:3], keys_BHSA.shape[2])
        hidden = None if is_hidden is None else is_hidden.expand(shape_BHTS).view(torch.uint8)
        factors = None if dropout_mask is None else dropout_mask.contiguous()
        saved = (*inputs, hidden, factors)
        ctx.save_for_backward(*saved)
        context_BHTA = _like(query_BHTA)
        _launch(_forward, saved, scale, context_BHTA)
        return context_BHTA

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, context_gradient_BHTA: Tensor) -> tuple[Tensor | None, ...]:
        """Computes the gradients of queries, keys and values."""
        gradient_BHTA = context_gradient_BHTA
        if gradient_BHTA.stride(3) != 1:
            gradient_BHTA = gradient_BHTA.contiguous()
        gradients = [_like(each) for each in ctx.saved_tensors[:3]]
        _launch(_backward, ctx.saved_tensors, ctx.scale, gradient_BHTA, *gradient_BHTA.stride()[:3], *gradients)
        return (*gradients, None, None, None)


def _like(x_BHTA: Tensor) -> Tensor:
    """Creates an empty tensor in which the heads of a position are contiguous, as the products before and after need
    them."""
    batch, heads, time, width = x_BHTA.shape
    return x_BHTA.new_empty(batch, time, heads, width).transpose(1, 2)


def _launch(kernel: Any, saved: tuple[Any, ...], scale: float, *arguments: Any) -> None:
    """Launches a program for each sentence and head."""
    query_BHTA, keys_BHSA, values_BHSA, hidden, factors = saved
    (batch, heads, time, width), positions = query_BHTA.shape, keys_BHSA.shape[2]
    side = max(16, triton.next_power_of_2(max(time, positions)))  # one size for both: Triton compiles for each pair
    # else Triton takes the current GPU
    with torch.cuda.device_of(query_BHTA):  # type: ignore[no-untyped-call]
        kernel[batch, heads](
            *(x for each in (query_BHTA, keys_BHSA, values_BHSA) for x in (each, *each.stride()[:3])),
            hidden,
            *((0, 0, 0, 0) if hidden is None else hidden.stride()),
            factors,
            time,
            positions,
            scale,
            *arguments,
            HIDES=hidden is not None,
            DROPS=factors is not None,
            T=side,
            S=side,
            A=width,
            num_warps=1 if side == 16 else 4,
        )


UNSPECIALIZED = ("time", "positions", "hidden_b", "hidden_h", "hidden_t")
"""Arguments of any size, for which Triton would compile further kernels if they are multiples of 16."""


# In the kernels, rows t are queries and columns s are keys. Past the end of a sentence, rows are 0 and columns have no
# weight.


@triton.jit
def _addresses(start, batch_stride, head_stride, row_stride, rows: tl.constexpr, width: tl.constexpr):
    head = start + tl.program_id(0).to(tl.int64) * batch_stride + tl.program_id(1) * head_stride
    return head + tl.arange(0, rows)[:, None] * row_stride + tl.arange(0, width)[None, :]


@triton.jit
def _put(start, value, count, rows: tl.constexpr, width: tl.constexpr):
    """Writes to a tensor of ``_like``."""
    row_stride = tl.num_programs(1) * width
    at = _addresses(start, count * row_stride, width, row_stride, rows, width)
    tl.store(at, value.to(start.dtype.element_ty), mask=tl.arange(0, rows)[:, None] < count)


@triton.jit
def _read(
    query, query_b, query_h, query_t, keys, keys_b, keys_h, keys_s, values, values_b, values_h, values_s,
    hidden, hidden_b, hidden_h, hidden_t, hidden_s, factors, time, positions, scale,
    HIDES: tl.constexpr, DROPS: tl.constexpr, T: tl.constexpr, S: tl.constexpr, A: tl.constexpr,
):  # fmt: skip
    """Reads queries, keys and values, and computes softmax(scale q . k) and the factors of its dropout."""
    row, column = tl.arange(0, T)[:, None], tl.arange(0, S)[None, :]
    is_source = tl.arange(0, S)[:, None] < positions
    q = tl.load(_addresses(query, query_b, query_h, query_t, T, A), mask=row < time, other=0.0)
    k = tl.load(_addresses(keys, keys_b, keys_h, keys_s, S, A), mask=is_source, other=0.0)
    v = tl.load(_addresses(values, values_b, values_h, values_s, S, A), mask=is_source, other=0.0)
    is_there = (row < time) & (column < positions)
    is_seen = column < positions
    if HIDES:
        at = hidden + tl.program_id(0).to(tl.int64) * hidden_b + tl.program_id(1) * hidden_h
        is_seen = is_seen & (tl.load(at + row * hidden_t + column * hidden_s, mask=is_there, other=0) == 0)
    scores = tl.where(is_seen, scale * tl.dot(q, tl.trans(k)), float("-inf"))
    powers = tl.exp(scores - tl.max(scores, 1)[:, None])
    weights = powers / tl.sum(powers, 1)[:, None]
    kept = tl.full((T, S), 1.0, tl.float32)
    if DROPS:
        head = tl.program_id(0).to(tl.int64) * tl.num_programs(1) + tl.program_id(1)
        kept = tl.load(factors + (head * time + row) * positions + column, mask=is_there, other=0.0).to(tl.float32)
    return q, k, v, weights, kept


@triton.jit(do_not_specialize=UNSPECIALIZED)
def _forward(
    query, query_b, query_h, query_t, keys, keys_b, keys_h, keys_s, values, values_b, values_h, values_s,
    hidden, hidden_b, hidden_h, hidden_t, hidden_s, factors, time, positions, scale, context,
    HIDES: tl.constexpr, DROPS: tl.constexpr, T: tl.constexpr, S: tl.constexpr, A: tl.constexpr,
):  # fmt: skip
    _, _, v, weights, kept = _read(
        query, query_b, query_h, query_t, keys, keys_b, keys_h, keys_s, values, values_b, values_h, values_s,
        hidden, hidden_b, hidden_h, hidden_t, hidden_s, factors, time, positions, scale, HIDES, DROPS, T, S, A,
    )  # fmt: skip
    _put(context, tl.dot((weights * kept).to(v.dtype), v), time, T, A)


@triton.jit(do_not_specialize=UNSPECIALIZED)
def _backward(
    query, query_b, query_h, query_t, keys, keys_b, keys_h, keys_s, values, values_b, values_h, values_s,
    hidden, hidden_b, hidden_h, hidden_t, hidden_s, factors, time, positions, scale,
    gradient, gradient_b, gradient_h, gradient_t, query_gradient, keys_gradient, values_gradient,
    HIDES: tl.constexpr, DROPS: tl.constexpr, T: tl.constexpr, S: tl.constexpr, A: tl.constexpr,
):  # fmt: skip
    q, k, v, weights, kept = _read(
        query, query_b, query_h, query_t, keys, keys_b, keys_h, keys_s, values, values_b, values_h, values_s,
        hidden, hidden_b, hidden_h, hidden_t, hidden_s, factors, time, positions, scale, HIDES, DROPS, T, S, A,
    )  # fmt: skip
    is_target = tl.arange(0, T)[:, None] < time
    c = tl.load(_addresses(gradient, gradient_b, gradient_h, gradient_t, T, A), mask=is_target, other=0.0)
    # with context = (W * F) v: dW = F * (c v'), and of softmax: ds = W * (dW - sum_s W dW)
    _put(values_gradient, tl.dot(tl.trans((weights * kept).to(v.dtype)), c), positions, S, A)
    of_weights = kept * tl.dot(c, tl.trans(v))
    of_scores = scale * weights * (of_weights - tl.sum(weights * of_weights, 1)[:, None])
    _put(query_gradient, tl.dot(of_scores.to(k.dtype), k), time, T, A)
    _put(keys_gradient, tl.dot(tl.trans(of_scores.to(q.dtype)), q), positions, S, A)

"""Cross entropy whose gradients are formed in the forward pass, while the exponentials are in the cache.

Speed of an update relative to that with the body, one thread of an AMD EPYC (Zen 4, AVX512-BF16, two cores):
Transformer-Tiny 1.2 to 1.3 in float32, 1.9 in bfloat16; recurrent 1.1 and 1.3 (``scripts/benchmark_training.py CONFIG
--textbook``).

Shapes: N tokens, D width of a readout, V vocabulary, C rows of a chunk, X columns of an extended matrix.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn.functional import one_hot
from torch.utils.checkpoint import checkpoint

from nmt.nn.output import rows_together
from nmt.nn.precision import compute_dtype
from nmt.ops import cross_entropy

CHUNK = 512
"""Number of rows whose logits exist at the same time on a CPU."""

SUMS = 16
"""Number of parts in which a matrix product sums a row; each part is rounded in the compute precision."""


def fused_cross_entropy(
    readout_ND: Tensor, weight_VD: Tensor, bias_V: Tensor, gold_N: Tensor, smoothing: float
) -> tuple[Tensor, Tensor]:
    """See ``nmt.ops.cross_entropy``. In float16 its body runs on some rows at a time, and again in the backward
    pass: gradients below 6e-8 would underflow before they are scaled. Chunks share no cast of the weight, so that their
    gradients are summed in the weight's own precision."""
    dtype = compute_dtype(readout_ND)
    if dtype == torch.float16:
        rows = rows_together(CHUNK, weight_VD)
        with torch.autocast(readout_ND.device.type, dtype, cache_enabled=False):
            parts = [
                checkpoint(cross_entropy.body, readout, weight_VD, bias_V, gold, smoothing, use_reentrant=False)
                for readout, gold in zip(torch.split(readout_ND, rows), torch.split(gold_N, rows), strict=True)
            ]
        objectives, cross_entropies = zip(*parts, strict=True)
        return torch.stack(objectives).sum(), torch.cat(cross_entropies)
    with torch.autocast(readout_ND.device.type, enabled=False):
        objective, cross_entropy_N = _CrossEntropy.apply(  # type: ignore[no-untyped-call]
            readout_ND.to(dtype), weight_VD, bias_V, gold_N, smoothing
        )
    return objective, cross_entropy_N


class _CrossEntropy(torch.autograd.Function):
    """Cross entropy with gradients computed in the forward pass. With e the exponentials of logits without bias, and a
    factor f for each token, exp(bias) up to a constant, the probability of a token is e f / z, where z is the sum of
    e f over the row, and the gradient of a logit is

        e_nv f_v / z_n - (1 - smoothing) [v is gold_n] - smoothing / V.

    Only e is as large as the logits, and no other tensor of this size is created: a pass over it takes as long as a
    product with it, so each pass that is avoided counts. f is multiplied into the rows of the weight and into its
    gradient; z results from the product that gives the readout's gradient, as further columns; the other two terms are
    added to the results of size N x D and V x D. All gradients are computed in the forward pass, while e is in the
    cache, and scaled in the backward pass.
    """

    @staticmethod
    def forward(
        ctx: Any, readout_ND: Tensor, weight_VD: Tensor, bias_V: Tensor, gold_N: Tensor, smoothing: float
    ) -> tuple[Tensor, Tensor]:
        rows, vocabulary = len(readout_ND), len(weight_VD)
        dtype, wide = readout_ND.dtype, torch.promote_types(readout_ND.dtype, torch.float32)
        most = bias_V.max()
        f_V = (bias_V - most).exp()
        own_weight_DV, back_VX = weight_VD.to(dtype).T, _with_parts(weight_VD, f_V).to(dtype)
        # On a CPU, exponentials are computed without subtracting the row's maximum, and computed again if they
        # overflow. On a GPU, waiting for this check would take longer than a pass over the logits.
        is_checked = weight_VD.device.type == "cpu"
        extended_NX = _with_one(readout_ND)
        gradient_VX = extended_NX.new_zeros(vocabulary, extended_NX.shape[1])
        readout_gradient_ND, gold_N1 = torch.empty_like(readout_ND, dtype=wide), gold_N[:, None]
        gold_logit_N, log_z_N = (torch.empty(rows, dtype=wide, device=gold_N.device) for _ in range(2))
        chunk = rows_together(CHUNK, weight_VD)
        e_CV = readout_ND.new_empty(min(chunk, rows), vocabulary)
        for start in range(0, rows, chunk):
            part = slice(start, min(start + chunk, rows))
            logits_NV = torch.mm(readout_ND[part], own_weight_DV, out=e_CV[: part.stop - start])
            gold_logit_N[part] = logits_NV.gather(1, gold_N1[part])[:, 0].to(wide)
            shift_N1: Tensor | None = None
            if not is_checked:
                shift_N1 = logits_NV.amax(dim=1, keepdim=True)
                logits_NV -= shift_N1
            back_ND, z_N1 = _back(logits_NV.exp_(), back_VX)
            if shift_N1 is None and not _is_in_range(z_N1):
                # computed again with the largest exponential of a row 1, which takes two more passes
                torch.mm(readout_ND[part], own_weight_DV, out=logits_NV)
                shift_N1 = logits_NV.amax(dim=1, keepdim=True)
                back_ND, z_N1 = _back(logits_NV.sub_(shift_N1).exp_(), back_VX)
            readout_gradient_ND[part] = back_ND / z_N1
            gradient_VX += logits_NV.T @ (extended_NX[part] / z_N1).to(dtype)
            log_z_N[part] = z_N1[:, 0].log() if shift_N1 is None else (z_N1.log() + shift_N1)[:, 0]
        gold_logit_N += bias_V[gold_N] - most
        cross_entropy_N = log_z_N - gold_logit_N
        mean_weight_D = weight_VD.mean(dim=0)
        # the mean logit of a row for label smoothing, computed without the logits
        mean_logit_N = readout_ND.to(wide) @ mean_weight_D.to(wide) + bias_V.mean()
        uniform_N = log_z_N + most - mean_logit_N
        objective = ((1.0 - smoothing) * cross_entropy_N + smoothing * uniform_N).sum()
        gradient_VX *= f_V[:, None]
        # not index_add_, whose order of addition on a GPU is random
        gradient_VX.index_put_((gold_N,), (smoothing - 1.0) * extended_NX, accumulate=True)
        gradient_VX -= smoothing / vocabulary * extended_NX.sum(dim=0)
        readout_gradient_ND -= (1.0 - smoothing) * weight_VD.index_select(0, gold_N)
        readout_gradient_ND -= smoothing * mean_weight_D
        ctx.save_for_backward(readout_gradient_ND, gradient_VX)
        ctx.dtype = dtype
        ctx.mark_non_differentiable(cross_entropy_N)
        return objective, cross_entropy_N

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, scale: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
        readout_gradient_ND, gradient_VX = ctx.saved_tensors
        gradient_VX = gradient_VX * scale
        readout_gradient_ND = (readout_gradient_ND * scale).to(ctx.dtype)
        width = readout_gradient_ND.shape[1]
        return readout_gradient_ND, gradient_VX[:, :width], gradient_VX[:, width], None, None


def _with_parts(weight_VD: Tensor, f_V: Tensor) -> Tensor:
    """Multiplies the weight by f, and appends columns that sum a row times f in ``SUMS`` parts."""
    part_V = torch.arange(len(f_V), device=f_V.device) % SUMS
    return torch.cat([weight_VD, one_hot(part_V, SUMS).to(weight_VD.dtype)], dim=1) * f_V[:, None]


def _back(e_NV: Tensor, back_VX: Tensor) -> tuple[Tensor, Tensor]:
    """Computes sum_v e_nv f_v weight_v, (N, D), and sum_v e_nv f_v, (N, 1)."""
    back_NX = _wide(e_NV @ back_VX)
    return back_NX[:, :-SUMS], back_NX[:, -SUMS:].sum(dim=1, keepdim=True)


def _wide(x: Tensor) -> Tensor:
    """Casts to float32, but keeps float64."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


def _with_one(readout_ND: Tensor) -> Tensor:
    """Appends a column of ones to readouts, which gives the gradient of the bias in the same product as that of the
    weight. On a GPU there are eight columns, because the fast kernels need rows of multiples of 16 bytes."""
    readout_ND = _wide(readout_ND)
    columns = 1 if readout_ND.device.type == "cpu" else 8
    return torch.cat([readout_ND, readout_ND.new_ones(len(readout_ND), columns)], dim=1)


def _is_in_range(z_N1: Tensor) -> bool:
    """Returns True if sums of exponentials are far from overflow, and from underflow of the terms that count."""
    smallest, largest = (float(bound) for bound in z_N1.aminmax())
    return smallest > 1e-18 and largest < 1e30

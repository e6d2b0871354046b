"""The output layer and its loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from nmt.layers.precision import compute_dtype


@dataclass(frozen=True)
class TokenLoss:
    """The loss over the N tokens of a batch; natural logarithms."""

    objective: Tensor
    """What training minimises, a scalar: the sum over the tokens of the label-smoothed cross entropy."""
    cross_entropy_N: Tensor
    """-log p(gold) of each token, without smoothing and without gradient."""
    correct: Tensor | None
    """How many times the gold token was the most probable one, or tied with it; None where the objective has a
    gradient and that would take a pass of its own."""

    @property
    def cross_entropy(self) -> Tensor:
        """-log p(gold), summed; exp of its mean is the perplexity."""
        return self.cross_entropy_N.sum()


@dataclass(frozen=True)
class TokenLikelihood:
    """How probable each of N gold tokens is."""

    smoothed_N: Tensor
    """(1 - smoothing) * log p(gold) + smoothing * mean over the vocabulary of log p; has a gradient."""
    log_p_N: Tensor
    """log p(gold), without gradient."""
    is_best_N: Tensor
    """Whether the gold token is the most probable one, or tied with it."""


class OutputLayer(nn.Module):
    """logits = W readout + b over the target vocabulary; W may be the target embedding (Press & Wolf 2017)."""

    def __init__(self, width: int, tokens: int, *, tied: nn.Parameter | None = None) -> None:
        super().__init__()
        if tied is not None:
            assert tied.shape == (tokens, width), f"output {tokens} x {width}, embedding {tuple(tied.shape)}"
            self.weight_VD = tied
        else:
            self.weight_VD = nn.Parameter(torch.empty(tokens, width))
            nn.init.normal_(self.weight_VD, std=width**-0.5)
        self.bias_V = nn.Parameter(torch.zeros(tokens))

    def forward(self, readout_ND: Tensor) -> Tensor:
        """The logits, one for each token of the vocabulary along the last dimension."""
        return F.linear(readout_ND, self.weight_VD, self.bias_V)

    def loss(self, readout_ND: Tensor, gold_N: Tensor, *, smoothing: float = 0.0, chunk: int = 512) -> TokenLoss:
        """Cross entropy against ``gold_N`` with uniform label smoothing (Szegedy et al. 2016, section 7):
        (1 - smoothing) * -log p(gold) + smoothing * mean over the vocabulary of -log p.

        Logits exist for ``chunk`` rows at a time, in the compute precision, and turn into gradients at once.
        """
        if not (torch.is_grad_enabled() and (readout_ND.requires_grad or self.weight_VD.requires_grad)):
            each = self.likelihood(readout_ND, gold_N, smoothing=smoothing, chunk=chunk)
            return TokenLoss(-each.smoothed_N.sum(), -each.log_p_N, each.is_best_N.sum())
        readout_ND = readout_ND.to(compute_dtype(readout_ND))
        with torch.autocast(readout_ND.device.type, enabled=False):
            objective, cross_entropy_N = _CrossEntropy.apply(  # type: ignore[no-untyped-call]
                readout_ND, self.weight_VD, self.bias_V, gold_N, smoothing, chunk
            )
        return TokenLoss(objective, cross_entropy_N, correct=None)

    def likelihood(
        self, readout_ND: Tensor, gold_N: Tensor, *, smoothing: float = 0.0, chunk: int = 1024
    ) -> TokenLikelihood:
        """The log-likelihood of each gold token by itself, for losses that are no plain sum over the rows.

        Logits exist for ``chunk`` rows at a time and are computed anew in the backward pass.
        """

        def part(readout_ND: Tensor, gold_N: Tensor) -> tuple[Tensor, Tensor, Tensor]:
            logits_NV = self(readout_ND)
            log_normalizer_N = logits_NV.float().logsumexp(dim=1)
            gold_logit_N = logits_NV.gather(1, gold_N[:, None])[:, 0].float()
            log_p_N = gold_logit_N - log_normalizer_N
            smoothed_N = log_p_N
            if smoothing > 0.0:
                mean_log_p_N = logits_NV.mean(dim=1, dtype=torch.float32) - log_normalizer_N
                smoothed_N = (1.0 - smoothing) * log_p_N + smoothing * mean_log_p_N
            return smoothed_N, log_p_N.detach(), gold_logit_N == logits_NV.detach().amax(dim=1).float()

        parts = [
            checkpoint(part, readout, gold, use_reentrant=False)
            for readout, gold in zip(torch.split(readout_ND, chunk), torch.split(gold_N, chunk), strict=True)
        ]
        smoothed, log_p, is_best = zip(*parts, strict=True)
        return TokenLikelihood(torch.cat(smoothed), torch.cat(log_p), torch.cat(is_best))

    def divergence(self, one_ND: Tensor, other_ND: Tensor, *, chunk: int = 512) -> Tensor:
        """How far two readouts of the same tokens disagree: (KL(p || q) + KL(q || p)) / 2 in nats, summed over rows.

        Logits exist for ``chunk`` rows at a time, in the compute precision, and turn into gradients at once.
        """
        dtype = compute_dtype(one_ND)
        with torch.autocast(one_ND.device.type, enabled=False):
            divergence: Tensor = _Divergence.apply(  # type: ignore[no-untyped-call]
                one_ND.to(dtype), other_ND.to(dtype), self.weight_VD, self.bias_V, chunk
            )
        return divergence


SUMS = 16
"""In how many parts a row is summed by a matrix product, which rounds each in the compute precision."""


class _CrossEntropy(torch.autograd.Function):
    """With e_nv = exp(readout_n . weight_v), f_v = exp(bias_v) up to a factor, and z_n the sum over v of e_nv f_v, the
    gradient of a logit is

        e_nv f_v / z_n - (1 - smoothing) [v is gold_n] - smoothing / V.

    Only e is as large as the logits, and only e is ever formed of it: a pass over that takes as long as a product with
    it, so each one that is not made counts. f is multiplied into the weight's rows and out of its gradient; z comes out
    of the product that gives the readout's gradient, as further columns; the other two terms are added to what is N x D
    and V x D. All gradients are computed in the forward pass, while e is in the cache, and scaled in the backward pass.
    """

    @staticmethod
    def forward(
        ctx: Any,
        readout_ND: Tensor,
        weight_VD: Tensor,
        bias_V: Tensor,
        gold_N: Tensor,
        smoothing: float,
        chunk: int,
    ) -> tuple[Tensor, Tensor]:
        (rows, width), vocabulary = readout_ND.shape, weight_VD.shape[0]
        dtype, wide = readout_ND.dtype, torch.promote_types(readout_ND.dtype, torch.float32)
        most = bias_V.max()
        f_V = (bias_V - most).exp()
        cast_VD, back_VX = weight_VD.to(dtype), _with_sums(weight_VD, f_V).to(dtype)
        extended_NX = _with_one(readout_ND)
        gradient_VX = extended_NX.new_zeros(vocabulary, width + 1)
        readout_gradient_ND, gold_N1 = torch.empty_like(readout_ND, dtype=wide), gold_N[:, None]
        gold_product_N, log_z_N = (torch.empty(rows, dtype=wide, device=gold_N.device) for _ in range(2))
        e_CV = readout_ND.new_empty(min(chunk, rows), vocabulary)
        for start in range(0, rows, chunk):
            part = slice(start, min(start + chunk, rows))
            product_NV = torch.mm(readout_ND[part], cast_VD.T, out=e_CV[: part.stop - start])
            gold_product_N[part] = product_NV.gather(1, gold_N1[part])[:, 0].to(wide)
            shift_N1: Tensor | None = None
            if _is_narrow(dtype, product_NV.device):
                shift_N1 = product_NV.amax(dim=1, keepdim=True)
                product_NV -= shift_N1
            back_NX, z_N1 = _back(product_NV.exp_(), back_VX, width)
            if shift_N1 is None and not _is_in_range(z_N1):
                # made anew, with the largest exponential of a row 1: that takes two passes more
                torch.mm(readout_ND[part], cast_VD.T, out=product_NV)
                shift_N1 = product_NV.amax(dim=1, keepdim=True)
                back_NX, z_N1 = _back(product_NV.sub_(shift_N1).exp_(), back_VX, width)
            readout_gradient_ND[part] = back_NX[:, :width] / z_N1
            gradient_VX += product_NV.T @ (extended_NX[part] / z_N1).to(dtype)
            log_z_N[part] = z_N1[:, 0].log() if shift_N1 is None else (z_N1.log() + shift_N1)[:, 0]
        cross_entropy_N = log_z_N - gold_product_N - (bias_V[gold_N] - most)
        mean_weight_D = weight_VD.mean(dim=0)
        # the mean logit of a row, for label smoothing, without the logits
        mean_logit_N = readout_ND.to(wide) @ mean_weight_D.to(wide) + bias_V.mean()
        uniform_N = log_z_N + most - mean_logit_N
        objective = ((1.0 - smoothing) * cross_entropy_N + smoothing * uniform_N).sum()
        gradient_VX *= f_V[:, None]
        gradient_VX.index_add_(0, gold_N, extended_NX, alpha=smoothing - 1.0)
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
        return readout_gradient_ND, gradient_VX[:, :-1], gradient_VX[:, -1], None, None, None


class _Divergence(torch.autograd.Function):
    """Of p, the softmax of logits a + bias, and q, that of b + bias, with l = log p - log q = a - b - c and
    c = log z_p - log z_q. The gradients of a logit of either are

        (p (l - KL(p || q) + 1) - q) / 2    and    (q (-l - KL(q || p) + 1) - p) / 2.

    As in ``_CrossEntropy`` e_a = exp(a) and e_b = exp(b) are all that is ever formed, and with them u = e_a (a - b) and
    w = e_b (a - b): what else there is in p, q and their products with l is a factor of the row or of the column.
    """

    @staticmethod
    def forward(ctx: Any, one_ND: Tensor, other_ND: Tensor, weight_VD: Tensor, bias_V: Tensor, chunk: int) -> Tensor:
        width, dtype = one_ND.shape[1], one_ND.dtype
        f_V = (bias_V - bias_V.max()).exp()
        cast_VD, back_VX = weight_VD.to(dtype), _with_sums(weight_VD, f_V).to(dtype)
        x_NX, y_NX = _with_one(one_ND), _with_one(other_ND)
        gradient_VX = x_NX.new_zeros(len(weight_VD), width + 1)
        gradients_ND = torch.empty_like(x_NX[:, :width]), torch.empty_like(x_NX[:, :width])
        divergence = x_NX.new_zeros(())
        for start in range(0, len(one_ND), chunk):
            part = slice(start, start + chunk)
            a_NV, b_NV = one_ND[part] @ cast_VD.T, other_ND[part] @ cast_VD.T
            e_NV, g_NV = a_NV.exp(), b_NV.exp()
            (e_NX, zp_N1), (g_NX, zq_N1) = _back(e_NV, back_VX, width), _back(g_NV, back_VX, width)
            if _is_narrow(dtype, a_NV.device) or not (_is_in_range(zp_N1) and _is_in_range(zq_N1)):
                a_NV -= a_NV.amax(dim=1, keepdim=True)
                b_NV -= b_NV.amax(dim=1, keepdim=True)
                e_NV, g_NV = a_NV.exp(), b_NV.exp()
                (e_NX, zp_N1), (g_NX, zq_N1) = _back(e_NV, back_VX, width), _back(g_NV, back_VX, width)
            difference_NV = a_NV.sub_(b_NV)
            u_NV, w_NV = torch.mul(e_NV, difference_NV, out=b_NV), difference_NV.mul_(g_NV)
            (u_NX, u_N1), (w_NX, w_N1) = _back(u_NV, back_VX, width), _back(w_NV, back_VX, width)
            c_N1 = zp_N1.log() - zq_N1.log()
            forth_N1, back_N1 = u_N1 / zp_N1 - c_N1, c_N1 - w_N1 / zq_N1  # KL(p || q), KL(q || p)
            divergence += 0.5 * (forth_N1 + back_N1).sum()
            # the gradients are (u + p1 e) / (2 z_p) - g / (2 z_q) and (q1 g - w) / (2 z_q) - e / (2 z_p), times f
            p1_N1, q1_N1 = 1.0 - forth_N1 - c_N1, 1.0 - back_N1 + c_N1
            half_p_N1, half_q_N1 = 0.5 / zp_N1, 0.5 / zq_N1
            gradients_ND[0][part] = ((u_NX + p1_N1 * e_NX) * half_p_N1 - g_NX * half_q_N1)[:, :width]
            gradients_ND[1][part] = ((q1_N1 * g_NX - w_NX) * half_q_N1 - e_NX * half_p_N1)[:, :width]
            x, y = x_NX[part], y_NX[part]
            gradient_VX += u_NV.T @ (half_p_N1 * x).to(dtype)
            gradient_VX += e_NV.T @ (half_p_N1 * (p1_N1 * x - y)).to(dtype)
            gradient_VX += g_NV.T @ (half_q_N1 * (q1_N1 * y - x)).to(dtype)
            gradient_VX -= w_NV.T @ (half_q_N1 * y).to(dtype)
        gradient_VX *= f_V[:, None]
        ctx.save_for_backward(*gradients_ND, gradient_VX)
        ctx.dtype = dtype
        return divergence

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, scale: Tensor) -> tuple[Tensor | None, ...]:
        one_ND, other_ND, gradient_VX = (each * scale for each in ctx.saved_tensors)
        return one_ND.to(ctx.dtype), other_ND.to(ctx.dtype), gradient_VX[:, :-1], gradient_VX[:, -1], None


def _with_sums(weight_VD: Tensor, f_V: Tensor) -> Tensor:
    """The weight with further columns that sum a row of exponentials in ``SUMS`` parts; its rows times f."""
    part_V = torch.arange(len(f_V), device=f_V.device) % SUMS
    is_part_VP = torch.nn.functional.one_hot(part_V, SUMS).to(weight_VD.dtype)
    return torch.cat([weight_VD, is_part_VP], dim=1) * f_V[:, None]


def _with_one(readout_ND: Tensor) -> Tensor:
    """Readouts with a column of ones beside them: it gives the bias's gradient in the same product as the weight's."""
    readout_ND = readout_ND.to(torch.promote_types(readout_ND.dtype, torch.float32))
    return torch.cat([readout_ND, readout_ND.new_ones(len(readout_ND), 1)], dim=1)


def _back(e_NV: Tensor, back_VX: Tensor, width: int) -> tuple[Tensor, Tensor]:
    """The products with the weight's columns and with those that sum a row; and the rows' sums, (N, 1)."""
    back_NX = e_NV @ back_VX
    back_NX = back_NX.to(torch.promote_types(back_NX.dtype, torch.float32))
    return back_NX, back_NX[:, width:].sum(dim=1, keepdim=True)


def _is_narrow(dtype: torch.dtype, device: torch.device) -> bool:
    """Whether exponentials of logits as they are may be beyond the type's range, or whether to ask is what costs."""
    return dtype == torch.float16 or device.type != "cpu"


def _is_in_range(z_N1: Tensor) -> bool:
    """Whether sums of exponentials are far from where they, or the terms that count, would be infinite or 0."""
    smallest, largest = (float(each) for each in z_N1.aminmax())
    return smallest > 1e-18 and largest < 1e30

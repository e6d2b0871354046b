"""The output layer and its loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from nmt.nn.native import BestOutputs
from nmt.nn.precision import compute_dtype
from nmt.nn.quantized import Int8Weight, best_outputs


@dataclass(frozen=True)
class TokenLoss:
    """The loss over the N tokens of a batch; natural logarithms."""

    objective: Tensor
    """What training minimises, a scalar: the sum over the tokens of the label-smoothed cross entropy."""
    cross_entropy_N: Tensor
    """-log p(gold) of each token, without smoothing and without gradient."""
    correct: Tensor | None
    """How many times the gold token was the most probable one, or tied with it; None in training, where counting would
    take a further pass over the logits."""

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
        self.vocabulary = tokens

    def forward(self, readout_ND: Tensor) -> Tensor:
        """The logits, one for each token of the vocabulary along the last dimension."""
        return F.linear(readout_ND, self.weight_VD, self.bias_V)

    def best(self, readout_ND: Tensor, count: int, *, normalized: bool) -> BestOutputs | None:
        """The ``count`` tokens with the largest logits of each row, and the log-normalizer of all of them, where logits
        need not be formed for that, else None."""
        weight_VD: Tensor = self.weight_VD
        if not isinstance(weight_VD, Int8Weight):
            return None
        return best_outputs(readout_ND, weight_VD, self.bias_V, count, normalized=normalized)

    def rows(self, token_U: Tensor) -> tuple[Tensor, Tensor]:
        """What the logits of some tokens are computed with: W's rows (U, D) and b's entries (U,)."""
        return self.weight_VD[token_U], self.bias_V[token_U]

    def loss(self, readout_ND: Tensor, gold_N: Tensor, *, smoothing: float = 0.0, chunk: int = 512) -> TokenLoss:
        """Cross entropy against ``gold_N`` with uniform label smoothing (Szegedy et al. 2016, section 7):
        (1 - smoothing) * -log p(gold) + smoothing * mean over the vocabulary of -log p.

        Logits exist for ``chunk`` rows at a time, in the compute precision, and turn into gradients at once. In float16
        gradients are formed in the backward pass, after loss scaling; unscaled, values below 6e-8 underflow.
        """
        learns = torch.is_grad_enabled() and (readout_ND.requires_grad or self.weight_VD.requires_grad)
        if not learns or compute_dtype(readout_ND) == torch.float16:
            each = self.likelihood(readout_ND, gold_N, smoothing=smoothing, chunk=chunk)
            return TokenLoss(-each.smoothed_N.sum(), -each.log_p_N, None if learns else each.is_best_N.sum())
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
        dtype = compute_dtype(readout_ND)

        def part(readout_ND: Tensor, gold_N: Tensor) -> tuple[Tensor, Tensor, Tensor]:
            logits_NV = self._wide_logits(readout_ND, dtype)
            log_normalizer_N = logits_NV.logsumexp(dim=1)
            gold_logit_N = logits_NV.gather(1, gold_N[:, None])[:, 0]
            log_p_N = gold_logit_N - log_normalizer_N
            smoothed_N = log_p_N
            if smoothing > 0.0:
                mean_log_p_N = logits_NV.mean(dim=1) - log_normalizer_N
                smoothed_N = (1.0 - smoothing) * log_p_N + smoothing * mean_log_p_N
            return smoothed_N, log_p_N.detach(), gold_logit_N == logits_NV.detach().amax(dim=1)

        parts = [
            # without gradients there is nothing to compute anew, and the first checkpoint imports for a second
            checkpoint(part, readout, gold, use_reentrant=False) if torch.is_grad_enabled() else part(readout, gold)
            for readout, gold in zip(torch.split(readout_ND, chunk), torch.split(gold_N, chunk), strict=True)
        ]
        smoothed, log_p, is_best = zip(*parts, strict=True)
        return TokenLikelihood(torch.cat(smoothed), torch.cat(log_p), torch.cat(is_best))

    def divergence(self, one_ND: Tensor, other_ND: Tensor, *, chunk: int = 512) -> Tensor:
        """How far two readouts of the same tokens disagree: (KL(p || q) + KL(q || p)) / 2 in nats, summed over rows.

        Logits exist for ``chunk`` rows at a time, in the compute precision, and turn into gradients as in ``loss``.
        """
        dtype = compute_dtype(one_ND)

        def part(one_ND: Tensor, other_ND: Tensor) -> Tensor:
            log_p_NV, log_q_NV = (self._wide_logits(x_ND, dtype).log_softmax(dim=1) for x_ND in (one_ND, other_ND))
            return 0.5 * ((log_p_NV.exp() - log_q_NV.exp()) * (log_p_NV - log_q_NV)).sum()

        if dtype == torch.float16:
            parts = zip(torch.split(one_ND, chunk), torch.split(other_ND, chunk), strict=True)
            return torch.stack([checkpoint(part, *both, use_reentrant=False) for both in parts]).sum()
        with torch.autocast(one_ND.device.type, enabled=False):
            divergence: Tensor = _Divergence.apply(  # type: ignore[no-untyped-call]
                one_ND.to(dtype), other_ND.to(dtype), self.weight_VD, self.bias_V, chunk
            )
        return divergence

    def _wide_logits(self, readout_ND: Tensor, dtype: torch.dtype) -> Tensor:
        """Logits computed in ``dtype``, in float32 or wider. Without autocast, which casts the weight once for all
        chunks and so adds up their gradients in its own precision."""
        if isinstance(self.weight_VD, Int8Weight):
            return _wide(self(readout_ND))
        with torch.autocast(readout_ND.device.type, enabled=False):
            return _wide(F.linear(readout_ND.to(dtype), self.weight_VD.to(dtype), self.bias_V.to(dtype)))


SUMS = 16
"""In how many parts a row is summed by a matrix product, which rounds each in the compute precision."""


@dataclass(frozen=True)
class _Vocabulary:
    """The output layer as the losses below want it: exponentials of logits without bias, e, and a factor f for each
    token that makes e f / z its probability, z being the sum of e f over the row."""

    weight_VD: Tensor
    back_VX: Tensor
    """The weight times f, with further columns that sum a row times f in ``SUMS`` parts."""
    f_V: Tensor
    """exp(bias) up to a factor."""
    has_range: bool
    """True on a CPU: exponentials are formed without subtracting the row's maximum, and formed again if they overflow.
    On a GPU waiting for that check costs more than a pass over the logits."""

    @staticmethod
    def of(weight_VD: Tensor, bias_V: Tensor, dtype: torch.dtype) -> _Vocabulary:
        """In the precision of ``dtype``."""
        f_V = (bias_V - bias_V.max()).exp()
        part_V = torch.arange(len(f_V), device=f_V.device) % SUMS
        is_part_VP = torch.nn.functional.one_hot(part_V, SUMS).to(weight_VD.dtype)
        back_VX = torch.cat([weight_VD, is_part_VP], dim=1) * f_V[:, None]
        return _Vocabulary(
            weight_VD=weight_VD.to(dtype),
            back_VX=back_VX.to(dtype),
            f_V=f_V,
            has_range=weight_VD.device.type == "cpu",
        )

    def logits(self, readout_ND: Tensor, *, out: Tensor | None = None) -> Tensor:
        """(N, V), without the bias."""
        return torch.mm(readout_ND, self.weight_VD.T, out=out)

    def back(self, e_NV: Tensor) -> tuple[Tensor, Tensor]:
        """sum_v e_nv f_v weight_v, (N, D), and sum_v e_nv f_v, (N, 1)."""
        back_NX = e_NV @ self.back_VX
        back_NX = _wide(back_NX)
        width = self.weight_VD.shape[1]
        return back_NX[:, :width], back_NX[:, width:].sum(dim=1, keepdim=True)


class _CrossEntropy(torch.autograd.Function):
    """With e, f and z as in ``_Vocabulary`` the gradient of a logit is

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
        rows, vocabulary = len(readout_ND), len(weight_VD)
        dtype, wide = readout_ND.dtype, torch.promote_types(readout_ND.dtype, torch.float32)
        tokens = _Vocabulary.of(weight_VD, bias_V, dtype)
        extended_NX = _with_one(readout_ND)
        gradient_VX = extended_NX.new_zeros(vocabulary, extended_NX.shape[1])
        readout_gradient_ND, gold_N1 = torch.empty_like(readout_ND, dtype=wide), gold_N[:, None]
        gold_logit_N, log_z_N = (torch.empty(rows, dtype=wide, device=gold_N.device) for _ in range(2))
        e_CV = readout_ND.new_empty(min(chunk, rows), vocabulary)
        for start in range(0, rows, chunk):
            part = slice(start, min(start + chunk, rows))
            logits_NV = tokens.logits(readout_ND[part], out=e_CV[: part.stop - start])
            gold_logit_N[part] = logits_NV.gather(1, gold_N1[part])[:, 0].to(wide)
            shift_N1: Tensor | None = None
            if not tokens.has_range:
                shift_N1 = logits_NV.amax(dim=1, keepdim=True)
                logits_NV -= shift_N1
            back_ND, z_N1 = tokens.back(logits_NV.exp_())
            if shift_N1 is None and not _is_in_range(z_N1):
                # made anew, with the largest exponential of a row 1: that takes two passes more
                tokens.logits(readout_ND[part], out=logits_NV)
                shift_N1 = logits_NV.amax(dim=1, keepdim=True)
                back_ND, z_N1 = tokens.back(logits_NV.sub_(shift_N1).exp_())
            readout_gradient_ND[part] = back_ND / z_N1
            gradient_VX += logits_NV.T @ (extended_NX[part] / z_N1).to(dtype)
            log_z_N[part] = z_N1[:, 0].log() if shift_N1 is None else (z_N1.log() + shift_N1)[:, 0]
        most = bias_V.max()
        gold_logit_N += bias_V[gold_N] - most
        cross_entropy_N = log_z_N - gold_logit_N
        mean_weight_D = weight_VD.mean(dim=0)
        # the mean logit of a row, for label smoothing, without the logits
        mean_logit_N = readout_ND.to(wide) @ mean_weight_D.to(wide) + bias_V.mean()
        uniform_N = log_z_N + most - mean_logit_N
        objective = ((1.0 - smoothing) * cross_entropy_N + smoothing * uniform_N).sum()
        gradient_VX *= tokens.f_V[:, None]
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

    As in ``_CrossEntropy`` e = exp(a) and g = exp(b) are all that is ever formed, and with them u = e (a - b) and
    w = g (a - b): what else there is in p, q and their products with l is a factor of the row or of the column.
    """

    @staticmethod
    def forward(ctx: Any, one_ND: Tensor, other_ND: Tensor, weight_VD: Tensor, bias_V: Tensor, chunk: int) -> Tensor:
        dtype = one_ND.dtype
        tokens = _Vocabulary.of(weight_VD, bias_V, dtype)
        x_NX, y_NX = _with_one(one_ND), _with_one(other_ND)
        gradient_VX = x_NX.new_zeros(len(weight_VD), x_NX.shape[1])
        gradients_ND = torch.empty_like(x_NX[:, :-1]), torch.empty_like(x_NX[:, :-1])
        divergence = x_NX.new_zeros(())
        for start in range(0, len(one_ND), chunk):
            part = slice(start, start + chunk)
            a_NV, b_NV = tokens.logits(one_ND[part]), tokens.logits(other_ND[part])
            if not tokens.has_range:
                _shift(a_NV, b_NV)
            e_NV, g_NV = a_NV.exp(), b_NV.exp()
            (e_ND, zp_N1), (g_ND, zq_N1) = tokens.back(e_NV), tokens.back(g_NV)
            if tokens.has_range and not (_is_in_range(zp_N1) and _is_in_range(zq_N1)):
                _shift(a_NV, b_NV)
                e_NV, g_NV = a_NV.exp(), b_NV.exp()
                (e_ND, zp_N1), (g_ND, zq_N1) = tokens.back(e_NV), tokens.back(g_NV)
            difference_NV = a_NV.sub_(b_NV)
            u_NV, w_NV = torch.mul(e_NV, difference_NV, out=b_NV), difference_NV.mul_(g_NV)
            (u_ND, u_N1), (w_ND, w_N1) = tokens.back(u_NV), tokens.back(w_NV)
            c_N1 = zp_N1.log() - zq_N1.log()
            forth_N1, back_N1 = u_N1 / zp_N1 - c_N1, c_N1 - w_N1 / zq_N1  # KL(p || q), KL(q || p)
            divergence += 0.5 * (forth_N1 + back_N1).sum()
            # the gradients are (u + p1 e) / (2 z_p) - g / (2 z_q) and (q1 g - w) / (2 z_q) - e / (2 z_p), times f
            p1_N1, q1_N1 = 1.0 - forth_N1 - c_N1, 1.0 - back_N1 + c_N1
            half_p_N1, half_q_N1 = 0.5 / zp_N1, 0.5 / zq_N1
            gradients_ND[0][part] = (u_ND + p1_N1 * e_ND) * half_p_N1 - g_ND * half_q_N1
            gradients_ND[1][part] = (q1_N1 * g_ND - w_ND) * half_q_N1 - e_ND * half_p_N1
            x, y = x_NX[part], y_NX[part]
            gradient_VX += u_NV.T @ (half_p_N1 * x).to(dtype)
            gradient_VX += e_NV.T @ (half_p_N1 * (p1_N1 * x - y)).to(dtype)
            gradient_VX += g_NV.T @ (half_q_N1 * (q1_N1 * y - x)).to(dtype)
            gradient_VX -= w_NV.T @ (half_q_N1 * y).to(dtype)
        gradient_VX *= tokens.f_V[:, None]
        ctx.save_for_backward(*gradients_ND, gradient_VX)
        ctx.dtype = dtype
        return divergence

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, scale: Tensor) -> tuple[Tensor | None, ...]:
        one_ND, other_ND, gradient_VX = (each * scale for each in ctx.saved_tensors)
        return one_ND.to(ctx.dtype), other_ND.to(ctx.dtype), gradient_VX[:, :-1], gradient_VX[:, -1], None


def _wide(x: Tensor) -> Tensor:
    """Casts to float32; float64 stays."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


def _with_one(readout_ND: Tensor) -> Tensor:
    """Readouts with a column of ones beside them: it gives the bias's gradient in the same product as the weight's."""
    readout_ND = _wide(readout_ND)
    return torch.cat([readout_ND, readout_ND.new_ones(len(readout_ND), 1)], dim=1)


def _shift(*logits: Tensor) -> None:
    """Takes from each row its maximum, in place."""
    for each_NV in logits:
        each_NV -= each_NV.amax(dim=1, keepdim=True)


def _is_in_range(z_N1: Tensor) -> bool:
    """Whether sums of exponentials are far from where they, or the terms that count, would be infinite or 0."""
    smallest, largest = (float(each) for each in z_N1.aminmax())
    return smallest > 1e-18 and largest < 1e30

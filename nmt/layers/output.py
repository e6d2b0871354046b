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
    correct: Tensor
    """How many times the gold token was the most probable one, or tied with it."""

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

    def loss(self, readout_ND: Tensor, gold_N: Tensor, *, smoothing: float = 0.0, chunk: int = 1024) -> TokenLoss:
        """Cross entropy against ``gold_N`` with uniform label smoothing (Szegedy et al. 2016, section 7):
        (1 - smoothing) * -log p(gold) + smoothing * mean over the vocabulary of -log p.

        Logits exist for ``chunk`` rows at a time, in the compute precision, and turn into gradients at once.
        """
        needs_gradient = torch.is_grad_enabled() and (readout_ND.requires_grad or self.weight_VD.requires_grad)
        readout_ND = readout_ND.to(compute_dtype(readout_ND))
        with torch.autocast(readout_ND.device.type, enabled=False):
            objective, cross_entropy_N, correct = _CrossEntropy.apply(  # type: ignore[no-untyped-call]
                readout_ND, self.weight_VD, self.bias_V, gold_N, smoothing, chunk, needs_gradient
            )
        return TokenLoss(objective, cross_entropy_N, correct)

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

    def divergence(self, one_ND: Tensor, other_ND: Tensor, *, chunk: int = 1024) -> Tensor:
        """How far two readouts of the same tokens disagree: (KL(p || q) + KL(q || p)) / 2 in nats, summed over rows.

        Logits exist for ``chunk`` rows at a time and are computed anew in the backward pass.
        """

        def part(one_ND: Tensor, other_ND: Tensor) -> Tensor:
            return _divergence(self(one_ND), self(other_ND))

        return torch.stack(
            [
                checkpoint(part, one, other, use_reentrant=False)
                for one, other in zip(torch.split(one_ND, chunk), torch.split(other_ND, chunk), strict=True)
            ]
        ).sum()


def _divergence(one_NV: Tensor, other_NV: Tensor) -> Tensor:
    """Of the distributions of two rows of logits, summed over the rows."""
    wide = torch.promote_types(one_NV.dtype, torch.float32)
    log_p_NV, log_q_NV = one_NV.log_softmax(dim=1, dtype=wide), other_NV.log_softmax(dim=1, dtype=wide)
    return 0.5 * ((log_p_NV.exp() - log_q_NV.exp()) * (log_p_NV - log_q_NV)).sum()


SUMS = 16
"""In how many parts a row is summed by a matrix product, which rounds each in the compute precision."""


class _CrossEntropy(torch.autograd.Function):
    """With e_nv = exp(logit_nv - max_n) and z_n its sum over v, the gradient of a logit is

        e_nv / z_n - (1 - smoothing) [v is gold_n] - smoothing / V.

    Only the first term is as large as the logits, and only the exponentials are ever formed of it: the readout's
    gradient divides by z_n what comes out of the product with the weight, the weight's gradient what goes into the
    product with the readout, and the other terms are added to what is N x D and V x D. Over a vocabulary a pass takes
    as long as a third of a product, so each one that is not made counts. All gradients are computed in the forward
    pass, while the exponentials are in the cache, and scaled in the backward pass.
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
        needs_gradient: bool,
    ) -> tuple[Tensor, Tensor, Tensor]:
        rows, vocabulary = readout_ND.shape[0], weight_VD.shape[0]
        dtype, wide = readout_ND.dtype, torch.promote_types(readout_ND.dtype, torch.float32)
        cast_VD, cast_V = weight_VD.to(dtype), bias_V.to(dtype)
        part_V = torch.arange(vocabulary, device=gold_N.device) % SUMS
        is_part_VP = torch.nn.functional.one_hot(part_V, SUMS).to(dtype)
        gold_logit_N, best_N, sum_N = (torch.empty(rows, dtype=wide, device=gold_N.device) for _ in range(3))
        if needs_gradient:
            # a column of ones beside the readout gives the bias's gradient in the same product
            extended_NX = torch.cat([readout_ND.to(wide), sum_N.new_ones(rows, 1)], dim=1)
            gradient_VX = extended_NX.new_zeros(vocabulary, extended_NX.shape[1])
            readout_gradient_ND = torch.empty_like(readout_ND)
        logits_CV = readout_ND.new_empty(min(chunk, rows), vocabulary)
        for start in range(0, rows, chunk):
            part = slice(start, min(start + chunk, rows))
            logits_NV = torch.addmm(cast_V, readout_ND[part], cast_VD.T, out=logits_CV[: part.stop - start])
            gold_logit_N[part] = logits_NV.gather(1, gold_N[part, None])[:, 0].to(wide)
            best_N1 = logits_NV.amax(dim=1, keepdim=True)
            best_N[part] = best_N1[:, 0].to(wide)
            e_NV = logits_NV.sub_(best_N1).exp_()
            sum_N[part] = (e_NV @ is_part_VP).to(wide).sum(dim=1)
            if needs_gradient:
                torch.mm(e_NV, cast_VD, out=readout_gradient_ND[part])
                gradient_VX += e_NV.T @ (extended_NX[part] / sum_N[part, None]).to(dtype)
        log_normalizer_N = best_N + sum_N.log()
        cross_entropy_N = log_normalizer_N - gold_logit_N
        mean_weight_D = weight_VD.mean(dim=0)
        # the mean logit of a row, for label smoothing, without the logits
        mean_logit_N = readout_ND.to(wide) @ mean_weight_D.to(wide) + bias_V.mean()
        uniform_N = log_normalizer_N - mean_logit_N
        objective = ((1.0 - smoothing) * cross_entropy_N + smoothing * uniform_N).sum()
        if needs_gradient:
            readout_gradient_ND = readout_gradient_ND / sum_N[:, None]
            readout_gradient_ND -= (1.0 - smoothing) * weight_VD.index_select(0, gold_N)
            readout_gradient_ND -= smoothing * mean_weight_D
            gradient_VX.index_add_(0, gold_N, extended_NX, alpha=smoothing - 1.0)
            gradient_VX -= smoothing / vocabulary * extended_NX.sum(dim=0)
            ctx.save_for_backward(readout_gradient_ND, gradient_VX)
            ctx.dtype = dtype
        correct = (gold_logit_N == best_N).sum()
        ctx.mark_non_differentiable(cross_entropy_N, correct)
        return objective, cross_entropy_N, correct

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, scale: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
        readout_gradient_ND, gradient_VX = ctx.saved_tensors
        gradient_VX = gradient_VX * scale
        readout_gradient_ND = (readout_gradient_ND * scale).to(ctx.dtype)
        return readout_gradient_ND, gradient_VX[:, :-1], gradient_VX[:, -1], None, None, None, None

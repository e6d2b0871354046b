"""The output layer and its loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint


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

        Logits exist for ``chunk`` rows at a time, in the compute precision; in training they turn into their gradients
        at once, so that those of all rows are held in that precision until the backward pass, and never in float32.
        """
        device = readout_ND.device.type
        weight: Tensor = self.weight_VD
        bias: Tensor = self.bias_V
        if torch.is_autocast_enabled(device):
            dtype = torch.get_autocast_dtype(device)
            readout_ND, weight, bias = readout_ND.to(dtype), weight.to(dtype), bias.to(dtype)
        needs_gradient = torch.is_grad_enabled() and (readout_ND.requires_grad or weight.requires_grad)
        with torch.autocast(device, enabled=False):
            objective, cross_entropy_N, correct = _CrossEntropy.apply(  # type: ignore[no-untyped-call]
                readout_ND, weight, bias, gold_N, smoothing, chunk, needs_gradient
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


class _CrossEntropy(torch.autograd.Function):
    """Computes the gradients in the forward pass, when the logits are at hand, and scales them in the backward pass."""

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
        objective = torch.zeros((), device=readout_ND.device)
        cross_entropy_N = torch.empty(rows, device=readout_ND.device)
        correct = torch.zeros((), dtype=torch.int64, device=readout_ND.device)
        readout_gradient = torch.empty_like(readout_ND) if needs_gradient else None
        logit_gradients = readout_ND.new_empty(rows, vocabulary) if needs_gradient else None
        # the mean logit of a row, for label smoothing, without the logits
        mean_logit_N = readout_ND @ weight_VD.mean(dim=0) + bias_V.mean()
        for start in range(0, rows, chunk):
            part = slice(start, min(start + chunk, rows))
            logits_NV = torch.addmm(bias_V, readout_ND[part], weight_VD.T)
            gold_N1 = gold_N[part, None]
            gold_logit_N = logits_NV.gather(1, gold_N1)[:, 0].float()
            best_logit_N = logits_NV.amax(dim=1).float()
            if logit_gradients is None:
                log_normalizer_N = logits_NV.float().logsumexp(dim=1)
            else:
                p_NV = torch.softmax(logits_NV, dim=1, out=logit_gradients[part])
                # from the greatest probability, which no precision rounds to 0
                log_normalizer_N = best_logit_N - p_NV.amax(dim=1).float().log()
            cross_entropy_N[part] = log_normalizer_N - gold_logit_N
            objective += smoothing * (log_normalizer_N - mean_logit_N[part].float()).sum()
            correct += (gold_logit_N == best_logit_N).sum()
            if readout_gradient is not None:
                if smoothing > 0.0:
                    p_NV.sub_(smoothing / vocabulary)
                p_NV.scatter_add_(1, gold_N1, p_NV.new_full(gold_N1.shape, smoothing - 1.0))
                torch.mm(p_NV, weight_VD, out=readout_gradient[part])
        objective += (1.0 - smoothing) * cross_entropy_N.sum()
        if logit_gradients is not None:
            ctx.save_for_backward(readout_ND, logit_gradients, readout_gradient)
        ctx.mark_non_differentiable(cross_entropy_N, correct)
        return objective, cross_entropy_N, correct

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, scale: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
        readout_ND, logit_gradients, readout_gradient = ctx.saved_tensors
        scale = scale.to(readout_ND.dtype)
        weight_gradient = (logit_gradients.T @ readout_ND) * scale
        bias_gradient = logit_gradients.sum(dim=0) * scale
        return readout_gradient * scale, weight_gradient, bias_gradient, None, None, None, None

"""The output layer and its loss."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from nmt.nn.precision import compute_dtype
from nmt.ops import TopTokens, cross_entropy, top_tokens

if TYPE_CHECKING:
    from nmt.nn.copies import Copies


@dataclass(frozen=True)
class TokenLoss:
    """The loss over the N tokens of a batch, in nats."""

    objective: Tensor
    """The scalar that training minimises: the label-smoothed cross entropy, summed over the tokens."""
    cross_entropy_N: Tensor
    """-log p(gold) of each token, without smoothing and without gradient."""
    correct: Tensor | None
    """Number of gold tokens that were the most probable ones, or tied; None in training, where counting takes a further
    pass over the logits."""
    guidance: Tensor | None = None
    """The loss of guided attention, which ``objective`` does not include: see ``nmt.models.guidance``."""
    risk: Tensor | None = None
    """The risk, which minimum risk training (Shen et al. 2016) minimises instead."""

    @property
    def cross_entropy(self) -> Tensor:
        """Sum of -log p(gold) over the tokens; exp of its mean is the perplexity."""
        return self.cross_entropy_N.sum()


@dataclass(frozen=True)
class TokenLikelihood:
    """Log-likelihood of each of N gold tokens."""

    smoothed_N: Tensor
    """(1 - smoothing) * log p(gold) + smoothing * mean over the vocabulary of log p; has a gradient."""
    log_p_N: Tensor
    """log p(gold), without gradient."""
    is_best_N: Tensor
    """Mask of the tokens for which the gold token is the most probable one, or tied with it."""


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
        self.suppressed: Sequence[int] = ()
        """Tokens that no target contains, such as padding; see ``Seq2Seq.frozen``."""

    def forward(self, readout_ND: Tensor) -> Tensor:
        """Computes the logits, one for each token of the vocabulary along the last dimension."""
        return F.linear(readout_ND, self.weight_VD, self.bias_V)

    def top_tokens(self, readout_ND: Tensor, count: int, normalized: bool) -> TopTokens:
        """Finds the ``count`` tokens with the largest logits of each row and, if ``normalized``, the logarithm of the
        normalizer of the row."""
        return top_tokens_in_parts(lambda rows: self(readout_ND[rows]), readout_ND, self.vocabulary, count, normalized)

    def loss(
        self, readout_ND: Tensor, gold_N: Tensor, *, smoothing: float = 0.0, copies: Copies | None = None
    ) -> TokenLoss:
        """Computes the cross entropy against ``gold_N`` with uniform label smoothing (Szegedy et al. 2016, section 7):
        (1 - smoothing) * -log p(gold) + smoothing * mean over the vocabulary of -log p. ``copies`` are mixed into p."""
        has_gradient = torch.is_grad_enabled() and (readout_ND.requires_grad or self.weight_VD.requires_grad)
        if has_gradient and copies is None:
            objective, cross_entropy_N = cross_entropy(readout_ND, self.weight_VD, self.bias_V, gold_N, smoothing)
            return TokenLoss(objective, cross_entropy_N, correct=None)
        tokens = self.likelihood(readout_ND, gold_N, smoothing=smoothing, copies=copies)
        correct = None if has_gradient else tokens.is_best_N.sum()
        return TokenLoss(-tokens.smoothed_N.sum(), -tokens.log_p_N, correct)

    def likelihood(
        self, readout_ND: Tensor, gold_N: Tensor, *, smoothing: float = 0.0, chunk: int | None = None,
        copies: Copies | None = None,
    ) -> TokenLikelihood:  # fmt: skip
        """Computes the log-likelihood of each gold token separately, for losses that are not a plain sum over the rows.

        Logits exist for ``chunk`` rows at a time and are computed anew in the backward pass.
        """
        dtype, chunk = compute_dtype(readout_ND), chunk or rows_together(1024, self.weight_VD)

        def part(readout_ND: Tensor, gold_N: Tensor, *of_copies: Tensor) -> tuple[Tensor, Tensor, Tensor]:
            logits_NV = self._wide_logits(readout_ND, dtype)
            if copies is not None:
                # log p is finite where it has a gradient
                least = torch.finfo(logits_NV.dtype).tiny if torch.is_grad_enabled() else 0.0
                logits_NV = copies.with_tensors(of_copies).mixed(logits_NV).clamp(min=least).log()
            log_normalizer_N = logits_NV.logsumexp(dim=1)
            gold_logit_N = logits_NV.gather(1, gold_N[:, None])[:, 0]
            log_p_N = gold_logit_N - log_normalizer_N
            smoothed_N = log_p_N
            if smoothing > 0.0:
                mean_log_p_N = logits_NV.mean(dim=1) - log_normalizer_N
                smoothed_N = (1.0 - smoothing) * log_p_N + smoothing * mean_log_p_N
            return smoothed_N, log_p_N.detach(), gold_logit_N == logits_NV.detach().amax(dim=1)

        rows = (readout_ND, gold_N, *(() if copies is None else copies.tensors()))
        parts = [
            # without gradients nothing is computed anew, and the first checkpoint takes a second for its imports
            checkpoint(part, *inputs, use_reentrant=False) if torch.is_grad_enabled() else part(*inputs)
            for inputs in zip(*(torch.split(each, chunk) for each in rows), strict=True)
        ]
        smoothed, log_p, is_best = zip(*parts, strict=True)
        return TokenLikelihood(torch.cat(smoothed), torch.cat(log_p), torch.cat(is_best))

    def divergence(self, one_ND: Tensor, other_ND: Tensor, *, chunk: int | None = None) -> Tensor:
        """Computes the divergence of two readouts of the same tokens: (KL(p || q) + KL(q || p)) / 2 in nats, summed
        over rows.

        Logits exist for ``chunk`` rows at a time and are computed anew in the backward pass.
        """
        dtype, chunk = compute_dtype(one_ND), chunk or rows_together(512, self.weight_VD)

        def part(one_ND: Tensor, other_ND: Tensor) -> Tensor:
            log_p_NV, log_q_NV = (self._wide_logits(x_ND, dtype).log_softmax(dim=1) for x_ND in (one_ND, other_ND))
            return 0.5 * ((log_p_NV.exp() - log_q_NV.exp()) * (log_p_NV - log_q_NV)).sum()

        parts = zip(torch.split(one_ND, chunk), torch.split(other_ND, chunk), strict=True)
        return torch.stack([checkpoint(part, *both, use_reentrant=False) for both in parts]).sum()

    def _wide_logits(self, readout_ND: Tensor, dtype: torch.dtype) -> Tensor:
        """Computes the logits in ``dtype`` and returns them in float32 or wider. Autocast is off: it casts the weight
        once for all chunks, and so would add up their gradients in its own precision."""
        with torch.autocast(readout_ND.device.type, enabled=False):
            logits_NV = F.linear(readout_ND.to(dtype), self.weight_VD.to(dtype), self.bias_V.to(dtype))
            return logits_NV.to(torch.promote_types(dtype, torch.float32))


def rows_together(on_cpu: int, weight_VD: Tensor) -> int:
    """Number of rows of a loss whose logits exist at the same time: ``on_cpu``, or on CUDA as many as take a 64th of
    the device's memory in float32."""
    if weight_VD.device.type != "cuda":
        return on_cpu
    memory = torch.cuda.get_device_properties(weight_VD.device).total_memory
    return max(memory // 64 // (4 * weight_VD.shape[0]), 1)


def top_tokens_in_parts(
    logits: Callable[[slice], Tensor], of_rows: Tensor, vocabulary: int, count: int, normalized: bool
) -> TopTokens:
    """Applies ``nmt.ops.top_tokens`` to logits that are computed some rows at a time."""
    parts = [top_tokens(logits(part), count, normalized) for part in row_parts(of_rows, vocabulary)]
    if len(parts) == 1:
        return parts[0]
    logit, token, normalizer = zip(*parts, strict=True)
    return TopTokens(torch.cat(logit), torch.cat(token), torch.cat(normalizer) if normalized else None)


MAX_LOGITS = 1 << 22
"""Number of logits that are computed and read together, 16 MB in float32. A batch has several times as many, which
would leave the cache of a CPU before they are read. On other devices, where memory is the only limit, the number is 64
times as large."""


def row_parts(of_rows: Tensor, vocabulary: int, *, multiple_of: int = 1) -> list[slice]:
    """Divides rows of logits, one for each entry of ``of_rows``, into slices of at most ``MAX_LOGITS`` logits, cut at
    multiples of ``multiple_of`` rows."""
    most = MAX_LOGITS if of_rows.device.type == "cpu" else 64 * MAX_LOGITS
    size = max(most // (vocabulary * multiple_of), 1) * multiple_of
    return [slice(start, min(start + size, len(of_rows))) for start in range(0, len(of_rows), size)]

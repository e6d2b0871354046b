"""Operations worth accelerating. The body of each is its textbook formula.

``Operation.register`` puts another implementation in the place of a body. Tests hold each one to its body.

Shapes: B batch, H heads, T target positions, S source positions, A width of a query or key, D width of a readout, N
rows, V vocabulary, K tokens of a row.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from nmt.core.operation import Operation


class TopTokens(NamedTuple):
    """The K tokens with the largest logits of each row, largest first; equal logits may be in any order."""

    logit_NK: Tensor
    """Logits in float32; -inf if a row has fewer than K tokens above -inf."""
    token_NK: Tensor
    log_normalizer_N: Tensor | None
    """log sum exp of all logits of a row in float32; None if it is not needed."""


@Operation
def attend(
    query_BHTA: Tensor, keys_BHSA: Tensor, values_BHSA: Tensor, is_hidden: Tensor | None, scale: float,
    dropout_mask: Tensor | None,
) -> tuple[Tensor, Callable[[], Tensor]]:  # fmt: skip
    """Computes softmax(scale q . k) v (Vaswani et al. 2017, equation 1): the contexts (B, H, T, A), and the weights on
    demand.

    ``is_hidden`` is the attention mask, True where a query may not attend to a key; it broadcasts to (B, H, T, S).
    ``dropout_mask`` multiply the weights. The weights (B, H, T, S) are in float32 or wider and without dropout.
    """
    # e = scale q . k
    scores_BHTS = scale * (query_BHTA @ keys_BHSA.mT)
    if is_hidden is not None:
        scores_BHTS = scores_BHTS.masked_fill(is_hidden, -torch.inf)
    # alpha = softmax(e), summed in float32: half precision would lose small weights
    weights_BHTS = scores_BHTS.softmax(dim=-1, dtype=torch.promote_types(scores_BHTS.dtype, torch.float32))
    # products run in the type of the values
    kept_BHTS = weights_BHTS.to(values_BHSA.dtype)
    if dropout_mask is not None:
        kept_BHTS = kept_BHTS * dropout_mask
    return kept_BHTS @ values_BHSA, lambda: weights_BHTS


@Operation
def cross_entropy(
    readout_ND: Tensor, weight_VD: Tensor, bias_V: Tensor, gold_N: Tensor, smoothing: float
) -> tuple[Tensor, Tensor]:
    """Computes the sum over tokens of (1 - smoothing) * -log p(gold) + smoothing * mean over the vocabulary of -log p,
    and -log p(gold) of each token without gradient; p = softmax(W readout + b)."""
    logits_NV = F.linear(readout_ND, weight_VD, bias_V)
    log_p_NV = logits_NV.log_softmax(dim=1, dtype=torch.promote_types(logits_NV.dtype, torch.float32))
    # -log p(gold)
    cross_entropy_N = -log_p_NV.gather(1, gold_N[:, None])[:, 0]
    # the smoothed target gives 1 - smoothing to the gold token and shares the rest among all tokens
    objective = (1.0 - smoothing) * cross_entropy_N.sum() - smoothing * log_p_NV.mean(dim=1).sum()
    return objective, cross_entropy_N.detach()


@Operation
def log_normalizer(logits_NV: Tensor) -> Tensor:
    """Computes log sum exp of each row, (N,), in float32 or wider."""
    return logits_NV.to(torch.promote_types(logits_NV.dtype, torch.float32)).logsumexp(dim=1)


@Operation
def top_tokens(logits_NV: Tensor, count: int, normalized: bool) -> TopTokens:
    """Finds the ``count`` largest logits of each row and, if ``normalized``, the logarithm of the normalizer of the
    row."""
    wide_NV = logits_NV.to(torch.promote_types(logits_NV.dtype, torch.float32))
    return TopTokens(*wide_NV.topk(count, dim=1), log_normalizer(logits_NV) if normalized else None)

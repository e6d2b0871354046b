"""Copies of source tokens in the distribution of the next target token."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from nmt.core.record import BatchRecord


@dataclass(frozen=True)
class Copies(BatchRecord):
    """The probabilities of copying, for N rows. Shapes: S source positions, V vocabulary of both sides."""

    probability_NS: Tensor
    """Of each source position; their sum is the probability that the token is copied at all."""
    token_NS: Tensor
    """The token of each source position."""

    def mixed(self, logits_NV: Tensor) -> Tensor:
        """Computes the mixture of the output layer's distribution and the copies, (N, V), in float32 or wider:

        p(y) = (1 - c) softmax(logits)_y + sum over s with x_s = y of c_s,   c = sum over s of c_s
        """
        dtype = torch.promote_types(logits_NV.dtype, torch.float32)
        copied_NS = self.probability_NS.to(dtype)
        generated_NV = (1.0 - copied_NS.sum(dim=1, keepdim=True)) * logits_NV.softmax(dim=1, dtype=dtype)
        return generated_NV.scatter_add(1, self.token_NS, copied_NS)

    def log_mixed(self, logits_NV: Tensor) -> Tensor:
        """Computes the logarithm of ``mixed``. Where that is 0, as for a token that is ruled out, its gradient is 0,
        too."""
        probability_NV = self.mixed(logits_NV)
        if not probability_NV.requires_grad:
            return probability_NV.log()
        # the derivative of log at 0 is inf, and inf x 0 would be NaN
        is_zero_NV = probability_NV == 0
        return probability_NV.masked_fill(is_zero_NV, 1.0).log().masked_fill(is_zero_NV, -torch.inf)

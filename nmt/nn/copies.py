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

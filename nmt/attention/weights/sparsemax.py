"""Sparsemax weights: the point of the simplex nearest to the scores; most weights are exactly 0.

Martins & Astudillo 2016, "From Softmax to Sparsemax: A Sparse Model of Attention and Multi-Label Classification".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar, Literal

from nmt.attention.mechanism import AttentionContext, AttentionWeights, Normalizer

if TYPE_CHECKING:
    from torch import Tensor


class Sparsemax(Normalizer):
    """weights = argmin over p in the simplex of |p - scores|^2 = max(scores - tau, 0), with the tau that makes them
    sum to 1 (algorithm 1)."""

    formula: ClassVar[str] = "argmin over p ∈ Δ of |p - scores|²"
    source: ClassVar[str] = "Martins & Astudillo 2016"

    kind: Literal["sparsemax"] = "sparsemax"

    def __call__(
        self, scores_BHTS: Tensor, context: AttentionContext, parameters: Mapping[str, Tensor]
    ) -> AttentionWeights:
        """Computes the weights. Autograd through tau gives the Jacobian of equation 9; a score of -inf is below every
        tau."""
        # adding a number to all scores changes no weight; near 0 the rounding errors are smallest
        scores_BHTS = scores_BHTS - scores_BHTS.amax(dim=-1, keepdim=True).detach()
        # z_(1) >= z_(2) >= ..., and their running sums
        descending_BHTS = scores_BHTS.sort(dim=-1, descending=True).values
        sums_BHTS = descending_BHTS.cumsum(dim=-1)
        rank_S = (sums_BHTS.new_ones(sums_BHTS.shape[-1])).cumsum(dim=0)
        # the support is the largest k with 1 + k z_(k) > z_(1) + ... + z_(k)
        size_BHT1 = (1.0 + rank_S * descending_BHTS > sums_BHTS).sum(dim=-1, keepdim=True)
        # tau = (z_(1) + ... + z_(k) - 1) / k
        tau_BHT1 = (sums_BHTS.gather(-1, size_BHT1 - 1) - 1.0) / size_BHT1
        return AttentionWeights((scores_BHTS - tau_BHT1).clamp(min=0.0))

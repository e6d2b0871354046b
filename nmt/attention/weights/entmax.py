"""Entmax weights: between softmax and sparsemax; words of low score get a weight of exactly 0.

Peters, Niculae & Martins 2019, "Sparse Sequence-to-Sequence Models".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field

from nmt.attention.mechanism import AttentionContext, AttentionWeights, Parameters, Weighting

if TYPE_CHECKING:
    from torch import Tensor

BISECTIONS = 30
"""Halvings of an interval of length 1 at most: after 30 it is shorter than float32 can tell near 1."""


class Entmax(Weighting):
    """weights = argmax over p in the simplex of p . scores + (Tsallis entropy of p with alpha) = max((alpha - 1) scores
    - tau, 0)^(1 / (alpha - 1)), with the tau that makes them sum to 1 (equations 10 and 11).

    alpha = 1 is softmax, 2 is sparsemax; 1.5 is the paper's choice for translation.
    """

    formula: ClassVar[str] = "max((α - 1) scores - τ, 0)^(1 / (α - 1))"
    source: ClassVar[str] = "Peters et al. 2019"

    kind: Literal["entmax"] = "entmax"
    alpha: Annotated[float, Field(gt=1.0, le=2.0)] = 1.5
    """Between 1 (softmax, excluded) and 2 (sparsemax)."""

    def __call__(self, scores_BHTS: Tensor, context: AttentionContext, parameters: Parameters) -> AttentionWeights:
        """tau by bisection, without gradients; then one step of Newton's method, through which autograd computes the
        exact Jacobian (proposition 2)."""
        import torch

        power = 1.0 / (self.alpha - 1.0)
        # z = (alpha - 1) scores; weights do not change if all scores do by as much
        z_BHTS = (self.alpha - 1.0) * (scores_BHTS - scores_BHTS.amax(dim=-1, keepdim=True).detach())
        with torch.no_grad():
            # the largest weight is between 1 / S and 1, and max z = 0: so tau is between -1 and -S^(1 - alpha)
            low_BHT1 = torch.full_like(z_BHTS[..., :1], -1.0)
            width = 1.0 - z_BHTS.shape[-1] ** (1.0 - self.alpha)
            for _ in range(BISECTIONS):
                width /= 2.0
                middle_BHT1 = low_BHT1 + width
                total_BHT1 = (z_BHTS - middle_BHT1).clamp(min=0.0).pow(power).sum(dim=-1, keepdim=True)
                low_BHT1 = torch.where(total_BHT1 >= 1.0, middle_BHT1, low_BHT1)
        # the support is where p > 0; outside it no gradient passes
        is_support_BHTS = z_BHTS > low_BHT1
        base_BHTS = torch.where(is_support_BHTS, z_BHTS - low_BHT1, 1.0)
        # tau + (sum of p - 1) / (sum of p^(2 - alpha) / (alpha - 1)): its gradient with respect to z is p^(2 - alpha)
        # divided by the sum of p^(2 - alpha), as the implicit function theorem has it
        slope_BHT1 = (power * base_BHTS.pow(power - 1.0) * is_support_BHTS).sum(dim=-1, keepdim=True).detach()
        total_BHT1 = (base_BHTS.pow(power) * is_support_BHTS).sum(dim=-1, keepdim=True)
        tau_BHT1 = low_BHT1 + (total_BHT1 - 1.0) / slope_BHT1
        base_BHTS = torch.where(is_support_BHTS, z_BHTS - tau_BHT1, 1.0).clamp(min=0.0)
        weights_BHTS = base_BHTS.pow(power) * is_support_BHTS
        return AttentionWeights(weights_BHTS / weights_BHTS.sum(dim=-1, keepdim=True).detach())

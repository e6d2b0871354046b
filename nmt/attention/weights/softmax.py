"""Softmax weights: soft attention over all source positions (Bahdanau et al. 2015, equation 6)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field

from nmt.attention.mechanism import AttentionContext, AttentionWeights, Parameters, Weighting

if TYPE_CHECKING:
    from torch import Tensor


class Softmax(Weighting):
    """weight_j = exp(score_j / T) / sum over k of exp(score_k / T), T the ``temperature``."""

    formula: ClassVar[str] = "softmax(scores / T), T = 1 unless set"
    source: ClassVar[str] = "Bahdanau et al. 2015"

    kind: Literal["softmax"] = "softmax"
    temperature: Annotated[float, Field(gt=0.0)] = 1.0
    """T: below 1 the weights are sharper, above 1 flatter. It may be changed for a trained model."""

    def __call__(self, scores_BHTS: Tensor, context: AttentionContext, parameters: Parameters) -> AttentionWeights:
        """exp(-inf) = 0: padding gets exactly 0."""
        if self.temperature != 1.0:
            scores_BHTS = scores_BHTS / self.temperature
        return AttentionWeights(scores_BHTS.softmax(dim=-1))

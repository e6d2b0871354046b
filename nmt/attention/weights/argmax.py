"""Argmax weights: the best-scored source position for each word, in training too.

Bengio, Léonard & Courville 2013, "Estimating or Propagating Gradients Through Stochastic Neurons".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from nmt.attention.mechanism import AttentionContext, AttentionWeights, Parameters, Weighting

if TYPE_CHECKING:
    from torch import Tensor


class Argmax(Weighting):
    """All weight on s = argmax(scores); the gradient is that of softmax(scores) (straight-through estimator)."""

    formula: ClassVar[str] = "one-hot, s = argmax(scores)"
    source: ClassVar[str] = "Bengio et al. 2013"
    chooses: ClassVar[bool] = True

    kind: Literal["argmax"] = "argmax"

    def __call__(self, scores_BHTS: Tensor, context: AttentionContext, parameters: Parameters) -> AttentionWeights:
        """One-hot weights; padding, at -inf, is never the best and gets no gradient."""
        if not context.is_training:
            return AttentionWeights(one_hot(scores_BHTS))
        soft_BHTS = scores_BHTS.softmax(dim=-1)
        # added in this order, the other positions' weights are 0 to the last bit
        return AttentionWeights(one_hot(scores_BHTS) + (soft_BHTS - soft_BHTS.detach()))


def one_hot(scores_BHTS: Tensor) -> Tensor:
    """Returns weights with all weight on the position with the highest score."""
    best_BHT1 = scores_BHTS.argmax(dim=-1, keepdim=True)
    return scores_BHTS.new_zeros(scores_BHTS.shape).scatter(-1, best_BHT1, 1.0)

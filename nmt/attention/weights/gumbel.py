"""Gumbel weights: one source position for each word, learnt through a relaxed draw.

Jang, Gu & Poole 2017, "Categorical Reparameterization with Gumbel-Softmax".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field

from nmt.attention.mechanism import AttentionContext, AttentionWeights, Parameters, Weighting
from nmt.attention.weights.argmax import one_hot

if TYPE_CHECKING:
    from torch import Tensor

Positive = Annotated[float, Field(gt=0.0)]


class Gumbel(Weighting):
    """All weight on s = argmax(scores + g), g ~ Gumbel(0, 1), which is a draw from softmax(scores).

    The gradient is that of softmax((scores + g) / temperature) (straight-through, section 2.2). The temperature falls
    exponentially from ``start`` to ``end`` over ``updates`` updates and stays there. Decoding takes the best-scored
    position.
    """

    formula: ClassVar[str] = "one-hot, s = argmax(scores + g)"
    source: ClassVar[str] = "Jang et al. 2017"
    chooses: ClassVar[bool] = True

    kind: Literal["gumbel"] = "gumbel"
    start: Positive = 1.0
    """The temperature before the first update."""
    end: Positive = 0.5
    """The temperature after ``updates``, below which the gradient's variance grows."""
    updates: Annotated[int, Field(gt=0)] = 2000
    """Number of updates during which the temperature falls."""

    def temperature(self, update: int) -> float:
        """Computes the temperature: start x (end / start)^(update / updates), then end."""
        return self.start * float((self.end / self.start) ** min(1.0, update / self.updates))

    def __call__(self, scores_BHTS: Tensor, context: AttentionContext, parameters: Parameters) -> AttentionWeights:
        """One-hot weights; padding, at -inf, is never drawn and gets no gradient."""
        if not context.is_training:
            return AttentionWeights(one_hot(scores_BHTS))
        # -log of an exponential variate; one that is rounded to 0 would draw padding
        noise_BHTS = -scores_BHTS.new_empty(scores_BHTS.shape).exponential_().clamp(min=1e-30).log()
        # the relaxed draw, whose gradient replaces that of the hard one
        soft_BHTS = ((scores_BHTS + noise_BHTS) / self.temperature(context.update)).softmax(dim=-1)
        # added in this order, the other positions' weights are 0 to the last bit
        return AttentionWeights(one_hot(soft_BHTS) + (soft_BHTS - soft_BHTS.detach()))

"""Hard weights: one source position for each word.

Xu et al. 2015, "Show, Attend and Tell", section 4.1; Mnih et al. 2014, "Recurrent Models of Visual Attention"; summed
over all positions: Wu, Shapiro & Cotterell 2018, "Hard Non-Monotonic Attention for Character-Level Transduction".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from nmt.attention.mechanism import AttentionContext, AttentionWeights, Parameter, Parameters, Sizes
from nmt.attention.reinforce import HardAttention

if TYPE_CHECKING:
    from torch import Tensor


class Hard(HardAttention):
    """All weight on one position: the best-scored when decoding.

    In training (``reinforce``) it is drawn from softmax(scores), which learns by REINFORCE, or at some of the steps the
    expectation stands for a draw (see ``HardAttention``); or (``marginal``) the
    likelihood is summed over every position, p(y_t) = sum over s of softmax(scores)_s p(y_t | s), exactly, at the cost
    of one output layer for each. The sum is exact only where a choice touches no later step: with ``decoder.query:
    current`` and without ``input_feeding``.
    """

    formula: ClassVar[str] = "one-hot, s ~ softmax(scores)"
    source: ClassVar[str] = "Xu et al. 2015; Wu et al. 2018"

    kind: Literal["hard"] = "hard"
    training: Literal["reinforce", "marginal"] = "reinforce"
    """Training: REINFORCE from one draw for each step, or the exact sum over all positions."""

    @property
    def marginalizes(self) -> bool:
        """See ``Weighting.marginalizes``."""
        return self.training == "marginal"

    def parameters(self, sizes: Sizes) -> dict[str, Parameter]:
        """The parameters of the baseline; the exact sum needs none."""
        return {} if self.marginalizes else super().parameters(sizes)

    def __call__(self, scores_BHTS: Tensor, context: AttentionContext, parameters: Parameters) -> AttentionWeights:
        """One-hot weights, or in training the probabilities of the positions; for the exact sum, always those."""
        if self.marginalizes and context.is_training:
            # the decoder sums over the positions by these probabilities
            return AttentionWeights(scores_BHTS.softmax(dim=-1))
        look_BTS, sampled = self.sample(scores_BHTS, context, parameters)
        return AttentionWeights(look_BTS[:, None], sampled)

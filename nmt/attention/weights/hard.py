"""Hard weights: one source position for each word.

Xu et al. 2015, "Show, Attend and Tell", section 4.1; Mnih et al. 2014, "Recurrent Models of Visual Attention"; summed
over all positions: Wu, Shapiro & Cotterell 2018, "Hard Non-Monotonic Attention for Character-Level Transduction".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar, Literal

from nmt.attention.mechanism import AttentionContext, AttentionWeights, Parameter, Sizes
from nmt.attention.reinforce import Sampled

if TYPE_CHECKING:
    from torch import Tensor


class Hard(Sampled):
    """All weight on one position: the best-scored when decoding.

    In training (``reinforce``) it is drawn from softmax(scores), which learns by REINFORCE, and some of the steps use
    the expectation in place of a draw (see ``Sampled``); or (``marginal``) the likelihood is summed over every
    position, p(y_t) = sum over s of softmax(scores)_s p(y_t | s), exactly, at the cost of one output layer for each.
    The sum is exact only where a choice touches no later step: with ``decoder.query: current`` and without
    ``input_feeding``.
    """

    formula: ClassVar[str] = "one-hot, s ~ softmax(scores)"
    source: ClassVar[str] = "Xu et al. 2015; Wu et al. 2018"

    kind: Literal["hard"] = "hard"
    training: Literal["reinforce", "marginal"] = "reinforce"
    """Training: REINFORCE from one draw for each step, or the exact sum over all positions."""

    @property
    def marginalizes(self) -> bool:
        """See ``Normalizer.marginalizes``."""
        return self.training == "marginal"

    def parameters(self, sizes: Sizes) -> Mapping[str, Parameter]:
        """Returns the parameters of the baseline; the exact sum needs none."""
        return {} if self.marginalizes else super().parameters(sizes)

    def __call__(
        self, scores_BHTS: Tensor, context: AttentionContext, parameters: Mapping[str, Tensor]
    ) -> AttentionWeights:
        """Returns one-hot weights or, at some steps of training, the probabilities of the positions; with the exact
        sum, training always returns the probabilities."""
        if self.marginalizes and context.is_training:
            # the decoder sums over the positions by these probabilities
            return AttentionWeights(scores_BHTS.softmax(dim=-1))
        look_BTS, sampled = self.look(scores_BHTS, context, parameters)
        return AttentionWeights(look_BTS[:, None], sampled)

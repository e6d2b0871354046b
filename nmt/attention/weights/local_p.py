"""Local predictive weights: a window round a position that the query predicts.

Luong, Pham & Manning 2015, "Effective Approaches to Attention-based Neural Machine Translation", section 3.2, local-p.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from nmt.attention.mechanism import AttentionContext, AttentionWeights, Parameter, Parameters, Sizes, Weighting
from nmt.nn.config import Size

if TYPE_CHECKING:
    from torch import Tensor


class LocalPredictive(Weighting):
    """p = S sigmoid(v . tanh(W q)) (equation 9), S the sentence's length; in the window |s - p| <= D the softmax of the
    scores is multiplied by exp(-(s - p)^2 / (2 (D / 2)^2)) (equation 10), through which p learns.

    The paper uses this product unchanged. Here it is normalised to sum to 1 again, like the weights of every other
    mechanism, so that contexts keep their size wherever the window is.
    """

    formula: ClassVar[str] = "softmax(scores) · exp(-(s - p)² / 2(D/2)²), p = S σ(v·tanh(W q))"
    source: ClassVar[str] = "Luong et al. 2015"

    kind: Literal["local_p"] = "local_p"
    width: Size = 10
    """D, half the window's width, in subwords."""

    def parameters(self, sizes: Sizes) -> dict[str, Parameter]:
        """W and v."""
        return {"W_QQ": Parameter((sizes.query, sizes.query)), "v_Q": Parameter((sizes.query,))}

    def __call__(self, scores_BHTS: Tensor, context: AttentionContext, parameters: Parameters) -> AttentionWeights:
        """The product of softmax and Gaussian is the softmax of the sum of their exponents."""
        # v . tanh(W q)
        raw_BT = (context.query_BTQ @ parameters["W_QQ"].mT).tanh() @ parameters["v_Q"]
        # p = S sigmoid(...): S counts the words that the query may see
        centre_BT1 = self.allowed(scores_BHTS) * raw_BT.sigmoid().unsqueeze(-1)
        source_S = centre_BT1.new_ones(scores_BHTS.shape[-1]).cumsum(dim=0) - 1.0
        distance_BTS = source_S - centre_BT1
        # -(s - p)^2 / (2 (D / 2)^2) = -2 ((s - p) / D)^2
        exponent_BTS = -2.0 * (distance_BTS / self.width).square()
        # D >= 1, and no centre is as far as 1 from the nearest word: so the window is never empty
        exponent_BTS = exponent_BTS.masked_fill(distance_BTS.abs() > self.width, float("-inf"))
        return AttentionWeights((scores_BHTS + exponent_BTS[:, None]).softmax(dim=-1))

"""Local monotonic weights: a window that moves along with the target.

Luong, Pham & Manning 2015, "Effective Approaches to Attention-based Neural Machine Translation", section 3.2, local-m.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from nmt.attention.mechanism import AttentionContext, AttentionWeights, Parameters, Weighting
from nmt.nn.config import Size

if TYPE_CHECKING:
    from torch import Tensor


class LocalMonotonic(Weighting):
    """softmax of the scores in the window |s - p_t| <= width round p_t = t; past the sentence's end p_t stays there."""

    formula: ClassVar[str] = "softmax(scores) in |s - t| ≤ D"
    source: ClassVar[str] = "Luong et al. 2015"

    kind: Literal["local_m"] = "local_m"
    width: Size = 10
    """D, half the window's width, in subwords."""

    def __call__(self, scores_BHTS: Tensor, context: AttentionContext, parameters: Parameters) -> AttentionWeights:
        """The window always holds p_t, which may be looked at, so something is left to weigh."""
        # p_t = t, or the last word where the target is longer than the source
        centre_BT1 = context.position_BT.unsqueeze(-1).minimum(self.allowed(scores_BHTS) - 1)
        source_S = centre_BT1.new_ones(scores_BHTS.shape[-1]).cumsum(dim=0) - 1
        is_outside_BTS = (source_S - centre_BT1).abs() > self.width
        # -inf outside of the window, so that softmax runs over the positions inside
        return AttentionWeights(scores_BHTS.masked_fill(is_outside_BTS[:, None], float("-inf")).softmax(dim=-1))

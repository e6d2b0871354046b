"""Glimpse weights: windows of growing width round one position, as a retina sees.

Mnih et al. 2014, "Recurrent Models of Visual Attention", section 2 and figure 1, with words for pixels.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field

from nmt.attention.mechanism import AttentionContext, AttentionWeights, Parameters
from nmt.attention.reinforce import HardAttention

if TYPE_CHECKING:
    from torch import Tensor


class Glimpse(HardAttention):
    """Head k weighs alike the words within 2^k - 1 of a position: 1, 3, 7 ... words, sharp at the centre and blurred
    around it, as the paper's sensor takes ever larger patches at the resolution of the smallest. The contexts of all
    heads are fused, tanh(W [c_1; ...; c_H]).

    In training the position is drawn from softmax(scores) and learns by REINFORCE; the paper draws from a Gaussian
    round a predicted position, but a sentence has so few positions that each can have its own probability. Decoding
    takes the best-scored position, where the paper takes the mean. With ``score: location`` the position is chosen from
    the state alone, as in the paper.
    """

    formula: ClassVar[str] = "head k: mean over |s - p| < 2ᵏ, p ~ softmax(scores)"
    source: ClassVar[str] = "Mnih et al. 2014"

    kind: Literal["glimpse"] = "glimpse"
    scales: Annotated[int, Field(ge=1, le=8)] = 3
    """Number of windows."""

    @property
    def heads(self) -> int:
        """Number of heads, one for each window."""
        return self.scales

    def __call__(self, scores_BHTS: Tensor, context: AttentionContext, parameters: Parameters) -> AttentionWeights:
        """Windows stop at the sentence's ends: every weight is 1 over the number of words in its window. Of an
        expectation over positions it is the expected weight."""
        look_BTP, sampled = self.sample(scores_BHTS, context, parameters)
        is_word_BS = scores_BHTS[:, 0, 0].isfinite()  # the same for every step: what is forbidden is the sentence's end
        place_S = is_word_BS[0].new_ones(is_word_BS.shape[1]).cumsum(dim=0)
        # scale k sees 2^k - 1 words: 0, 1, 3 ... to either side
        radius_H = 2 ** place_S.new_ones(self.scales).cumsum(dim=0) // 2 - 1
        is_near_HPS = (place_S[:, None] - place_S).abs() <= radius_H[:, None, None]
        # for each position p of a glimpse, the words near it
        window_BHPS = (is_near_HPS & is_word_BS[:, None, None]).to(look_BTP.dtype)
        window_BHPS = window_BHPS / window_BHPS.sum(dim=-1, keepdim=True).clamp(min=1.0)  # empty far past the end
        # the weights are the windows of the positions that were chosen
        return AttentionWeights(look_BTP[:, None] @ window_BHPS, sampled)

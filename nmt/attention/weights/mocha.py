"""Monotonic chunkwise weights: a soft window that ends at a position which only moves on.

Chiu & Raffel 2018, "Monotonic Chunkwise Attention".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from nmt.attention.mechanism import AttentionContext, AttentionWeights, Parameters
from nmt.attention.weights.monotonic import Monotonic
from nmt.nn.config import Size

if TYPE_CHECKING:
    from torch import Tensor


class Mocha(Monotonic):
    """The softmax of the scores over the ``chunk`` words that end at the position t of ``Monotonic``.

    Training uses the expectation over t (equation 10): weight_j = sum over k from j to j + chunk - 1 of (probability
    of t = k) x exp(score_j) / (sum over l from k - chunk + 1 to k of exp(score_l)). The paper has a second score for
    the window; here one score serves both, and the gain and the offset of ``Monotonic`` tell them apart.
    """

    formula: ClassVar[str] = "softmax(scores) over w words up to t; t as in monotonic"
    source: ClassVar[str] = "Chiu & Raffel 2018"

    kind: Literal["mocha"] = "mocha"  # type: ignore[assignment]
    chunk: Size = 3
    """Number of words in a window."""

    def __call__(self, scores_BHTS: Tensor, context: AttentionContext, parameters: Parameters) -> AttentionWeights:
        """The state is the probability of each t."""
        end_BTS = self.positions(scores_BHTS, context, parameters)
        source_S = end_BTS.new_ones(end_BTS.shape[-1]).cumsum(dim=0)
        # for each end k, the softmax over the words from k - chunk + 1 to k
        distance_KS = source_S[:, None] - source_S
        is_outside_KS = (distance_KS < 0) | (distance_KS >= self.chunk)
        windows_BTKS = scores_BHTS[:, 0, :, None].masked_fill(is_outside_KS, float("-inf"))
        # an end in the padding has probability 0, and may have a window without words
        windows_BTKS = windows_BTKS.masked_fill(windows_BTKS.isinf().all(dim=-1, keepdim=True), 0.0).softmax(dim=-1)
        weights_BTS = (end_BTS[..., None, :] @ windows_BTKS)[..., 0, :]
        return AttentionWeights(weights_BTS[:, None], state_BTX=end_BTS)

"""Softmax weights: soft attention over all source positions (Bahdanau et al. 2015, equation 6)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar, Literal

from nmt.attention.mechanism import AttentionContext, AttentionWeights, Normalizer

if TYPE_CHECKING:
    from torch import Tensor


class Softmax(Normalizer):
    """weight_j = exp(score_j) / sum over k of exp(score_k)."""

    formula: ClassVar[str] = "softmax(scores)"
    source: ClassVar[str] = "Bahdanau et al. 2015"

    kind: Literal["softmax"] = "softmax"

    def __call__(
        self, scores_BHTS: Tensor, context: AttentionContext, parameters: Mapping[str, Tensor]
    ) -> AttentionWeights:
        """Computes the softmax. Padding gets exactly 0, because exp(-inf) = 0."""
        return AttentionWeights(scores_BHTS.softmax(dim=-1))

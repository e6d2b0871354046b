"""General score: query . W key (Luong et al. 2015, "Effective Approaches to Attention-based NMT", section 3.1)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar, Literal

from nmt.attention.mechanism import Projections, Score, Sizes

if TYPE_CHECKING:
    from torch import Tensor


class General(Score):
    """score = q . W k. W k is formed once for each sentence, so a step costs no more than the dot product."""

    formula: ClassVar[str] = "q·W k"
    source: ClassVar[str] = "Luong et al. 2015"

    kind: Literal["general"] = "general"

    def projections(self, sizes: Sizes) -> Projections:
        """Returns the projection W (Q, K)."""
        return Projections(key=sizes.query)

    def __call__(self, query_BHTA: Tensor, keys_BHSA: Tensor, parameters: Mapping[str, Tensor]) -> Tensor:
        """Computes query . (W key) for all pairs."""
        return query_BHTA @ keys_BHSA.mT

"""Dot-product score: query . key (Luong et al. 2015, "Effective Approaches to Attention-based NMT", section 3.1)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar, Literal

from nmt.attention.mechanism import Projections, Score, Sizes

if TYPE_CHECKING:
    from torch import Tensor


class Dot(Score):
    """score = q . k. It has no parameters if query and key are equally wide; else the key is first projected, k' = W
    k."""

    formula: ClassVar[str] = "q·k"
    source: ClassVar[str] = "Luong et al. 2015"

    kind: Literal["dot"] = "dot"

    def projections(self, sizes: Sizes) -> Projections:
        """Returns the projection W (Q, K), which is needed only if the widths differ."""
        return Projections.to_one_width(sizes)

    def __call__(self, query_BHTA: Tensor, keys_BHSA: Tensor, parameters: Mapping[str, Tensor]) -> Tensor:
        """Computes query . key for all pairs."""
        return query_BHTA @ keys_BHSA.mT

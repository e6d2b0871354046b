"""Dot-product score: query . key (Luong et al. 2015, "Effective Approaches to Attention-based NMT", section 3.1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from nmt.attention.mechanism import Parameters, Score

if TYPE_CHECKING:
    from torch import Tensor


class Dot(Score):
    """score = q . k. No parameters where query and key are equally wide; else the key is first projected, k' = U k."""

    formula: ClassVar[str] = "q·k"
    source: ClassVar[str] = "Luong et al. 2015"

    kind: Literal["dot"] = "dot"

    def __call__(self, query_BHTQ: Tensor, keys_BHSQ: Tensor, parameters: Parameters) -> Tensor:
        """query . key for all pairs."""
        # q . k
        return query_BHTQ @ keys_BHSQ.mT

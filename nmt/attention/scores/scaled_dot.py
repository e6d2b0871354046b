"""Scaled dot-product score: query . key / sqrt(width).

Vaswani et al. 2017, "Attention Is All You Need", equation 1.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, ClassVar, Literal

from nmt.attention.mechanism import Parameters, Score

if TYPE_CHECKING:
    from torch import Tensor


class ScaledDot(Score):
    """score = q . k / sqrt(Q). The score of two vectors with independent entries of variance 1 has variance 1 at any
    width.

    Without parameters where query and key are equally wide; else the key is first projected, k' = U k.
    """

    formula: ClassVar[str] = "q·k / √d"
    source: ClassVar[str] = "Vaswani et al. 2017"

    kind: Literal["scaled_dot"] = "scaled_dot"

    def __call__(self, query_BHTQ: Tensor, keys_BHSQ: Tensor, parameters: Parameters) -> Tensor:
        """query . key / sqrt(width) for all pairs."""
        # q . k / sqrt(Q)
        return (query_BHTQ / math.sqrt(query_BHTQ.shape[-1])) @ keys_BHSQ.mT

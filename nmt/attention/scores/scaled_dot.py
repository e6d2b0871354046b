"""Scaled dot-product score: query . key / sqrt(width).

Vaswani et al. 2017, "Attention Is All You Need", equation 1.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar, Literal

from nmt.attention.mechanism import Projections, Score, Sizes

if TYPE_CHECKING:
    from torch import Tensor


class ScaledDot(Score):
    """score = q . k / sqrt(Q). The score of two vectors with independent entries of variance 1 has variance 1 at any
    width.

    It has no parameters if query and key are equally wide; else the key is first projected, k' = W k.
    """

    formula: ClassVar[str] = "q·k / √d"
    source: ClassVar[str] = "Vaswani et al. 2017"

    kind: Literal["scaled_dot"] = "scaled_dot"

    def projections(self, sizes: Sizes) -> Projections:
        """Returns the projection W (Q, K), which is needed only if the widths differ."""
        return Projections.to_one_width(sizes)

    def __call__(self, query_BHTA: Tensor, keys_BHSA: Tensor, parameters: Mapping[str, Tensor]) -> Tensor:
        """Computes query . key / sqrt(width) for all pairs."""
        return (query_BHTA / math.sqrt(query_BHTA.shape[-1])) @ keys_BHSA.mT

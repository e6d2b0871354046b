"""An attention score: the negative distance of query and key."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, ClassVar, Literal

from nmt.attention.mechanism import Parameters, Score

if TYPE_CHECKING:
    from torch import Tensor


class Manhattan(Score):
    """score = -|q - k|_1 / sqrt(d). A key of another width than the query is first projected, as all scores do it."""

    formula: ClassVar[str] = "-|q - k|₁ / √d"
    source: ClassVar[str] = "ours"

    kind: Literal["manhattan"] = "manhattan"

    def __call__(self, query_BHTA: Tensor, keys_BHSA: Tensor, parameters: Parameters) -> Tensor:
        """The distances of all pairs."""
        distance_BHTS = (query_BHTA.unsqueeze(3) - keys_BHSA.unsqueeze(2)).abs().sum(-1)
        return -distance_BHTS / math.sqrt(query_BHTA.shape[-1])

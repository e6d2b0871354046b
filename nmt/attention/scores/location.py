"""Location score: the query alone gives the score of each source position, independently of the word there.

Luong, Pham & Manning 2015, "Effective Approaches to Attention-based Neural Machine Translation", equation 8.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar, Literal

from nmt.attention.mechanism import Projections, Score, Sizes
from nmt.nn.config import Size

if TYPE_CHECKING:
    from torch import Tensor


class Location(Score):
    """score_s = (W q)_s, W (positions, Q). Source positions past ``positions`` get no weight, as in the paper."""

    formula: ClassVar[str] = "(W q)ₛ"
    source: ClassVar[str] = "Luong et al. 2015"

    reads_keys: ClassVar[bool] = False

    kind: Literal["location"] = "location"
    positions: Size = 100
    """Number of source positions that it can attend to, in subwords."""

    def projections(self, sizes: Sizes) -> Projections:
        """Returns the width of W; keys are not read."""
        return Projections(query=self.positions)

    def __call__(self, query_BHTA: Tensor, keys_BHSA: Tensor, parameters: Mapping[str, Tensor]) -> Tensor:
        """Computes W q and returns the first S scores, with -inf past the last."""
        from torch.nn import functional

        positions = keys_BHSA.shape[2]
        # -inf past the positions that W has, then cut to the length of this source
        return functional.pad(query_BHTA, (0, positions), value=float("-inf"))[..., :positions]

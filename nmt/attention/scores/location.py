"""Location score: the query alone gives the score of each source position, independently of the word there.

Luong, Pham & Manning 2015, "Effective Approaches to Attention-based Neural Machine Translation", equation 8.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from nmt.attention.mechanism import Parameter, Parameters, Score, Sizes, linear
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

    def parameters(self, sizes: Sizes) -> dict[str, Parameter]:
        """W; keys are not looked at."""
        return {"query_weight_AQ": Parameter((self.positions, sizes.query))}

    def __call__(self, query_BHTQ: Tensor, keys_BHSK: Tensor, parameters: Parameters) -> Tensor:
        """The first S of W q; -inf past the last."""
        from torch.nn import functional

        positions = keys_BHSK.shape[2]
        # W q
        scores_BHTA = linear(query_BHTQ, parameters["query_weight_AQ"])
        # -inf past the positions that W has, then cut to the length of this source
        return functional.pad(scores_BHTA, (0, positions), value=float("-inf"))[..., :positions]

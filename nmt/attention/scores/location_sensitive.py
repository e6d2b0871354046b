"""Location-sensitive score: an additive score that also reads the weights of the step before, around each position.

Chorowski, Bahdanau, Serdyuk, Cho & Bengio 2015, "Attention-Based Models for Speech Recognition", section 2.1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field

from nmt.attention.mechanism import Parameter, Parameters, Sizes, StatefulScore, linear
from nmt.nn.config import Size

if TYPE_CHECKING:
    from torch import Tensor


class LocationSensitive(StatefulScore):
    """score_s = v . tanh(W q + U k_s + V f_s), f = F * weights of the step before (equations 8 and 9).

    F has ``filters`` rows of 2 ``reach`` + 1 numbers; f_s is their product with the weights from s - reach to s +
    reach, which are 0 outside the sentence and before the first step. The paper has a bias inside tanh; here there is
    none, as in the additive score.
    """

    formula: ClassVar[str] = "v·tanh(W q + U k + V f), f = F * the last weights"
    source: ClassVar[str] = "Chorowski et al. 2015"

    kind: Literal["location_sensitive"] = "location_sensitive"
    size: Size | None = None
    """A, the width inside tanh; null means the width of the query."""
    filters: Size = 10
    """Number of filters, the width of f."""
    reach: Annotated[int, Field(ge=0)] = 3
    """Number of neighbours to either side that a filter reads; the paper has 50, for frames of speech."""

    def parameters(self, sizes: Sizes) -> dict[str, Parameter]:
        """W, U, V, F and v."""
        inner = self.size or sizes.query
        return {
            "query_weight_AQ": Parameter((inner, sizes.query)),
            "key_weight_AK": Parameter((inner, sizes.key)),
            "filter_weight_AF": Parameter((inner, self.filters)),
            "filters_FX": Parameter((self.filters, 2 * self.reach + 1)),
            "v_A": Parameter((inner,)),
        }

    def precompute_keys(self, keys_BHSK: Tensor, parameters: Parameters) -> Tensor:
        """U k."""
        return linear(keys_BHSK, parameters["key_weight_AK"])

    def initial_state(self, keys_BHSA: Tensor) -> Tensor:
        """Weights 0, (B, S)."""
        import torch

        return keys_BHSA.new_zeros(keys_BHSA.shape[0], keys_BHSA.shape[2], dtype=torch.float32)

    def with_state(self, query_BHTQ: Tensor, keys_BHSA: Tensor, parameters: Parameters, state_BTX: Tensor) -> Tensor:
        """v . tanh(W q + U k + V f) for all pairs."""
        from torch.nn import functional

        v_A = parameters["v_A"]
        # f_s: the windows of 2 reach + 1 weights around each position, times F
        windows_BTSX = functional.pad(state_BTX.to(v_A.dtype), (self.reach, self.reach)).unfold(
            -1, 2 * self.reach + 1, 1
        )
        filtered_BTSF = linear(windows_BTSX, parameters["filters_FX"])
        # W q, U k, V f
        query_BHTA = linear(query_BHTQ, parameters["query_weight_AQ"])
        location_BTSA = linear(filtered_BTSF, parameters["filter_weight_AF"])
        return (query_BHTA[:, :, :, None] + keys_BHSA[:, :, None] + location_BTSA[:, None]).tanh() @ v_A

    def next_state(
        self, state_BTX: Tensor, weights_BTS: Tensor, query_BTQ: Tensor, keys_BHSA: Tensor, parameters: Parameters
    ) -> Tensor:
        """The weights themselves."""
        return weights_BTS

"""General score: query . W key (Luong et al. 2015, "Effective Approaches to Attention-based NMT", section 3.1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from nmt.attention.mechanism import Parameter, Parameters, Score, Sizes, linear

if TYPE_CHECKING:
    from torch import Tensor


class General(Score):
    """score = q . W k. W k is formed once for each sentence, so a step costs no more than the dot product."""

    formula: ClassVar[str] = "q·W k"
    source: ClassVar[str] = "Luong et al. 2015"

    kind: Literal["general"] = "general"

    def parameters(self, sizes: Sizes) -> dict[str, Parameter]:
        """W (Q, K)."""
        return {"key_weight_AK": Parameter((sizes.query, sizes.key))}

    def precompute_keys(self, keys_BHSK: Tensor, parameters: Parameters) -> Tensor:
        """W k."""
        return linear(keys_BHSK, parameters["key_weight_AK"])

    def __call__(self, query_BHTQ: Tensor, keys_BHSQ: Tensor, parameters: Parameters) -> Tensor:
        """query . (W key) for all pairs."""
        # q . W k
        return query_BHTQ @ keys_BHSQ.mT

"""Concat score: v . tanh(W [query; key]).

Luong, Pham & Manning 2015, "Effective Approaches to Attention-based Neural Machine Translation", section 3.1.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field

from nmt.attention.mechanism import Parameter, Projections, Score, Sizes

if TYPE_CHECKING:
    from torch import Tensor


class Concat(Score):
    """score = v . tanh(W [q; k]), W (A, Q + K), v (A).

    The product is taken apart, W [q; k] = W_q q + W_k k, so that W_k k is formed once for each sentence. What tells it
    from ``additive`` is that W is one matrix: it starts as one.
    """

    formula: ClassVar[str] = "v·tanh(W [q; k])"
    source: ClassVar[str] = "Luong et al. 2015"

    kind: Literal["concat"] = "concat"
    size: Annotated[int, Field(gt=0, le=1 << 20)] | None = None
    """A, the width inside tanh; null: the query's."""

    def projections(self, sizes: Sizes) -> Projections:
        """The halves of W."""
        width = self.size or sizes.query
        return Projections(query=width, key=width, joint=True)

    def parameters(self, sizes: Sizes) -> Mapping[str, Parameter]:
        """v."""
        return {"v_A": Parameter((self.size or sizes.query,))}

    def __call__(self, query_BHTA: Tensor, keys_BHSA: Tensor, parameters: Mapping[str, Tensor]) -> Tensor:
        """v . tanh(...) for all pairs."""
        from nmt.ops import additive_energy

        return additive_energy(query_BHTA, keys_BHSA, parameters["v_A"])

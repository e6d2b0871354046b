"""Additive score: v . tanh(W query + U key).

Bahdanau, Cho & Bengio 2015, "Neural Machine Translation by Jointly Learning to Align and Translate", appendix A.1.2.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar, Literal

from nmt.attention.mechanism import Parameter, Projections, Score, Sizes
from nmt.nn.config import Layers, Size

if TYPE_CHECKING:
    from torch import Tensor


class Additive(Score):
    """score = v . tanh(W q + U k), W (A, Q), U (A, K), v (A).

    There is no bias, as in the paper; U k is formed once for each sentence, W q once for each step. With more
    ``layers`` the score is v . tanh(W_L ... tanh(W_2 tanh(W q + U k))), W_2 to W_L (A, A): a deeper network for each
    pair of query and key.
    """

    formula: ClassVar[str] = "v·tanh(W q + U k)"
    source: ClassVar[str] = "Bahdanau et al. 2015"

    kind: Literal["additive"] = "additive"
    size: Size | None = None
    """A, the width inside tanh; null means the width of the query."""
    layers: Layers = 1
    """Layers of tanh; each above the first costs a product of A x A for each pair of query and key."""

    def projections(self, sizes: Sizes) -> Projections:
        """Returns the widths of W and U."""
        width = self.size or sizes.query
        return Projections(query=width, key=width)

    def parameters(self, sizes: Sizes) -> Mapping[str, Parameter]:
        """Returns v, and W of each layer above the first."""
        width = self.size or sizes.query
        return {"v_A": Parameter((width,)), **{name: Parameter((width, width)) for name in self._upper}}

    @property
    def _upper(self) -> list[str]:
        return [f"W{layer}_AA" for layer in range(2, self.layers + 1)]

    def __call__(self, query_BHTA: Tensor, keys_BHSA: Tensor, parameters: Mapping[str, Tensor]) -> Tensor:
        """Computes v . tanh(...) for all pairs."""
        from nmt.ops import additive_energy

        return additive_energy(query_BHTA, keys_BHSA, parameters["v_A"], [parameters[name] for name in self._upper])

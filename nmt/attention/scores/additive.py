"""Additive score: v . tanh(W query + U key).

Bahdanau, Cho & Bengio 2015, "Neural Machine Translation by Jointly Learning to Align and Translate", appendix A.1.2.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, Literal

from nmt.attention.mechanism import Parameter, Parameters, Score, Sizes, linear
from nmt.core.operation import Operation
from nmt.nn.config import Layers, Size

if TYPE_CHECKING:
    from torch import Tensor

MAX_SCORE_ELEMENTS = 1 << 25
"""Largest tensor B x H x T x S x A that ``additive_energy`` forms without gradients: 64 MiB in bfloat16."""


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
    normed: bool = False
    """Give v a length that is learnt apart from its direction, and tanh a bias: g v / |v| . tanh(W q + U k + b), with g
    = 1 / sqrt(A) and b = 0 at first (Salimans & Kingma 2016; the normed Bahdanau attention of tensorflow/nmt)."""

    def parameters(self, sizes: Sizes) -> dict[str, Parameter]:
        """W, U and v, and W of each layer above the first."""
        width = self.size or sizes.query
        return {
            "query_weight_AQ": Parameter((width, sizes.query)),
            "key_weight_AK": Parameter((width, sizes.key)),
            "v_A": Parameter((width,)),
            **{name: Parameter((width, width)) for name in self._upper},
            **({"length_1": Parameter((1,), "ones"), "b_A": Parameter((width,), "zeros")} if self.normed else {}),
        }

    @property
    def _upper(self) -> list[str]:
        return [f"W{layer}_AA" for layer in range(2, self.layers + 1)]

    def precompute_keys(self, keys_BHSK: Tensor, parameters: Parameters) -> Tensor:
        """U k."""
        return linear(keys_BHSK, parameters["key_weight_AK"])

    def __call__(self, query_BHTQ: Tensor, keys_BHSA: Tensor, parameters: Parameters) -> Tensor:
        """v . tanh(W q + U k) for all pairs."""
        # W q
        query_BHTA = linear(query_BHTQ, parameters["query_weight_AQ"])
        v_A = parameters["v_A"]
        if self.normed:
            # W q + b, and g v / |v| with g = length / sqrt(A)
            query_BHTA = query_BHTA + parameters["b_A"]
            v_A = parameters["length_1"] / math.sqrt(len(v_A)) * v_A / v_A.norm()
        # v . tanh(W q + U k)
        return additive_energy(query_BHTA, keys_BHSA, v_A, [parameters[name] for name in self._upper])


@Operation
def additive_energy(
    query_BHTA: Tensor, keys_BHSA: Tensor, v_A: Tensor, upper_weights_AA: Sequence[Tensor] = ()
) -> Tensor:
    """v . tanh(query + key) for all pairs, (B, H, T, S), of W q and U k.

    Each of ``upper_weights_AA`` is a further layer before v: x becomes tanh(W x).
    """
    import torch

    time = query_BHTA.shape[2]
    if time > 1 and not torch.is_grad_enabled():
        # without gradients nothing is kept, so targets can be taken some at a time
        size = max(1, MAX_SCORE_ELEMENTS // max(1, keys_BHSA.numel()))
        if size < time:
            parts = torch.split(query_BHTA, size, dim=2)
            return torch.cat([additive_energy.body(part, keys_BHSA, v_A, upper_weights_AA) for part in parts], dim=2)
    # every query meets every key: T x S vectors of width A
    x_BHTSA = (query_BHTA.unsqueeze(3) + keys_BHSA.unsqueeze(2)).tanh_()
    for weight_AA in upper_weights_AA:
        x_BHTSA = linear(x_BHTSA, weight_AA).tanh_()
    return x_BHTSA @ v_A

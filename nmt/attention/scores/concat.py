"""Concat score: v . tanh(W [query; key]).

Luong, Pham & Manning 2015, "Effective Approaches to Attention-based Neural Machine Translation", section 3.1.
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar, Literal

from nmt.attention.mechanism import Parameter, Sizes
from nmt.attention.scores.additive import Additive


class Concat(Additive):
    """score = v . tanh(W [q; k]), W (A, Q + K), v (A).

    The product is taken apart, W [q; k] = W_q q + W_k k, so that W_k k is formed once for each sentence. It differs
    from ``additive`` in that W is initialised as one matrix.
    """

    formula: ClassVar[str] = "v·tanh(W [q; k])"
    source: ClassVar[str] = "Luong et al. 2015"

    kind: Literal["concat"] = "concat"  # type: ignore[assignment]

    def parameters(self, sizes: Sizes) -> dict[str, Parameter]:
        """The halves of W, and v."""
        halves = ("query_weight_AQ", "key_weight_AK")
        return {name: replace(each, is_half=name in halves) for name, each in super().parameters(sizes).items()}

"""Cosine score: the cosine of the angle between query and key, sharpened.

Graves, Wayne & Danihelka 2014, "Neural Turing Machines", section 3.3.1, equations 5 and 6.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field

from nmt.attention.mechanism import Parameter, Projections, Score, Sizes

if TYPE_CHECKING:
    from torch import Tensor

EPSILON = 1e-6
"""Smallest length that a vector is divided by."""


class Cosine(Score):
    """score = b q . k / (|q| |k|), b = sharpness x exp(theta).

    A cosine lies between -1 and 1, too close together for a softmax to choose; so the paper multiplies by a key
    strength b, which its controller emits at each step. Here b is one learnt number. If the widths differ, the key is
    first projected, k' = W k.
    """

    formula: ClassVar[str] = "b cos(q, k), b learnt"
    source: ClassVar[str] = "Graves et al. 2014"

    kind: Literal["cosine"] = "cosine"
    sharpness: Annotated[float, Field(gt=0.0)] = 10.0
    """Initial value of b."""

    def projections(self, sizes: Sizes) -> Projections:
        """Returns the projection W (Q, K), which is needed only if the widths differ."""
        return Projections.to_one_width(sizes)

    def parameters(self, sizes: Sizes) -> Mapping[str, Parameter]:
        """Returns theta, the logarithm of b over its initial value, so that b stays positive."""
        return {"log_sharpness_1": Parameter((1,), "zeros")}

    def precompute_keys(self, keys_BHSA: Tensor) -> Tensor:
        """Scales the keys to length 1."""
        return _unit(keys_BHSA)

    def __call__(self, query_BHTA: Tensor, keys_BHSA: Tensor, parameters: Mapping[str, Tensor]) -> Tensor:
        """Computes b cos(query, key) for all pairs."""
        strength_1 = (parameters["log_sharpness_1"] + math.log(self.sharpness)).exp()
        return (_unit(query_BHTA) * strength_1) @ keys_BHSA.mT


def _unit(x: Tensor) -> Tensor:
    length: Tensor = x.norm(dim=-1, keepdim=True)
    return x / length.clamp(min=EPSILON)

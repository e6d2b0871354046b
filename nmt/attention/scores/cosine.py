"""Cosine score: the cosine of the angle between query and key, sharpened.

Graves, Wayne & Danihelka 2014, "Neural Turing Machines", section 3.3.1, equations 5 and 6.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field

from nmt.attention.mechanism import Parameter, Parameters, Score, Sizes

if TYPE_CHECKING:
    from torch import Tensor

EPSILON = 1e-6
"""Smallest length that a vector is divided by."""


class Cosine(Score):
    """score = b q . k / (|q| |k|), b = sharpness x exp(theta).

    A cosine lies between -1 and 1, too close together for a softmax to choose; so the paper multiplies by a key
    strength b, which its controller emits at each step. Here b is one learnt number. Where the widths differ the key is
    first projected, k' = U k.
    """

    formula: ClassVar[str] = "b cos(q, k), b learnt"
    source: ClassVar[str] = "Graves et al. 2014"

    kind: Literal["cosine"] = "cosine"
    sharpness: Annotated[float, Field(gt=0.0)] = 10.0
    """Initial value of b."""

    def parameters(self, sizes: Sizes) -> dict[str, Parameter]:
        """theta, so that b stays positive."""
        return {**super().parameters(sizes), "log_sharpness_1": Parameter((1,), "zeros")}

    def precompute_keys(self, keys_BHSK: Tensor, parameters: Parameters) -> Tensor:
        """Keys of length 1."""
        return _unit(super().precompute_keys(keys_BHSK, parameters))

    def __call__(self, query_BHTQ: Tensor, keys_BHSQ: Tensor, parameters: Parameters) -> Tensor:
        """b cos(query, key) for all pairs."""
        # b = sharpness x exp(theta)
        strength_1 = (parameters["log_sharpness_1"] + math.log(self.sharpness)).exp()
        # b q . k / (|q| |k|)
        return (_unit(query_BHTQ) * strength_1) @ keys_BHSQ.mT


def _unit(x: Tensor) -> Tensor:
    length: Tensor = x.norm(dim=-1, keepdim=True)
    return x / length.clamp(min=EPSILON)

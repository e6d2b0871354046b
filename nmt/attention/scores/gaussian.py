"""Gaussian score: minus the squared distance of query and key. With softmax weights it is kernel regression.

Nadaraya 1964, "On Estimating Regression"; Watson 1964, "Smooth Regression Analysis".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field

from nmt.attention.mechanism import Parameter, Parameters, Score, Sizes

if TYPE_CHECKING:
    from torch import Tensor


class Gaussian(Score):
    """score = -|q - k|^2 / (2 s^2); softmax of it weighs each value by a Gaussian kernel of bandwidth s round q, over
    the sum of all: the Nadaraya-Watson estimate of the value at q.

    Where the widths differ the key is first projected, k' = U k.
    """

    formula: ClassVar[str] = "-|q - k|² / 2σ²"
    source: ClassVar[str] = "Nadaraya 1964; Watson 1964"

    kind: Literal["gaussian"] = "gaussian"
    bandwidth: Annotated[float, Field(gt=0.0)] | None = None
    """sigma, or its initial value if it is learnt; null means the fourth root of the width, with which scores start
    about as large as those of scaled_dot."""
    learned: bool = True
    """Train sigma."""

    def parameters(self, sizes: Sizes) -> dict[str, Parameter]:
        """The logarithm of s over where it starts, if it is learnt."""
        learned = {"log_bandwidth_1": Parameter((1,), "zeros")} if self.learned else {}
        return {**super().parameters(sizes), **learned}

    def __call__(self, query_BHTQ: Tensor, keys_BHSQ: Tensor, parameters: Parameters) -> Tensor:
        """For all pairs, the square multiplied out: (q . k - |q|^2 / 2 - |k|^2 / 2) / s^2."""
        import torch

        # the squares nearly cancel the product where it matters, so they are not added up in a half precision
        dtype = torch.promote_types(query_BHTQ.dtype, torch.float32)
        product_BHTS = (query_BHTQ @ keys_BHSQ.mT).to(dtype)
        query_BHT1 = query_BHTQ.to(dtype).square().sum(dim=-1, keepdim=True)
        keys_BH1S = keys_BHSQ.to(dtype).square().sum(dim=-1).unsqueeze(2)
        # |q - k|^2 / 2 = (|q|^2 + |k|^2) / 2 - q . k, by one product instead of all differences
        distance_BHTS = 0.5 * (query_BHT1 + keys_BH1S) - product_BHTS
        # |q - k|^2 grows with the width, so that the fourth root keeps scores of size 1
        start = self.bandwidth or query_BHTQ.shape[-1] ** 0.25
        if self.learned:
            return -distance_BHTS / (start * parameters["log_bandwidth_1"].exp()).square()
        return -distance_BHTS / start**2

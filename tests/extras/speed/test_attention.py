"""Attention by fused kernels, where there is no CUDA device: the textbook body, with its weights on demand."""

from __future__ import annotations

import torch

from nmt.extras.speed.attention import fused_attend
from nmt.ops import attend


def test_on_a_cpu_attention_is_that_of_the_body() -> None:
    query_BHTA, keys_BHSA, values_BHSA = (torch.randn(2, 3, length, 8) for length in (4, 5, 5))
    is_hidden = torch.arange(5) > torch.tensor([1, 4])[:, None, None, None]
    factors = (torch.rand(2, 3, 4, 5) < 0.8) / 0.8
    for dropout_factors in (None, factors):
        given = (query_BHTA, keys_BHSA, values_BHSA, is_hidden, 0.3, dropout_factors)
        (found, weights), (expected, body_weights) = fused_attend(*given), attend.body(*given)
        assert torch.equal(found, expected)
        assert torch.equal(weights(), body_weights())

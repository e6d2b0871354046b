"""The mixture of generated and copied tokens, in plain loops."""

from __future__ import annotations

import math

import pytest
import torch

from nmt.nn.copies import Copies


def test_the_mixture_is_a_distribution() -> None:
    draw = torch.Generator().manual_seed(1)
    logits_NV = torch.randn(3, 5, generator=draw)
    copied_NS = torch.rand(3, 4, generator=draw) / 5
    token_NS = torch.tensor([[0, 1, 1, 4], [2, 2, 2, 2], [4, 3, 0, 1]])
    mixed_NV = Copies(copied_NS, token_NS).mixed(logits_NV)
    for logits, copied, tokens, mixed in zip(
        *(each.tolist() for each in (logits_NV, copied_NS, token_NS, mixed_NV)), strict=True
    ):
        total = sum(map(math.exp, logits))
        for token, logit in enumerate(logits):
            own = sum(p for p, copy in zip(copied, tokens, strict=True) if copy == token)
            assert mixed[token] == pytest.approx((1 - sum(copied)) * math.exp(logit) / total + own, abs=1e-6)
    assert mixed_NV.sum(dim=1) == pytest.approx(torch.ones(3), abs=1e-6)

"""Attention by fused kernels, where there is no CUDA device: the textbook body, with its weights on demand."""

from __future__ import annotations

import copy

import pytest
import torch

from nmt.attention.attention import Attention
from nmt.attention.config import AttentionConfig
from nmt.extras.speed.attention import SearchAttention, fused_attend
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


@pytest.mark.parametrize("score", ["dot", "scaled_dot", "general", "additive", "concat", "cosine"])
@pytest.mark.parametrize("beams", [1, 3])
def test_attention_of_a_step_is_that_of_the_plain_module(score: str, beams: int) -> None:
    torch.manual_seed(4)
    config = AttentionConfig.model_validate({"score": score})
    plain = Attention(config, query_size=6, key_size=6, value_size=5).eval()
    fast = copy.deepcopy(plain)
    assert SearchAttention.supports(fast)
    fast.__class__ = SearchAttention
    is_pad_BS = torch.arange(7) >= torch.tensor([[7], [4]])
    query_NTQ, position_NT = torch.randn(2 * beams, 1, 6), torch.zeros(2 * beams, 1, dtype=torch.int64)
    with torch.no_grad():
        memory = plain.memory(torch.randn(2, 7, 6), torch.randn(2, 7, 5), is_pad_BS)
        one, other = (module(query_NTQ, position_NT, memory) for module in (fast, plain))
    torch.testing.assert_close(one.context_NTV, other.context_NTV)
    torch.testing.assert_close(one.weights_NHTS, other.weights_NHTS)
    assert not one.weights_NHTS[beams:, ..., 4:].any()


def test_attention_of_other_kinds_stays_plain() -> None:
    for changes in ({"weights": "sparsemax"}, {"weights": {"kind": "softmax", "temperature": 2.0}}):
        config = AttentionConfig.model_validate({"score": "dot", **changes})
        assert not SearchAttention.supports(Attention(config, query_size=6, key_size=6, value_size=5))

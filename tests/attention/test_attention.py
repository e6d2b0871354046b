"""Score, weights and context together, for every score with every weighting."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from nmt.attention.attention import Attention
from nmt.attention.registry import SCORES
from tests.attention.oracles import WEIGHTINGS, attend, attention_config

B, T, S = 3, 4, 5
LENGTHS = [5, 3, 1]
IS_PAD_BS = torch.arange(S) >= torch.tensor(LENGTHS)[:, None]
QUERY, KEY, VALUE = 4, 6, 3


def make(score: str, weights: str, *, std: float = 0.7) -> Attention:
    torch.manual_seed(1)
    attention = Attention(attention_config(score, weights), query_size=QUERY, key_size=KEY, value_size=VALUE)
    for parameter in attention.parameters():
        nn.init.normal_(parameter, std=std)
    return attention.double().eval()


def inputs(rows: int = B) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Queries, their positions, of which some are past a sentence's end, keys and values."""
    torch.manual_seed(2)
    position_NT = torch.stack([torch.arange(T) + row % 3 for row in range(rows)])
    sizes = ((rows, T, QUERY), (B, S, KEY), (B, S, VALUE))
    query_NTQ, keys_BSK, values_BSV = (torch.randn(size, dtype=torch.float64) for size in sizes)
    return query_NTQ, position_NT, keys_BSK, values_BSV


@torch.no_grad()
@pytest.mark.parametrize("beams", [1, 2], ids=["", "beams"])
@pytest.mark.parametrize("weights", WEIGHTINGS)
@pytest.mark.parametrize("score", list(SCORES))
def test_every_score_with_every_weighting_equals_plain_loops(score: str, weights: str, beams: int) -> None:
    """A sentence's beams stand side by side, ask from different positions, and share its memory."""
    attention = make(score, weights)
    query_NTQ, position_NT, keys_BSK, values_BSV = inputs(B * beams)
    attended = attention(query_NTQ, position_NT, attention.memory(keys_BSK, values_BSV, IS_PAD_BS))
    heads = attention.weighting.heads
    assert attended.weights_NHTS.shape == (B * beams, heads, T, S)
    assert attended.weights_NHTS.dtype == torch.float32
    assert attended.context_NTV.shape == (B * beams, T, VALUE)
    for n in range(B * beams):
        b = n // beams
        length = LENGTHS[b]
        for t in range(T):
            weights_HS, context_V = attend(
                attention, query_NTQ[n, t], int(position_NT[n, t]), keys_BSK[b, :length], values_BSV[b, :length]
            )
            for head, weights_S in enumerate(weights_HS):
                ours = attended.weights_NHTS[n, head, t].tolist()
                assert ours == pytest.approx(weights_S + [0.0] * (S - length), abs=1e-5)
                assert ours[length:] == [0.0] * (S - length)
            assert attended.context_NTV[n, t].tolist() == pytest.approx(context_V, abs=1e-4)


@pytest.mark.parametrize("weights", ["{kind: local_m, width: 1}", "{kind: local_p, width: 1}"])
def test_a_window_past_the_last_position_that_location_scores_has_weights(weights: str) -> None:
    """Location scores no source position from ``positions`` on, and a local window may hold no other."""
    attention = make("{kind: location, positions: 2}", weights, std=3.0)
    length = 12
    query_1TQ = torch.randn(1, length, QUERY, dtype=torch.float64)
    keys_1SK, values_1SV = (torch.randn(1, length, size, dtype=torch.float64) for size in (KEY, VALUE))
    memory = attention.memory(keys_1SK, values_1SV, torch.zeros(1, length, dtype=torch.bool))
    attended = attention(query_1TQ, torch.arange(length)[None], memory)
    assert attended.weights_NHTS.isfinite().all()
    torch.testing.assert_close(attended.weights_NHTS.sum(-1), torch.ones(1, 1, length))
    attended.context_NTV.sum().backward()
    assert all(each.grad is None or each.grad.isfinite().all() for each in attention.parameters())


def test_annealing_goes_by_the_modules_update() -> None:
    """A relaxed draw's gradient goes by 1 / temperature."""
    gradients = []
    attention = make("general", "{kind: gumbel, start: 1000, end: 100, updates: 10}").train()
    query_BTQ, position_BT, keys_BSK, values_BSV = inputs()
    for attention.update in (0, 10, 20):
        torch.manual_seed(3)
        query_BTQ = query_BTQ.detach().requires_grad_()
        attended = attention(query_BTQ, position_BT, attention.memory(keys_BSK, values_BSV, IS_PAD_BS))
        (gradient,) = torch.autograd.grad(attended.context_NTV.sum(), query_BTQ)
        gradients.append(gradient)
    # so hot that the relaxed weights are nearly even, whatever the noise
    torch.testing.assert_close(gradients[1], 10 * gradients[0], rtol=0.2, atol=1e-3)
    assert torch.equal(gradients[1], gradients[2])


@pytest.mark.parametrize("score", list(SCORES))
def test_weights_are_float32_in_half_precision(score: str) -> None:
    """And nearly those of full precision."""
    attention = make(score, "softmax").float()
    query_BTQ, position_BT, keys_BSK, values_BSV = (each.float() for each in inputs())
    exact = attention(query_BTQ, position_BT, attention.memory(keys_BSK, values_BSV, IS_PAD_BS))
    with torch.autocast("cpu", torch.bfloat16):
        half = attention(query_BTQ.bfloat16(), position_BT, attention.memory(
            keys_BSK.bfloat16(), values_BSV.bfloat16(), IS_PAD_BS))  # fmt: skip
    assert half.weights_NHTS.dtype == torch.float32
    assert half.context_NTV.dtype == torch.bfloat16
    torch.testing.assert_close(half.weights_NHTS.sum(-1), torch.ones(B, 1, T))
    torch.testing.assert_close(half.weights_NHTS, exact.weights_NHTS, atol=0.06, rtol=0.0)

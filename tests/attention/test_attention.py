"""Score, weights and context together, for every score with every weighting."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn

from nmt.attention.attention import Attended, Attention, AttentionMemory
from nmt.attention.registry import SCORES, WEIGHTS
from tests.attention.oracles import SCORE_ORACLES, WEIGHTINGS, attend, attention_config, softmax

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
    heads = attention.normalizer.heads
    assert attended.weights_BHTS.shape == (B * beams, heads, T, S)
    assert attended.weights_BHTS.dtype == torch.float32
    assert attended.context_NTV.shape == (B * beams, T, VALUE)
    for n in range(B * beams):
        b = n // beams
        length = LENGTHS[b]
        for t in range(T):
            weights_HS, context_V = attend(
                attention, query_NTQ[n, t], int(position_NT[n, t]), keys_BSK[b, :length], values_BSV[b, :length]
            )
            for head, weights_S in enumerate(weights_HS):
                ours = attended.weights_BHTS[n, head, t].tolist()
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
    assert attended.weights_BHTS.isfinite().all()
    torch.testing.assert_close(attended.weights_BHTS.sum(-1), torch.ones(1, 1, length))
    attended.context_NTV.sum().backward()
    assert all(each.grad is None or each.grad.isfinite().all() for each in attention.parameters())


@pytest.mark.parametrize("weights", WEIGHTINGS)
def test_attending_in_parts_or_step_by_step_changes_nothing(weights: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """But for rounding in float32, which weights pass through and which differs from machine to machine."""

    def close(found: Tensor, expected: Tensor) -> None:
        torch.testing.assert_close(found, expected, atol=1e-6, rtol=1e-5)

    attention = make("general", weights)
    query_BTQ, position_BT, keys_BSK, values_BSV = inputs()
    memory = attention.memory(keys_BSK, values_BSV, IS_PAD_BS)
    whole = attention(query_BTQ, position_BT, memory)
    monkeypatch.setattr("nmt.attention.attention.CELLS", 3 * B * memory.keys_BHSA[0].numel())
    in_parts = attention(query_BTQ, position_BT, memory)  # of three and one positions
    close(in_parts.context_NTV, whole.context_NTV)
    close(in_parts.weights_BHTS, whole.weights_BHTS)
    loop = attention.loop(memory)
    for t in range(T):
        step = loop(query_BTQ[:, t : t + 1], position_BT[:, t : t + 1])
        close(step.context_NTV, whole.context_NTV[:, t : t + 1])
        close(step.weights_BHTS, whole.weights_BHTS[:, :, t : t + 1])


def check_draws(attention: Attention, attended: Attended, query_BTQ: Tensor, keys_BSK: Tensor) -> None:
    """What a choice notes is of the position that its weights are on."""
    choice = attended.choice
    assert choice is not None
    assert choice.log_prob_BT.shape == choice.entropy_BT.shape == choice.baseline_BT.shape == (B, T)
    oracle = SCORE_ORACLES[attention.score.kind]
    for b, length in enumerate(LENGTHS):
        for t in range(T):
            scores = [oracle(attention, query_BTQ[b, t], keys_BSK[b, s], s).item() for s in range(length)]
            chosen = attended.weights_BHTS[b, 0, t].tolist().index(1.0)
            assert choice.log_prob_BT[b, t].item() == pytest.approx(math.log(softmax(scores)[chosen]), abs=1e-5)
            offset = attention.weighting_parameters["baseline_offset_1"].item()
            baseline = (attention.weighting_parameters["baseline_Q"] @ query_BTQ[b, t]).item() + offset
            assert choice.baseline_BT[b, t].item() == pytest.approx(baseline, abs=1e-5)


@pytest.mark.parametrize("cells", [1 << 25, 1], ids=["at once", "in parts"])
@pytest.mark.parametrize("weights", [name for name in WEIGHTS if name in ("hard", "glimpse")])
def test_draws_in_training_are_noted_in_order(weights: str, cells: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nmt.attention.attention.CELLS", cells)
    attention = make("general", f"{{kind: {weights}, expected: 0}}").train()
    query_BTQ, position_BT, keys_BSK, values_BSV = inputs()
    attended = attention(query_BTQ, position_BT, attention.memory(keys_BSK, values_BSV, IS_PAD_BS))
    check_draws(attention, attended, query_BTQ, keys_BSK)
    assert attention.eval()(query_BTQ, position_BT, attention.memory(keys_BSK, values_BSV, IS_PAD_BS)).choice is None


def test_a_baseline_passes_no_gradient_to_the_query() -> None:
    attention = make("general", "hard").train()
    query_BTQ, position_BT, keys_BSK, values_BSV = inputs()
    query_BTQ.requires_grad_()
    choice = attention(query_BTQ, position_BT, attention.memory(keys_BSK, values_BSV, IS_PAD_BS)).choice
    assert choice is not None
    assert torch.autograd.grad(choice.baseline_BT.sum(), query_BTQ, allow_unused=True) == (None,)


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


def test_a_memory_follows_its_sentences() -> None:
    attention = make("additive", "softmax")
    query_BTQ, position_BT, keys_BSK, values_BSV = inputs()
    memory: AttentionMemory = attention.memory(keys_BSK, values_BSV, IS_PAD_BS)
    rows = torch.tensor([2, 0, 0])
    chosen = attention(query_BTQ[rows], position_BT[rows], memory.select(rows))
    whole = attention(query_BTQ, position_BT, memory)
    torch.testing.assert_close(chosen.context_NTV, whole.context_NTV[rows])
    torch.testing.assert_close(chosen.weights_BHTS, whole.weights_BHTS[rows])


@pytest.mark.parametrize("score", list(SCORES))
def test_weights_are_float32_in_half_precision(score: str) -> None:
    """And nearly those of full precision."""
    attention = make(score, "softmax").float()
    query_BTQ, position_BT, keys_BSK, values_BSV = (each.float() for each in inputs())
    exact = attention(query_BTQ, position_BT, attention.memory(keys_BSK, values_BSV, IS_PAD_BS))
    with torch.autocast("cpu", torch.bfloat16):
        half = attention(query_BTQ.bfloat16(), position_BT, attention.memory(
            keys_BSK.bfloat16(), values_BSV.bfloat16(), IS_PAD_BS))  # fmt: skip
    assert half.weights_BHTS.dtype == torch.float32
    assert half.context_NTV.dtype == torch.bfloat16
    torch.testing.assert_close(half.weights_BHTS.sum(-1), torch.ones(B, 1, T))
    torch.testing.assert_close(half.weights_BHTS, exact.weights_BHTS, atol=0.06, rtol=0.0)

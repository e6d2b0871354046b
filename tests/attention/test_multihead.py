"""Heads against attention of each by itself in plain loops, against torch's own, and the one way against the other."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call

from nmt.attention.attention import Attention
from nmt.attention.config import AttentionConfig
from nmt.attention.multihead import DotProductHeads, IndependentHeads, KeyValues, MultiHead, MultiHeadOutput
from nmt.attention.registry import SCORES
from tests.attention.oracles import WEIGHTINGS, Floats, attend, attention_config

B, T, S = 3, 4, 5
LENGTHS = [5, 3, 1]
IS_PAD_BS = torch.arange(S) >= torch.tensor(LENGTHS)[:, None]
QUERY, KEY, HEADS = 6, 5, 3

MECHANISMS = [
    *((score, "softmax") for score in SCORES if score != "dot"),
    *(("dot", weights) for weights in WEIGHTINGS),
]
"""Every score and every weighting at least once."""


def make(
    score: str = "dot",
    weights: str = "softmax",
    *,
    heads: int = HEADS,
    key_size: int = KEY,
    apart: bool = False,
    **options: Any,
) -> MultiHead:
    """``apart``: with heads that are attention of their own, whatever their mechanism."""
    torch.manual_seed(1)
    config = attention_config(score, weights)
    made = MultiHead(config, heads=heads, query_size=QUERY, key_size=key_size, dropout=0.0, **options)
    for parameter in made.parameters():
        nn.init.normal_(parameter, std=0.7)
    if apart:
        causal = options.get("causal", False)
        made.core = IndependentHeads(config, heads=heads, width=QUERY // heads, dropout=0.0, causal=causal)
        for parameter in made.core.parameters():
            nn.init.normal_(parameter, std=0.7)
    return made.double().eval()


def inputs(rows: int = B) -> tuple[Tensor, Tensor, Tensor]:
    """Queries, their positions, of which some are past a sentence's end, and states."""
    torch.manual_seed(2)
    position_NT = torch.stack([torch.arange(T) + row % 3 for row in range(rows)])
    query_NTQ, states_BSK = (
        torch.randn(size, dtype=torch.float64, requires_grad=True) for size in ((rows, T, QUERY), (B, S, KEY))
    )
    return query_NTQ, position_NT, states_BSK


class Plain(NamedTuple):
    """The result for one query."""

    weights_HS: list[Floats]
    context_Q: Floats


def plain(attention: MultiHead, config: AttentionConfig, query_Q: Tensor, position: int, states_SK: Tensor) -> Plain:
    """head_h = attend(W_h q, U_h k, V_h v), then W [head_1; ...; head_H], one head and one key at a time."""
    width = QUERY // attention.heads
    weights: list[Floats] = []
    contexts: Floats = []
    for head in range(attention.heads):
        rows = slice(head * width, (head + 1) * width)
        query_A = attention.query_weight_QQ[rows] @ query_Q
        values_SA = torch.stack([attention.value_weight_QK[rows] @ state_K for state_K in states_SK])
        keys_SA = values_SA  # not looked at
        if attention.key_weight_QK is not None:
            keys_SA = torch.stack([attention.key_weight_QK[rows] @ state_K for state_K in states_SK])
        if isinstance(attention.core, IndependentHeads):
            inside = list(attention.core.each)[head]
        else:
            inside = Attention(config, query_size=width, key_size=width, value_size=width)
        assert isinstance(inside, Attention)
        found, context_A = attend(inside, query_A, position, keys_SA, values_SA)
        weights += found
        contexts += context_A
    return Plain(weights, (attention.out_weight_QQ @ torch.tensor(contexts, dtype=torch.float64)).tolist())


def assert_plain(attended: MultiHeadOutput, n: int, t: int, expected: Plain, positions: int) -> None:
    """With weights of exactly 0 on all positions after those that the query sees."""
    ours = attended.weights()[n, :, t].tolist()
    assert len(ours) == len(expected.weights_HS)
    for found_S, weights_S in zip(ours, expected.weights_HS, strict=True):
        hidden = [0.0] * (positions - len(weights_S))
        assert found_S == pytest.approx(weights_S + hidden, abs=1e-5)
        assert found_S[len(weights_S) :] == hidden
    assert attended.context_NTQ[n, t].tolist() == pytest.approx(expected.context_Q, abs=1e-4)


# ---- against plain loops


@torch.no_grad()
@pytest.mark.parametrize("beams", [1, 2], ids=["", "beams"])
@pytest.mark.parametrize(("score", "weights"), MECHANISMS)
def test_every_mechanism_inside_a_head_equals_plain_loops(score: str, weights: str, beams: int) -> None:
    """A sentence's beams stand side by side, ask from different positions, and share its memory."""
    attention, config = make(score, weights), attention_config(score, weights)
    query_NTQ, position_NT, states_BSK = inputs(B * beams)
    attended = attention(query_NTQ, position_NT, attention.memory(states_BSK, IS_PAD_BS))
    heads = HEADS * config.weights.heads
    assert attended.weights().shape == (B * beams, heads, T, S)
    assert attended.sampled == ()
    for n in range(B * beams):
        states_SK = states_BSK[n // beams, : LENGTHS[n // beams]]
        for t in range(T):
            expected = plain(attention, config, query_NTQ[n, t], int(position_NT[n, t]), states_SK)
            assert_plain(attended, n, t, expected, S)


@torch.no_grad()
@pytest.mark.parametrize("apart", [False, True], ids=["", "apart"])
@pytest.mark.parametrize("score", list(SCORES))
def test_a_causal_query_sees_itself_and_what_was_before(score: str, apart: bool) -> None:
    """All at once, with padding after the last word and without, and step by step."""
    attention, config = make(score, key_size=QUERY, causal=True, apart=apart), attention_config(score)
    x_BTQ = inputs()[0].detach()
    lengths = [4, 3, 1]
    is_pad_BT = torch.arange(T) >= torch.tensor(lengths)[:, None]
    position_1T = torch.arange(T)[None]
    whole, padded = (attention.attend_to_self(x_BTQ, position_1T, hidden)[0] for hidden in (None, is_pad_BT))
    kept, steps = attention.no_past(B, x_BTQ), []
    for t in range(T):
        step, kept = attention.attend_to_self(x_BTQ[:, t : t + 1], torch.full((B, 1), t), None, kept)
        steps.append(step)
        assert kept.keys_BHSA.shape == kept.values_BHSA.shape == (B, HEADS, t + 1, QUERY // HEADS)
    for b in range(B):
        for t in range(T):
            expected = plain(attention, config, x_BTQ[b, t], t, x_BTQ[b, : t + 1])
            assert_plain(whole, b, t, expected, T)
            assert_plain(steps[t], b, 0, expected, t + 1)
            if t < lengths[b]:
                assert_plain(padded, b, t, expected, T)
            else:
                assert_plain(padded, b, t, plain(attention, config, x_BTQ[b, t], t, x_BTQ[b, : lengths[b]]), T)


@torch.no_grad()
@pytest.mark.parametrize("apart", [False, True], ids=["together", "apart"])
def test_rotary_steps_turn_what_they_keep_by_their_own_positions(apart: bool) -> None:
    """All keys turned once more, by any number of positions, would give the same: so does the step that starts late."""
    attention = make("scaled_dot", heads=1, key_size=QUERY, causal=True, rotary=True, apart=apart)
    x_BTQ = inputs()[0].detach()
    whole, _ = attention.attend_to_self(x_BTQ, torch.arange(T)[None], None)
    unturned, _ = make("scaled_dot", heads=1, key_size=QUERY, causal=True, apart=apart).attend_to_self(
        x_BTQ, torch.arange(T)[None], None
    )
    assert (whole.context_NTQ - unturned.context_NTQ).abs().max() > 0.1
    for start_B in (torch.tensor([0, 0, 0]), torch.tensor([5, 0, 30])):
        kept = attention.no_past(B, x_BTQ)
        for t in range(T):
            step, kept = attention.attend_to_self(x_BTQ[:, t : t + 1], (start_B + t)[:, None], None, kept)
            torch.testing.assert_close(step.context_NTQ[:, 0], whole.context_NTQ[:, t], atol=1e-4, rtol=1e-4)
            torch.testing.assert_close(step.weights()[:, :, 0], whole.weights()[:, :, t, : t + 1], atol=1e-5,
                                       rtol=1e-4)  # fmt: skip


# ---- against torch


@pytest.mark.parametrize("training", [True, False], ids=["training", "eval"])
@pytest.mark.parametrize("causal", [False, True], ids=["", "causal"])
def test_heads_of_scaled_dot_products_equal_torchs_in_value_and_gradient(causal: bool, training: bool) -> None:
    key_size = QUERY if causal else KEY
    attention = make("scaled_dot", key_size=key_size, causal=causal).train(training)
    assert isinstance(attention.core, DotProductHeads)
    query_BTQ, position_BT, states_BSK = inputs()
    if causal:
        states_BSK, is_pad_BS = query_BTQ, torch.arange(T) >= torch.tensor([4, 3, 1])[:, None]
        ours, _ = attention.attend_to_self(query_BTQ, torch.arange(T)[None], is_pad_BS)
    else:
        is_pad_BS = IS_PAD_BS
        ours = attention(query_BTQ, position_BT, attention.memory(states_BSK, is_pad_BS))
    theirs = nn.MultiheadAttention(
        QUERY, HEADS, bias=False, batch_first=True, kdim=key_size, vdim=key_size, dtype=torch.float64
    )
    of = [attention.query_weight_QQ, attention.key_weight_QK, attention.value_weight_QK, attention.out_weight_QQ]
    stacked = {"in_proj_weight": torch.cat(of[:3])} if causal else {}  # type: ignore[arg-type]
    lent = stacked or dict(zip(("q_proj_weight", "k_proj_weight", "v_proj_weight"), of, strict=False))
    expected_BTQ, weights_BHTS = functional_call(
        theirs,
        {**lent, "out_proj.weight": attention.out_weight_QQ},
        (query_BTQ, states_BSK, states_BSK),
        {
            "key_padding_mask": is_pad_BS,
            "attn_mask": torch.ones(T, T, dtype=torch.bool).triu(1) if causal else None,
            "average_attn_weights": False,
        },
    )
    torch.testing.assert_close(ours.context_NTQ, expected_BTQ)
    torch.testing.assert_close(ours.weights(), weights_BHTS)
    back = torch.randn(expected_BTQ.shape, dtype=torch.float64)
    found, expected = (
        torch.autograd.grad((each * back).sum(), [*of, query_BTQ, states_BSK])
        for each in (ours.context_NTQ, expected_BTQ)
    )
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other)


# ---- one way against the other


def results(attention: MultiHead, kind: str) -> tuple[MultiHeadOutput, list[Tensor]]:
    """What heads give, and what its gradient is to be taken of."""
    if kind == "itself":
        x_BTQ, _, _ = inputs()
        is_pad_BT = torch.arange(T) >= torch.tensor([4, 3, 1])[:, None]
        return attention.attend_to_self(x_BTQ, torch.arange(T)[None], is_pad_BT)[0], [x_BTQ]
    query_NTQ, position_NT, states_BSK = inputs(B * (2 if kind == "beams" else 1))
    return attention(query_NTQ, position_NT, attention.memory(states_BSK, IS_PAD_BS)), [query_NTQ, states_BSK]


@pytest.mark.parametrize("kind", ["source", "beams", "itself"])
@pytest.mark.parametrize("score", ["dot", "scaled_dot"])
def test_together_equals_apart_in_value_and_gradient(score: str, kind: str) -> None:
    options: dict[str, Any] = {"causal": True, "key_size": QUERY} if kind == "itself" else {}
    found = []
    for apart in (False, True):
        attention = make(score, apart=apart, **options)
        assert isinstance(attention.core, IndependentHeads if apart else DotProductHeads)
        attended, given = results(attention, kind)
        torch.manual_seed(4)
        back = torch.randn(attended.context_NTQ.shape, dtype=torch.float64)
        gradients = torch.autograd.grad((attended.context_NTQ * back).sum(), [*attention.parameters(), *given])
        found.append((attended.context_NTQ, attended.weights().double(), *gradients))
    for together, each in zip(*found, strict=True):
        torch.testing.assert_close(together, each, atol=1e-5, rtol=1e-4)  # apart, weights pass through float32


def test_dot_products_under_softmax_go_together_and_all_else_apart() -> None:
    for score, weights in MECHANISMS:
        together = score in ("dot", "scaled_dot") and "softmax" in weights
        assert isinstance(make(score, weights).core, DotProductHeads if together else IndependentHeads), (
            score,
            weights,
        )


# ---- what has no part in it


@torch.no_grad()
@pytest.mark.parametrize("apart", [False, True], ids=["together", "apart"])
def test_what_stands_at_padding_has_no_say(apart: bool) -> None:
    attention = make(apart=apart)
    query_BTQ, position_BT, states_BSK = inputs()
    expected = attention(query_BTQ, position_BT, attention.memory(states_BSK, IS_PAD_BS))
    other_BSK = torch.where(IS_PAD_BS[:, :, None], 1e3, states_BSK)
    found = attention(query_BTQ, position_BT, attention.memory(other_BSK, IS_PAD_BS))
    assert torch.equal(found.context_NTQ, expected.context_NTQ)
    assert (found.weights().movedim(3, 1)[IS_PAD_BS] == 0.0).all()
    for b, length in enumerate(LENGTHS):  # nor has how much of it there is
        alone = attention(query_BTQ[b : b + 1], position_BT[b : b + 1],
                          attention.memory(states_BSK[b : b + 1, :length], None))  # fmt: skip
        torch.testing.assert_close(alone.context_NTQ[0], expected.context_NTQ[b])


@pytest.mark.parametrize("score", list(SCORES))
def test_keys_are_projected_where_the_score_reads_them(score: str) -> None:
    attention = make(score)
    names = {name for name, _ in attention.named_parameters() if not name.startswith("core")}
    wanted = {"query_weight_QQ", "value_weight_QK", "out_weight_QQ"}
    assert names == (wanted if score == "location" else wanted | {"key_weight_QK"})
    assert SCORES[score].reads_keys == (score != "location")


# ---- dropout and precision


@torch.no_grad()
@pytest.mark.parametrize("apart", [False, True], ids=["together", "apart"])
def test_dropout_drops_weights_and_scales_the_others(apart: bool) -> None:
    """Uses the unit vectors as values, so that the context shows the weights."""
    size, rate = 24, 0.25
    torch.manual_seed(0)
    config = attention_config("scaled_dot")
    core = (
        IndependentHeads(config, heads=2, width=size, dropout=rate, causal=False)
        if apart
        else DotProductHeads(size**-0.5, rate, causal=False)
    )
    keys_BHSA = torch.randn(16, 2, size, size)
    memory = core.memory(KeyValues(keys_BHSA, torch.eye(size).expand(16, 2, size, size)), None)
    query_BHTA, position_BT = torch.randn(16, 2, 20, size), torch.arange(20).expand(16, 20)
    weights, dropped, again = (
        core.train(training)(query_BHTA, position_BT, memory).context_NTQ for training in (False, True, True)
    )
    assert (dropped == 0.0).float().mean().item() == pytest.approx(rate, abs=0.01)
    torch.testing.assert_close(dropped[dropped != 0], weights[dropped != 0] / (1 - rate))
    assert not torch.equal(dropped == 0.0, again == 0.0)
    by_head = (dropped == 0.0).view(16, 20, 2, size)
    assert not torch.equal(by_head[:, :, 0], by_head[:, :, 1])
    assert not torch.equal(by_head[:, 0], by_head[:, 1])


@pytest.mark.parametrize("apart", [False, True], ids=["together", "apart"])
def test_weights_are_float32_in_half_precision(apart: bool) -> None:
    """And nearly those of full precision, as are the contexts."""
    attention = make("scaled_dot", apart=apart).float()
    query_BTQ, position_BT, states_BSK = inputs()
    query_BTQ, states_BSK = query_BTQ.float(), states_BSK.float()
    exact = attention(query_BTQ, position_BT, attention.memory(states_BSK, IS_PAD_BS))
    with torch.autocast("cpu", torch.bfloat16):
        half = attention(query_BTQ.bfloat16(), position_BT, attention.memory(states_BSK.bfloat16(), IS_PAD_BS))
    assert half.weights().dtype == torch.float32
    assert half.context_NTQ.dtype == torch.bfloat16
    torch.testing.assert_close(half.weights().sum(-1), torch.ones(B, HEADS, T))
    torch.testing.assert_close(half.weights(), exact.weights(), atol=0.03, rtol=0.0)
    torch.testing.assert_close(half.context_NTQ.float(), exact.context_NTQ, atol=0.1, rtol=0.05)


def test_a_memory_made_in_training_serves_afterwards() -> None:
    """Without dropout, and with all weights."""
    attention = make("scaled_dot", key_size=QUERY).float()
    assert isinstance(attention.core, DotProductHeads)
    attention.core.dropout.threshold = 128
    query_BTQ, states_BSK = torch.randn(B, T, QUERY), torch.randn(B, S, QUERY)
    position_BT = torch.arange(T).expand(B, T)
    expected = attention(query_BTQ, position_BT, attention.memory(states_BSK, IS_PAD_BS))
    memory = attention.train().memory(states_BSK, IS_PAD_BS)
    found = attention.eval()(query_BTQ, position_BT, memory)
    torch.testing.assert_close(found.context_NTQ, expected.context_NTQ)
    torch.testing.assert_close(found.weights(), expected.weights())

"""Mechanisms whose steps depend on the steps before: several steps, against plain loops and enumeration."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import pytest
import torch
from torch import Tensor, nn

from nmt.attention.attention import Attention, AttentionOutput
from nmt.attention.mechanism import AttentionContext, Weighting
from tests.attention.oracles import STATEFUL_SCORES, Past, attend, attention_config, stopping

B, T, S = 2, 4, 5
LENGTHS = (5, 3)
IS_PAD_BS = torch.arange(S) >= torch.tensor(LENGTHS)[:, None]
QUERY, KEY, VALUE = 4, 6, 3

COVERAGES = [
    "coverage",
    "{kind: coverage, coverage: fertility, size: 5}",
    "{kind: coverage, coverage: gru, width: 3}",
    "location_sensitive",
    "{kind: location_sensitive, filters: 2, reach: 1, size: 3}",
]
MOVING = ["monotonic", "{kind: mocha, chunk: 2}", "shift", "{kind: shift, reach: 2}"]


def make(score: str, weights: str = "softmax") -> Attention:
    torch.manual_seed(1)
    attention = Attention(attention_config(score, weights), query_size=QUERY, key_size=KEY, value_size=VALUE)
    for parameter in attention.parameters():
        nn.init.normal_(parameter, std=0.9)
    return attention.double().eval()


def inputs(beams: int = 1) -> tuple[Tensor, Tensor, Tensor]:
    torch.manual_seed(2)
    sizes = ((B * beams, T, QUERY), (B, S, KEY), (B, S, VALUE))
    query_NTQ, keys_BSK, values_BSV = (torch.randn(size, dtype=torch.float64, requires_grad=True) for size in sizes)
    return query_NTQ, keys_BSK, values_BSV


def steps(attention: Attention, query_NTQ: Tensor, keys_BSK: Tensor, values_BSV: Tensor) -> Iterator[AttentionOutput]:
    """One step after the other, each with the state of the one before."""
    memory = attention.memory(keys_BSK, values_BSV, IS_PAD_BS)
    state = attention.start(memory)
    assert state is not None
    state = state.repeat(len(query_NTQ) // B)
    for t in range(T):
        position_N1 = torch.full((len(query_NTQ), 1), t)
        attended: AttentionOutput = attention(query_NTQ[:, t : t + 1], position_N1, memory, state)
        state = attended.state
        assert state is not None
        yield attended


@pytest.mark.parametrize("beams", [1, 2], ids=["", "beams"])
@pytest.mark.parametrize("score", COVERAGES)
def test_scores_with_a_state_equal_plain_loops_with_their_gradients(score: str, beams: int) -> None:
    """The gradients are those of queries, keys, values and every parameter, back through all steps."""
    attention = make(score)
    query_NTQ, keys_BSK, values_BSV = inputs(beams)
    found = list(steps(attention, query_NTQ, keys_BSK, values_BSV))
    context_NTV = torch.cat([each.context_NTV for each in found], dim=1)
    expected = []
    for n, query_TQ in enumerate(query_NTQ):
        b, length = n // beams, LENGTHS[n // beams]
        _, weights = STATEFUL_SCORES[attention.score.kind](attention, query_TQ, keys_BSK[b, :length])
        for attended, weights_S in zip(found, weights, strict=True):
            ours_S = attended.weights_NHTS[n, 0, 0]
            assert ours_S[:length].tolist() == pytest.approx(weights_S.tolist(), abs=1e-5)
            assert (ours_S[length:] == 0).all()
        expected.append(torch.stack([weights_S @ values_BSV[b, :length] for weights_S in weights]))
    torch.testing.assert_close(context_NTV, torch.stack(expected), atol=1e-5, rtol=1e-4)
    wanted = {"query": query_NTQ, "keys": keys_BSK, "values": values_BSV, **dict(attention.named_parameters())}
    back_NTV = torch.randn(context_NTV.shape, dtype=torch.float64)
    ours, by_loops = (
        torch.autograd.grad((each * back_NTV).sum(), list(wanted.values()))
        for each in (context_NTV, torch.stack(expected))
    )
    for name, one, other in zip(wanted, ours, by_loops, strict=True):
        # weights pass through float32
        torch.testing.assert_close(one, other, atol=2e-5, rtol=1e-3, msg=lambda text, name=name: f"{name}: {text}")


@torch.no_grad()
@pytest.mark.parametrize("beams", [1, 2], ids=["", "beams"])
@pytest.mark.parametrize("score", ["dot", "cosine"])
@pytest.mark.parametrize("weights", MOVING)
def test_weights_that_move_on_equal_plain_loops(score: str, weights: str, beams: int) -> None:
    attention = make(score, weights)
    query_NTQ, keys_BSK, values_BSV = inputs(beams)
    pasts = [Past() for _ in query_NTQ]
    for t, attended in enumerate(steps(attention, query_NTQ, keys_BSK, values_BSV)):
        for n, past in enumerate(pasts):
            b, length = n // beams, LENGTHS[n // beams]
            sentence = keys_BSK[b, :length], values_BSV[b, :length]
            (expected,), context = attend(attention, query_NTQ[n, t], t, *sentence, past)
            assert attended.weights_NHTS[n, 0, 0].tolist() == pytest.approx(expected + [0.0] * (S - length), abs=1e-5)
            assert attended.context_NTV[n, 0].tolist() == pytest.approx(context, abs=1e-4)


def walks(
    rule: Weighting, parameters: dict[str, Tensor], scores_TS: list[list[float]]
) -> Iterator[tuple[tuple[int, ...], float]]:
    """All sequences of positions that a monotonic walk may stop at, each with its probability."""
    length = len(scores_TS[0])
    for places in itertools.combinations_with_replacement(range(length), len(scores_TS)):
        probability, start = 1.0, 0
        for place, scores in zip(places, scores_TS, strict=True):
            p = stopping(rule, parameters, scores)
            for passed in range(start, place):
                probability *= 1.0 - p[passed]
            probability, start = probability * p[place], place
        yield places, probability


@pytest.mark.parametrize("text", ["{kind: monotonic, noise: 0}", "{kind: mocha, noise: 0, chunk: 2}"])
def test_training_takes_the_expectation_over_all_walks(text: str) -> None:
    """The weights of each step against a sum over all sequences of positions, and their gradient with respect to the
    scores of all steps against differences of these sums."""
    rule = attention_config(weights=text).weights
    parameters = {"gain_1": torch.tensor([1.3]).double(), "offset_1": torch.tensor([0.4]).double()}
    steps_, length = 3, 4
    torch.manual_seed(5)
    scores_TS = torch.randn(steps_, length, dtype=torch.float64, requires_grad=True)
    back_TS = torch.randn(steps_, length, dtype=torch.float64)

    def ours() -> Tensor:
        state, found = torch.eye(length + 2, dtype=torch.float64)[None, :1], []
        for scores_S in scores_TS:
            context = AttentionContext(torch.zeros(1, 1, 2), torch.zeros(1, 1), True, 0, state)
            padded_S = torch.cat([scores_S, torch.full((2,), -torch.inf, dtype=torch.float64)])
            weights_1HTS, _, state = rule(padded_S[None, None, None], context, parameters)
            found.append(weights_1HTS[0, 0, 0, :length])
            assert (weights_1HTS[0, 0, 0, length:] == 0).all()
        return torch.stack(found)

    def by_enumeration(scores: list[list[float]]) -> list[list[float]]:
        weights = [[0.0] * length for _ in range(steps_)]
        for places, probability in walks(rule, parameters, scores):
            for t, place in enumerate(places):
                inside = range(max(place - rule.chunk + 1, 0), place + 1) if rule.kind == "mocha" else [place]
                exponentials = {s: math.exp(scores[t][s]) for s in inside}
                for s, each in exponentials.items():
                    weights[t][s] += probability * each / sum(exponentials.values())
        return weights

    weights_TS, scores = ours(), scores_TS.tolist()
    assert weights_TS.tolist() == [pytest.approx(row, abs=1e-6) for row in by_enumeration(scores)]
    (gradient_TS,) = torch.autograd.grad((weights_TS * back_TS).sum(), scores_TS)
    step = 1e-5
    for t, s in itertools.product(range(steps_), range(length)):
        totals = []
        for sign in (1, -1):
            moved = [list(row) for row in scores]
            moved[t][s] += sign * step
            totals.append((torch.tensor(by_enumeration(moved), dtype=torch.float64) * back_TS).sum().item())
        assert gradient_TS[t, s].item() == pytest.approx((totals[0] - totals[1]) / (2 * step), abs=1e-5)


def test_noise_is_drawn_in_training_alone() -> None:
    rule = attention_config(weights="monotonic").weights
    parameters = {"gain_1": torch.ones(1), "offset_1": torch.zeros(1)}
    scores_11TS = torch.zeros(1, 1, 500, 6)

    def weights(is_training: bool) -> Tensor:
        context = AttentionContext(torch.zeros(1, 500, 2), torch.zeros(1, 500), is_training, 0)
        return rule(scores_11TS, context, parameters).weights_BHTS

    # p at the first word is sigmoid(-1 + noise), whose mean over N(0, 1) is about 0.303
    assert weights(True)[..., 0].mean().item() == pytest.approx(0.303, abs=0.03)
    assert weights(True)[..., 0].std().item() > 0.1
    assert weights(False)[0, 0, 0].tolist() == [0.0] * 5 + [1.0], "p < 1/2 everywhere, and the last word stops all"


@pytest.mark.parametrize("text", ["entmax", "{kind: entmax, alpha: 1.1}", "{kind: entmax, alpha: 1.9}", "shift"])
def test_the_jacobian_is_the_numerical_one(text: str) -> None:
    """Of the weights with respect to the scores, and of ``shift`` also with respect to the last weights and the
    controls; away from places where a weight turns 0."""
    rule = attention_config(weights=text).weights
    torch.manual_seed(3)
    scores_11TS = (2.0 * torch.randn(1, 1, 6, 5, dtype=torch.float64)).requires_grad_()
    last_1TS = torch.rand(1, 6, 5, dtype=torch.float64).softmax(-1).requires_grad_()
    controls_XQ = torch.randn(5, 3, dtype=torch.float64, requires_grad=True)
    query_1TQ = torch.randn(1, 6, 3, dtype=torch.float64)

    padding_11TS = torch.full((1, 1, 6, 2), -torch.inf, dtype=torch.float64)

    def weights(scores_11TS: Tensor, last_1TS: Tensor, controls_XQ: Tensor) -> Tensor:
        context = AttentionContext(query_1TQ, torch.zeros(1, 6), True, 0, nn.functional.pad(last_1TS, (0, 2)))
        padded_11TS = torch.cat([scores_11TS, padding_11TS], dim=-1)
        return rule(padded_11TS, context, {"controls_XQ": controls_XQ}).weights_BHTS

    torch.autograd.gradcheck(weights, (scores_11TS, last_1TS, controls_XQ), eps=1e-7, atol=1e-5)


def test_entmax_has_exact_zeros_between_those_of_softmax_and_sparsemax() -> None:
    torch.manual_seed(4)
    scores_11TS = 1.5 * torch.randn(1, 1, 300, 8)
    context = AttentionContext(torch.zeros(1, 300, 2), torch.zeros(1, 300), False, 0)
    zeros = []
    for text in ("softmax", "{kind: entmax, alpha: 1.2}", "entmax", "{kind: entmax, alpha: 1.8}", "sparsemax"):
        weights_11TS = attention_config(weights=text).weights(scores_11TS, context, {}).weights_BHTS
        torch.testing.assert_close(weights_11TS.sum(-1), torch.ones(1, 1, 300))
        zeros.append((weights_11TS == 0).float().mean().item())
    assert zeros == sorted(zeros)
    assert zeros[0] == 0.0 < zeros[1] < zeros[2] < zeros[3] < zeros[4]

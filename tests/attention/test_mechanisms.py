"""Scores and weightings against loops written from the papers."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from nmt.attention.attention import Attention
from nmt.attention.config import AttentionConfig
from nmt.attention.mechanism import Mechanism
from nmt.attention.registry import SCORES, WEIGHTS
from nmt.core.structure import parse_document, validate

B, T, S, Q, K = 2, 3, 5, 4, 6


def make(score: str, *, query: int = Q, key: int = K) -> Attention:
    torch.manual_seed(1)
    attention = Attention(
        validate(AttentionConfig, parse_document(f"score: {score}", "test")), query_size=query, key_size=key
    )
    for parameter in attention.parameters():
        nn.init.normal_(parameter)
    return attention.double()


def inputs(*, query: int = Q, key: int = K) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    torch.manual_seed(2)
    is_pad = torch.tensor([[False] * 5, [False, False, False, True, True]])
    return torch.randn(B, T, query, dtype=torch.float64), torch.randn(B, S, key, dtype=torch.float64), is_pad


def dot(a: list[float], b: list[float]) -> float:
    return sum(x * y for x, y in zip(a, b, strict=True))


def times(matrix: torch.Tensor, vector: list[float]) -> list[float]:
    return [dot(row, vector) for row in matrix.tolist()]


def expected_scores(name: str, attention: Attention, query: list[float], key: list[float]) -> float:
    """One score, from the formula in the paper."""
    project_query, project_key = attention.query_projection, attention.key_projection
    if name == "dot":
        return dot(query, times(project_key.weight, key) if project_key is not None else key)
    assert project_key is not None
    if name == "general":
        return dot(query, times(project_key.weight, key))
    if name == "additive":
        assert project_query is not None
        inner = zip(times(project_query.weight, query), times(project_key.weight, key), strict=True)
        return dot(attention.score_parameters["v_A"].tolist(), [math.tanh(a + b) for a, b in inner])
    raise AssertionError(f"write an oracle for {name}")


@pytest.mark.parametrize("name", list(SCORES))
@pytest.mark.parametrize("key", [Q, K])
def test_attention_equals_plain_loops(name: str, key: int) -> None:
    attention = make(name, key=key)
    query_BTQ, states_BSK, is_pad_BS = inputs(key=key)
    attended = attention(query_BTQ, attention.memory(states_BSK, is_pad_BS))
    for b in range(B):
        length = int((~is_pad_BS[b]).sum())
        for t in range(T):
            scores = [
                expected_scores(name, attention, query_BTQ[b, t].tolist(), states_BSK[b, s].tolist())
                for s in range(length)
            ]
            largest = max(scores)
            exponentials = [math.exp(each - largest) for each in scores]
            weights = [each / sum(exponentials) for each in exponentials]
            assert attended.weights_BHTS[b, 0, t, :length].tolist() == pytest.approx(weights, abs=1e-5)
            assert attended.weights_BHTS[b, 0, t, length:].tolist() == [0.0] * (S - length)
            context = [sum(w * states_BSK[b, s, k].item() for s, w in enumerate(weights)) for k in range(key)]
            assert attended.context_BTV[b, t].tolist() == pytest.approx(context, abs=1e-4)


@pytest.mark.parametrize("name", list(SCORES))
def test_beams_share_their_sentences_memory(name: str) -> None:
    attention = make(name)
    _, states_BSK, is_pad_BS = inputs()
    memory = attention.memory(states_BSK, is_pad_BS)
    beams_NTQ = torch.randn(B * 3, T, Q, dtype=torch.float64)
    together = attention(beams_NTQ, memory)
    apart = attention(beams_NTQ, memory.repeat(3))
    torch.testing.assert_close(together.context_BTV, apart.context_BTV)
    torch.testing.assert_close(together.weights_BHTS, apart.weights_BHTS)


@pytest.mark.parametrize("name", list(WEIGHTS))
def test_padding_gets_exactly_nothing_and_the_rest_sums_to_one(name: str) -> None:
    scores = torch.randn(2, 1, 3, 6) * 5
    scores[1, ..., 4:] = -torch.inf
    weights = WEIGHTS[name]()(scores, {})
    assert (weights[1, ..., 4:] == 0).all()
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, 1, 3))


@pytest.mark.parametrize("mechanism", [*SCORES.values(), *WEIGHTS.values()])
def test_every_mechanism_names_its_formula_and_source(mechanism: type[Mechanism]) -> None:
    assert mechanism.formula
    assert mechanism.source
    assert mechanism.__doc__


def test_additive_size_is_configurable() -> None:
    attention = make("{kind: additive, size: 9}")
    assert attention.score_parameters["v_A"].shape == (9,)


@pytest.mark.parametrize("name", list(SCORES))
def test_attending_in_parts_changes_nothing(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    attention = make(name)
    query_BTQ, states_BSK, is_pad_BS = inputs()
    memory = attention.memory(states_BSK, is_pad_BS)
    whole = attention(query_BTQ, memory)
    monkeypatch.setattr("nmt.attention.attention.CELLS", 2 * B * memory.keys_BHSA[0].numel())
    in_parts = attention(query_BTQ, memory)  # of two and one positions
    torch.testing.assert_close(in_parts.context_BTV, whole.context_BTV)
    torch.testing.assert_close(in_parts.weights_BHTS, whole.weights_BHTS)

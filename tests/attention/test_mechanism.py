"""What the base classes give to every mechanism."""

from __future__ import annotations

from typing import ClassVar

import pytest
import torch
from torch import Tensor

from nmt.attention.mechanism import (
    AttentionContext,
    AttentionWeights,
    Mechanism,
    Parameter,
    Parameters,
    Sizes,
    StatefulScore,
    StatefulWeighting,
    Weighting,
)
from nmt.attention.registry import SCORES, WEIGHTS


@pytest.mark.parametrize("mechanism", [*SCORES.values(), *WEIGHTS.values()])
def test_every_mechanism_names_its_formula_and_source(mechanism: type[Mechanism]) -> None:
    assert mechanism.formula
    assert mechanism.source
    assert mechanism.__doc__


@pytest.mark.parametrize("name", ["dot", "scaled_dot", "cosine", "gaussian"])
def test_nothing_is_projected_that_needs_no_projection(name: str) -> None:
    rule = SCORES[name]()
    assert "key_weight_AK" not in rule.parameters(Sizes(query=4, key=4))
    assert rule.parameters(Sizes(query=4, key=6))["key_weight_AK"] == Parameter((4, 6))


def test_keys_are_projected_to_the_width_of_the_query_where_there_is_a_matrix() -> None:
    keys_BHSK, weight_AK = torch.randn(2, 3, 5, 6), torch.randn(4, 6)
    assert SCORES["dot"]().precompute_keys(keys_BHSK, {}) is keys_BHSK
    projected_BHSA = SCORES["dot"]().precompute_keys(keys_BHSK, {"key_weight_AK": weight_AK})
    torch.testing.assert_close(projected_BHSA[1, 2, 3], weight_AK @ keys_BHSK[1, 2, 3])


class Sum(StatefulScore):
    """score = sum of q + sum of k + state of the key."""

    formula: ClassVar[str] = "sum"
    source: ClassVar[str] = "this test"
    kind: str = "sum"

    def initial_state(self, keys_BHSA: Tensor) -> Tensor:
        return 10.0 * torch.arange(keys_BHSA.shape[2]).expand(len(keys_BHSA), -1)

    def with_state(self, query_BHTQ: Tensor, keys_BHSA: Tensor, parameters: Parameters, state_BTX: Tensor) -> Tensor:
        return query_BHTQ.sum(-1)[..., None] + keys_BHSA.sum(-1)[:, :, None] + state_BTX[:, None]

    def next_state(
        self, state_BTX: Tensor, weights_BTS: Tensor, query_BTQ: Tensor, keys_BHSA: Tensor, parameters: Parameters
    ) -> Tensor:
        raise NotImplementedError


def test_a_score_with_a_state_begins_each_query_with_the_first_one() -> None:
    query_BHTQ, keys_BHSA = torch.randn(2, 1, 3, 4), torch.randn(2, 1, 5, 6)
    scores_BHTS = Sum()(query_BHTQ, keys_BHSA, {})
    assert scores_BHTS.shape == (2, 1, 3, 5)
    for b, t, s in ((0, 0, 0), (1, 2, 4), (0, 1, 3)):
        expected = sum(query_BHTQ[b, 0, t].tolist()) + sum(keys_BHSA[b, 0, s].tolist()) + 10.0 * s
        assert scores_BHTS[b, 0, t, s].item() == pytest.approx(expected, abs=1e-5)
    assert Sum.is_stateful
    assert not SCORES["dot"].is_stateful


class Last(StatefulWeighting):
    """The weights of the step before."""

    formula: ClassVar[str] = "last"
    source: ClassVar[str] = "this test"
    kind: str = "last"

    def __call__(self, scores_BHTS: Tensor, context: AttentionContext, parameters: Parameters) -> AttentionWeights:
        return AttentionWeights(self.state(scores_BHTS, context)[:, None])


def test_weights_with_a_state_begin_at_the_first_word() -> None:
    scores_BHTS = torch.zeros(2, 1, 3, 4)
    scores_BHTS[1, ..., 2:] = -torch.inf
    context = AttentionContext(torch.zeros(2, 3, 1), torch.zeros(2, 3), False, 0)
    assert Last()(scores_BHTS, context, {}).weights_BHTS.tolist() == [[[[1.0, 0.0, 0.0, 0.0]] * 3]] * 2
    state_BTX = torch.rand(2, 3, 4)
    given = AttentionContext(torch.zeros(2, 3, 1), torch.zeros(2, 3), False, 0, state_BTX)
    assert torch.equal(Last()(scores_BHTS, given, {}).weights_BHTS[:, 0], state_BTX)
    assert Weighting.allowed(scores_BHTS).tolist() == [[[4]] * 3, [[2]] * 3]
    assert (Last().heads, Last().marginalizes, Last.is_stateful, Last.chooses) == (1, False, True, False)

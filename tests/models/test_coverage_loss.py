"""The penalty for attending twice, in plain loops."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from nmt.models.coverage_loss import CoverageLoss
from nmt.models.feed import TeacherForcing
from nmt.models.loss import CrossEntropy, token_loss
from nmt.models.names import matching
from nmt.models.r_drop import RDrop
from tests.models.plain_decoder import SOURCES, TARGETS, padded
from tests.models.variants import TRANSFORMER, WIRINGS, make, tree

MODELS = {
    "coverage": tree(score="coverage"),
    "parallel": tree(decoder=WIRINGS["parallel"]),
    "transformer": tree(score="scaled_dot", encoder=TRANSFORMER, decoder=TRANSFORMER),
}


@pytest.mark.parametrize("config", MODELS.values(), ids=MODELS)
def test_it_is_the_sum_of_the_smaller_of_weight_and_coverage(config: dict[str, Any]) -> None:
    model = make({**config, "dropout": {"embedding": 0.0, "layers": 0.0}}).train()
    model.decoder.return_weights_of(matching(model.decoder.head_names, "*"))
    losses = [
        token_loss(model, padded(SOURCES), padded(TARGETS), TeacherForcing(), each).objective
        for each in (CoverageLoss(CrossEntropy(0.1), 0.7, passes=1), CrossEntropy(0.1))
    ]
    weights_BHTS = model.eval().teacher_forced(padded(TARGETS), model.encode(padded(SOURCES))).weights_BHTS
    expected = 0.0
    for weights_HTS, source, target in zip(weights_BHTS.tolist(), SOURCES, TARGETS, strict=True):
        covered = [0.0] * len(source)
        for t in range(len(target)):
            weights = [sum(head[t][s] for head in weights_HTS) / len(weights_HTS) for s in range(len(source))]
            expected += sum(min(each, before) for each, before in zip(weights, covered, strict=True))
            covered = [before + each for before, each in zip(covered, weights, strict=True)]
    assert expected > 1.0
    assert (losses[0] - losses[1]).item() == pytest.approx(0.7 * expected, rel=1e-4)


def test_it_is_the_mean_over_two_passes() -> None:
    model = make({**MODELS["coverage"], "dropout": {"embedding": 0.0, "layers": 0.0}}).train()
    once, twice = (
        token_loss(model, padded(SOURCES * passes), padded(TARGETS * passes), TeacherForcing(), criterion).objective
        for passes, criterion in (
            (1, CoverageLoss(CrossEntropy(), 1.0, passes=1)),
            (2, CoverageLoss(RDrop(CrossEntropy(), 1.0), 1.0, passes=2)),
        )
    )
    assert twice.item() == pytest.approx(once.item(), rel=1e-5)


def test_descent_makes_attention_move_on() -> None:
    """Attention that can choose freely learns to look at each word once."""
    model = make(tree(score="location_sensitive"), scale=0.5).train()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    penalties = []
    for _ in range(60):
        losses = [
            token_loss(model, padded(SOURCES), padded(TARGETS), TeacherForcing(), each).objective
            for each in (CoverageLoss(CrossEntropy(), 1.0, passes=1), CrossEntropy())
        ]
        penalties.append((losses[0] - losses[1]).item())
        optimizer.zero_grad()
        (losses[0] - losses[1]).backward()
        optimizer.step()
    assert penalties[-1] < 0.6 * penalties[0]

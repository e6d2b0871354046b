"""The loss of a batch against plain loops over its tokens."""

from __future__ import annotations

import pytest
import torch

from nmt.models.feed import Feed, FreeRunning, TeacherForcing
from nmt.models.loss import CrossEntropy, token_loss
from tests.models.plain_decoder import SOURCES, TARGETS, padded
from tests.models.variants import make, tree


@torch.no_grad()
@pytest.mark.parametrize("count", [None, sum(map(len, TARGETS))], ids=["", "counted"])
@pytest.mark.parametrize("feed", [TeacherForcing(), FreeRunning()], ids=["teacher forcing", "free running"])
def test_cross_entropy_is_a_sum_over_gold_tokens_whatever_is_read(feed: Feed, count: int | None) -> None:
    model = make(tree(), seed=6)
    loss = token_loss(model, padded(SOURCES), padded(TARGETS), feed, CrossEntropy(0.1), count=count)
    objective, cross_entropies, correct = 0.0, [], 0
    for source, target in zip(SOURCES, TARGETS, strict=True):
        memory = model.encode(torch.tensor([source]))
        state, token = model.start(memory), torch.tensor([model.bos])
        for gold in target:
            step = model.step(token, memory, state)
            log_p = step.logits_NV[0].log_softmax(-1).tolist()
            objective -= 0.9 * log_p[gold] + 0.1 * sum(log_p) / len(log_p)
            cross_entropies.append(-log_p[gold])
            correct += log_p[gold] == max(log_p)
            best = log_p.index(max(log_p))
            state, token = step.state, torch.tensor([gold if isinstance(feed, TeacherForcing) else best])
    assert loss.objective.item() == pytest.approx(objective, rel=1e-4)
    assert loss.cross_entropy_N.tolist() == pytest.approx(cross_entropies, rel=1e-4, abs=1e-5)
    assert loss.cross_entropy.item() == pytest.approx(sum(cross_entropies), rel=1e-4)
    assert loss.correct is not None
    assert 0 < loss.correct.item() == correct < len(cross_entropies)

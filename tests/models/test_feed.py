"""The tokens that the decoder reads in training."""

from __future__ import annotations

import pytest
import torch

from nmt.models.feed import Feed, FreeRunning, TeacherForcing
from nmt.models.scheduled_sampling import ScheduledSampling

LOGITS_BV = torch.randn(50, 9, generator=torch.Generator().manual_seed(1))
BEST = [max(range(9), key=row.__getitem__) for row in LOGITS_BV.tolist()]
GOLD = [row % 9 for row in range(50)]


@pytest.mark.parametrize(
    ("feed", "expected"), [(TeacherForcing(), GOLD), (FreeRunning(), BEST), (ScheduledSampling(0.0), BEST)]
)
def test_the_next_token_is_the_gold_one_or_the_most_probable_one(feed: Feed, expected: list[int]) -> None:
    assert BEST != GOLD
    assert feed.begin(50, torch.device("cpu")).next(torch.tensor(GOLD), LOGITS_BV).tolist() == expected

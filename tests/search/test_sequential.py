"""Greedy search."""

from __future__ import annotations

import math

import pytest

from nmt.search.scoring import Ranking
from nmt.search.sequential import greedy_search
from tests.models.variants import make
from tests.search.plain_search import EOS, MODELS, SOURCES, each_model, forced, penalty, searched


@each_model
def test_greedy_search_counts_coverage_too(name: str) -> None:
    model, ranking = make(MODELS[name]), Ranking(1.0, "gnmt", 2.0)
    for source, (best,) in zip(SOURCES, searched(greedy_search(EOS, ranking), model), strict=True):
        attended = forced(model, source, best.tokens).attended_S
        covered = sum(math.log(min(max(each, 1e-4), 1.0)) for each in attended)
        length = len(best.tokens) + 1
        assert best.score == pytest.approx(best.log_prob / penalty(ranking, length) + 2.0 * covered, abs=1e-4)

"""Greedy search."""

from __future__ import annotations

import itertools
import math

import pytest

from nmt.search.logits_processors import LogitsProcessor, NoRepeat, Suppress
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


@each_model
def test_greedy_search_finds_the_same_without_scores(name: str) -> None:
    """Under processors, prefixes and coverage too."""
    model, tokens = make(MODELS[name]), set()
    each_processor: list[list[LogitsProcessor]] = [[], [NoRepeat(1)], [Suppress(EOS, before=3)]]
    for restrictions, prefixes in itertools.product(each_processor, (None, [[5], [], [4, 4]])):
        searches = (greedy_search(EOS, Ranking(1.0, coverage=0.5), scored) for scored in (True, False))
        batches = (searched(search, model, processors=restrictions, prefixes=prefixes) for search in searches)
        scored, unscored = ([best for (best,) in batch] for batch in batches)
        assert [each.tokens for each in unscored] == [each.tokens for each in scored]
        assert all(math.isfinite(each.score) and math.isfinite(each.log_prob) for each in scored)
        assert all(math.isnan(each.score) and math.isnan(each.log_prob) for each in unscored)
        tokens.add(tuple(each.tokens for each in scored))
    assert len(tokens) > 3

"""Restrictions on the next token, against plain loops over teacher forcing."""

from __future__ import annotations

import itertools
import math
from collections import Counter

import pytest
import torch

from nmt.search.beam import BeamSearch
from nmt.search.logits_processors import LogitsProcessors, NoRepeat, Suppress
from nmt.search.scoring import Ranking
from nmt.search.sequential import greedy_search
from tests.models.variants import make
from tests.search.plain_search import EOS, MODELS, SOURCE, SOURCES, Tokens, agrees, each_model, log_prob, searched
from tests.search.scripted import scripted


@each_model
@pytest.mark.parametrize("order", [1, 2, 3])
def test_no_sequence_comes_twice(name: str, order: int) -> None:
    def allowed(tokens: Tokens, token: int) -> bool:
        extended = (*tokens, token)
        grams = Counter(extended[place : place + order] for place in range(len(extended) - order + 1))
        return token == EOS or max(grams.values(), default=0) < 2

    repeats = 0
    for seed in range(3):
        model = make(MODELS[name], seed=seed)
        agrees(model, BeamSearch(EOS, Ranking(1.0), 3, n_best=3), allowed, processors=[NoRepeat(order)])
        for processors in ([], [NoRepeat(order)]):
            for (best,) in searched(greedy_search(EOS, Ranking()), model, processors=processors):
                is_allowed = all(allowed(best.tokens[:place], token) for place, token in enumerate(best.tokens))
                assert is_allowed or not processors
                repeats += not is_allowed
    assert repeats > 0, "the test would pass without the processor"


@each_model
@pytest.mark.parametrize("least", [1, 3])
def test_nothing_ends_too_early(name: str, least: int) -> None:
    def allowed(tokens: Tokens, token: int) -> bool:
        return token != EOS or len(tokens) >= least

    for seed in range(2):
        model = make(MODELS[name], seed=seed)
        agrees(model, BeamSearch(EOS, Ranking(1.0), 3, n_best=3), allowed, processors=[Suppress(EOS, before=least)])


def test_the_limit_is_stronger_than_all_else() -> None:
    """A sentence that may have two tokens has two, even where five are asked for."""
    limits, processors = torch.tensor([3, 3, 3]), [Suppress(EOS, before=5), NoRepeat(1)]
    for search in (greedy_search(EOS, Ranking()), BeamSearch(EOS, Ranking(), 3)):
        for hypotheses in searched(search, make(MODELS["rnn"]), limit_B=limits, processors=processors):
            assert len(hypotheses[0].tokens) == 2
            assert math.isfinite(hypotheses[0].score)


def test_the_length_limit_ends_each_sentence_by_itself() -> None:
    endless = scripted([[0.01, 0.01, 0.01, 0.01, 0.95, 0.01]])
    for search in (greedy_search(EOS, Ranking(0.0)), BeamSearch(EOS, Ranking(9.0), 4)):
        assert [len(best.tokens) for best, *_ in searched(search, endless, SOURCE, torch.tensor([5, 1]))] == [4, 0]


@each_model
def test_translations_begin_as_told(name: str) -> None:
    """A prefix may also contain tokens that are otherwise forbidden; the score counts it."""
    prefixes = [[5, 5, 5], [], [4]]
    for seed, beam in itertools.product(range(3), (1, 4)):
        model = make(MODELS[name], seed=seed)
        search = greedy_search(EOS, Ranking()) if beam == 1 else BeamSearch(EOS, Ranking(), beam, n_best=4)
        found = searched(search, model, prefixes=prefixes, processors=[NoRepeat(1)])
        for source, prefix, hypotheses in zip(SOURCES, prefixes, found, strict=True):
            for each in hypotheses:
                assert list(each.tokens[: len(prefix)]) == prefix
                assert each.log_prob == pytest.approx(log_prob(model, source, each.tokens), abs=1e-4)


@each_model
def test_with_a_prefix_the_beam_is_the_beam_of_what_follows(name: str) -> None:
    def allowed(tokens: Tokens, token: int) -> bool:
        return len(tokens) > 1 or token == (4, 1)[len(tokens)]

    for seed in range(3):
        search = BeamSearch(EOS, Ranking(1.0), 4, n_best=4)
        agrees(make(MODELS[name], seed=seed), search, allowed, prefixes=[[4, 1]] * 3)


def test_what_no_longer_rules_out_anything_costs_nothing() -> None:
    limits = torch.tensor([9])
    early = LogitsProcessors(limits, eos=EOS, processors=[Suppress(EOS, before=2)])
    assert [early.is_unconstrained(time, 9) for time in range(4)] == [False, False, True, True]
    assert not LogitsProcessors(limits, eos=EOS, processors=[NoRepeat(1)]).is_unconstrained(5, 9)

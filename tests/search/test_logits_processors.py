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
from tests.search.plain_search import (
    EOS,
    LIMIT_B,
    MODELS,
    SOURCES,
    Tokens,
    agrees,
    beam_search,
    each_model,
    greedy,
    log_prob,
    padded,
    penalty,
    plain_beam,
)
from tests.search.scripted import scripted

SOURCE = torch.tensor([[4, 5, 3], [4, 3, 0]])


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
        agrees(model, BeamSearch(EOS, Ranking(1.0), 3, n_best=3), [NoRepeat(order)], allowed)
        processors = LogitsProcessors(LIMIT_B, eos=EOS)
        for (best,) in greedy_search(EOS, Ranking())(model, padded(SOURCES), processors):
            repeats += not all(allowed(best.tokens[:place], token) for place, token in enumerate(best.tokens))
        processors = LogitsProcessors(LIMIT_B, eos=EOS, processors=[NoRepeat(order)])
        for (best,) in greedy_search(EOS, Ranking())(model, padded(SOURCES), processors):
            assert all(allowed(best.tokens[:place], token) for place, token in enumerate(best.tokens))
    assert repeats > 0, "the test would pass without the processor"


@each_model
@pytest.mark.parametrize("least", [1, 3])
def test_nothing_ends_too_early(name: str, least: int) -> None:
    def allowed(tokens: Tokens, token: int) -> bool:
        return token != EOS or len(tokens) >= least

    for seed in range(2):
        model = make(MODELS[name], seed=seed)
        agrees(model, BeamSearch(EOS, Ranking(1.0), 3, n_best=3), [Suppress(EOS, before=least)], allowed)


def test_the_limit_is_stronger_than_all_else() -> None:
    """A sentence that may have two tokens has two, even where five are asked for."""
    processors = LogitsProcessors(torch.tensor([3, 3, 3]), eos=EOS, processors=[Suppress(EOS, before=5), NoRepeat(1)])
    for search in (greedy_search(EOS, Ranking()), BeamSearch(EOS, Ranking(), 3)):
        for hypotheses in search(make(MODELS["rnn"]), padded(SOURCES), processors):
            assert len(hypotheses[0].tokens) == 2
            assert math.isfinite(hypotheses[0].score)


def test_the_length_limit_ends_each_sentence_by_itself() -> None:
    endless = [[0.01, 0.01, 0.01, 0.01, 0.95, 0.01]]
    for beam in (1, 4):
        if beam == 1:
            lengths = [
                len(each.tokens)
                for each in greedy(scripted(endless), SOURCE, torch.tensor([5, 1]), eos=EOS, exponent=0.0)
            ]
        else:
            found = beam_search(scripted(endless), SOURCE, torch.tensor([5, 1]), beam=beam, eos=EOS, exponent=9.0)
            lengths = [len(best.tokens) for best, *_ in found]
        assert lengths == [4, 0]


@each_model
def test_translations_begin_as_told(name: str) -> None:
    """A prefix may also contain tokens that are otherwise forbidden; the score counts it."""
    prefixes = [[5, 5, 5], [], [4]]
    for seed, beam in itertools.product(range(3), (1, 4)):
        model = make(MODELS[name], seed=seed)
        processors = LogitsProcessors(LIMIT_B, eos=EOS, prefixes=prefixes, processors=[NoRepeat(1)])
        search = greedy_search(EOS, Ranking()) if beam == 1 else BeamSearch(EOS, Ranking(), beam, n_best=4)
        for source, prefix, hypotheses in zip(
            SOURCES, prefixes, search(model, padded(SOURCES), processors), strict=True
        ):
            for each in hypotheses:
                assert list(each.tokens[: len(prefix)]) == prefix
                assert each.log_prob == pytest.approx(log_prob(model, source, each.tokens), abs=1e-4)


@each_model
def test_with_a_prefix_the_beam_is_the_beam_of_what_follows(name: str) -> None:
    ranking = Ranking(1.0)
    for seed in range(3):
        model = make(MODELS[name], seed=seed)
        search = BeamSearch(EOS, ranking, 4, n_best=4)
        (found,) = search(model, torch.tensor([SOURCES[0]]), LogitsProcessors(LIMIT_B[:1], eos=EOS, prefixes=[[4, 1]]))
        expected = plain_beam(
            model, SOURCES[0], eos=EOS, limit=7, beam=4, n_best=4,
            score=lambda value, length, covered: value / penalty(ranking, length),
            allowed=lambda tokens, token: len(tokens) > 1 or token == (4, 1)[len(tokens)],
            longest_score=lambda value: value / penalty(ranking, 7),
        )  # fmt: skip
        assert [each.tokens for each in found] == [each.tokens for each in expected]

"""Words that must appear: against an enumeration of all translations that contain them, and the parts by themselves."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import torch

from nmt.models.seq2seq import Seq2Seq
from nmt.search.beam import BeamSearch
from nmt.search.constrained import ConstrainedBeamSearch, Phrase, Progress, progress
from nmt.search.rules import Rules, Shortest
from nmt.search.scoring import Ranking
from tests.models.variants import TRANSFORMER, make, tree
from tests.search.plain_search import Tokens, forced

EOS = 3
SOURCES = [[4, 5, 1, 4, 3], [5, 3], [5, 5, 4, 3]]
SOURCE_BS = torch.tensor([[4, 5, 1, 4, 3], [5, 3, 0, 0, 0], [5, 5, 4, 3, 0]])
PHRASES: tuple[tuple[Phrase, ...], ...] = (((4, 5), (1,)), (), ((5, 1),))
MODELS = {"rnn": tree(), "transformer": tree(score="scaled_dot", encoder=TRANSFORMER, decoder=TRANSFORMER)}

each_model = pytest.mark.parametrize("name", list(MODELS))


def contains(tokens: Tokens, phrases: tuple[Phrase, ...]) -> bool:
    """Whether the phrases stand in the tokens, none over another, in whatever order."""
    if not phrases:
        return True
    first, *others = phrases
    places = [place for place in range(len(tokens)) if tokens[place : place + len(first)] == first]
    return any(contains((*tokens[:place], -1, *tokens[place + len(first) :]), tuple(others)) for place in places)


def log_prob(model: Seq2Seq[Any, Any], source: list[int], tokens: Tokens) -> float:
    return sum(forced(model, source, tokens[:place]).log_prob_V[token] for place, token in enumerate((*tokens, EOS)))


@each_model
def test_wide_beams_find_what_enumeration_finds(name: str) -> None:
    limit = 5
    model = make(MODELS[name], seed=0)
    search = ConstrainedBeamSearch(EOS, Ranking(1.0), 2500, n_best=3, phrases=PHRASES)
    found = search(model, SOURCE_BS, Rules(torch.full((3,), limit), eos=EOS))
    for source, phrases, hypotheses in zip(SOURCES, PHRASES, found, strict=True):
        every = [
            tokens
            for size in range(limit)
            for tokens in itertools.product([0, 1, 2, 4, 5], repeat=size)
            if contains(tokens, phrases)
        ]
        if len(every) > 200:  # the sentence without phrases is that of the contract's own test
            continue
        scored = sorted((log_prob(model, source, each) / ((5 + len(each) + 1) / 6), each) for each in every)[::-1]
        assert [each.tokens for each in hypotheses] == [tokens for _, tokens in scored[:3]]
        assert [each.score for each in hypotheses] == pytest.approx([value for value, _ in scored[:3]], abs=1e-4)


@each_model
@pytest.mark.parametrize("beam", [1, 2, 5])
def test_whatever_the_beam_every_translation_contains_its_phrases(name: str, beam: int) -> None:
    limits = torch.tensor([4, 4, 9])  # the first has room for its three tokens and no more
    for seed in range(5):
        model = make(MODELS[name], seed=seed)
        search = ConstrainedBeamSearch(EOS, Ranking(1.0), beam, n_best=beam, phrases=PHRASES)
        found = search(model, SOURCE_BS, Rules(limits, eos=EOS, bans=[Shortest(2, eos=EOS)]))
        for source, phrases, limit, hypotheses in zip(SOURCES, PHRASES, limits.tolist(), found, strict=True):
            assert hypotheses
            for each in hypotheses:
                assert contains(each.tokens, phrases)
                assert 2 <= len(each.tokens) < limit
                assert each.log_prob == pytest.approx(log_prob(model, source, each.tokens), abs=1e-4)


@each_model
def test_a_prefix_comes_first(name: str) -> None:
    model = make(MODELS[name])
    search = ConstrainedBeamSearch(EOS, Ranking(1.0), 4, n_best=2, phrases=PHRASES)
    rules = Rules(torch.tensor([8, 8, 8]), eos=EOS, prefixes=[[5, 5], [4], [5]])
    for prefix, phrases, hypotheses in zip([(5, 5), (4,), (5,)], PHRASES, search(model, SOURCE_BS, rules), strict=True):
        for each in hypotheses:
            assert each.tokens[: len(prefix)] == prefix
            assert contains(each.tokens, phrases)


@each_model
def test_a_sentence_does_not_depend_on_its_company(name: str) -> None:
    model = make(MODELS[name])
    together = ConstrainedBeamSearch(EOS, Ranking(1.0), 4, phrases=PHRASES)
    found = together(model, SOURCE_BS, Rules(torch.tensor([8, 8, 8]), eos=EOS))
    for row, phrases in enumerate(PHRASES):
        alone = ConstrainedBeamSearch(EOS, Ranking(1.0), 4, phrases=(phrases,))
        source_1S = SOURCE_BS[row : row + 1, : len(SOURCES[row])]
        ((best, *_),) = alone(model, source_1S, Rules(torch.tensor([8]), eos=EOS))
        assert best.tokens == found[row][0].tokens


@each_model
def test_what_appears_anyway_costs_nothing(name: str) -> None:
    """Phrases taken from the best translation leave it the best, with a beam that loses nothing."""
    for seed in range(4):
        model, rules = make(MODELS[name], seed=seed), Rules(torch.tensor([5, 5, 5]), eos=EOS)
        free = BeamSearch(EOS, Ranking(1.0), 800)(model, SOURCE_BS, rules)
        phrases = tuple((best.tokens[:2],) if best.tokens else () for (best,) in free)
        told = ConstrainedBeamSearch(EOS, Ranking(1.0), 800, phrases=phrases)(model, SOURCE_BS, rules)
        assert [best.tokens for (best,) in told] == [best.tokens for (best,) in free]


def test_progress_is_told_token_by_token() -> None:
    phrases = ((4, 5), (1,))
    assert progress(phrases, []).next_tokens == (4, 1)
    assert progress(phrases, [4]) == Progress(((4, 5), (1,)), 1)
    assert progress(phrases, [4]).next_tokens == (5,)
    assert progress(phrases, [4]).missing == 2
    assert progress(phrases, [4, 5]) == Progress(((1,),))
    assert progress(phrases, [4, 1]) == Progress(((4, 5),))  # broken off by what is a phrase itself
    assert progress(phrases, [4, 4]) == Progress(((4, 5), (1,)), 1)  # begun anew
    assert progress(phrases, [4, 0]) == Progress(((4, 5), (1,)))
    assert progress(phrases, [1, 1, 4, 5]).missing == 0
    assert progress(((1,), (1,)), [1]).missing == 1  # given twice, to be met twice

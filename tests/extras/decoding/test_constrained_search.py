"""Words that must appear: against an enumeration of all translations that contain them, and the parts by themselves."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
import torch
from torch import Tensor

from nmt.extras.decoding import phrases as phrases_module
from nmt.extras.decoding.constrained_search import ConstrainedBeamSearch, allocated
from nmt.models.seq2seq import Seq2Seq
from nmt.search.beam import BeamSearch
from nmt.search.hypothesis import Constraint, Hypothesis
from nmt.search.logits_processors import LogitsProcessors, Suppress
from nmt.search.repetition import Repetitions
from nmt.search.scoring import Ranking
from tests.extras.decoding import phrase_cases as cases
from tests.extras.decoding.phrase_cases import single
from tests.models.variants import make, tree
from tests.search.plain_search import EOS, MODELS, SOURCES, Tokens, each_model, log_prob
from tests.search.scripted import scripted

SOURCE_BS = torch.tensor([[4, 5, 1, 4, 3], [5, 3, 0, 0, 0], [5, 5, 4, 3, 0]])


FOLLOWS_V = torch.tensor([token in cases.FOLLOWING for token in range(6)])


def search(
    model: Any,
    phrases: Sequence[tuple[Constraint, ...]],
    limits: Sequence[int],
    beam: int = 4,
    *,
    n_best: int = 1,
    source_BS: Tensor = SOURCE_BS,
    reserved_V: Tensor | None = None,
    **processors: Any,
) -> list[tuple[Hypothesis, ...]]:
    masks = {"follows_word_V": FOLLOWS_V, "reserved_V": reserved_V}
    found = ConstrainedBeamSearch(EOS, Ranking(1.0), beam, n_best=n_best, phrases=tuple(phrases), **masks)  # type: ignore[arg-type]
    return found(model, source_BS, LogitsProcessors(torch.tensor(limits), eos=EOS, **processors))


WORDS = (0, 1, 2, 4, 5)
"""All tokens but end-of-sentence."""


@torch.no_grad()
def all_log_probs(model: Seq2Seq[Any, Any], source: Sequence[int], limit: int) -> dict[Tokens, float]:
    """Computes the log-probability of each sequence of fewer than ``limit`` tokens, by teacher forcing."""
    found: dict[Tokens, float] = {}
    for size in range(limit):
        each = list(itertools.product(WORDS, repeat=size))
        target_NT = torch.tensor([(*tokens, EOS) for tokens in each])
        memory = model.encode(torch.tensor([source] * len(each)))
        log_p_NTV = model.output(model.teacher_forced(target_NT, memory).readout_BTR).log_softmax(-1)
        total_N = log_p_NTV.gather(2, target_NT[:, :, None]).sum(dim=(1, 2))
        found |= dict(zip(each, total_N.tolist(), strict=True))
    return found


def orders(phrases_of: Sequence[tuple[Constraint, ...]]) -> Iterator[tuple[Constraint, ...]]:
    for phrases in phrases_of:
        yield from sorted(set(itertools.permutations(phrases)))


def test_wide_beams_find_what_enumeration_finds_in_whatever_order_phrases_stand() -> None:
    limit, source = 6, SOURCES[0]
    rows = [
        phrases
        for phrases in orders((*cases.ENTANGLED, *cases.CHOICES, *cases.AT_ENDS))
        if cases.least_missing((), phrases) < limit
    ]
    model = make(MODELS["rnn"], seed=3)
    log_probs = all_log_probs(model, source, limit)
    found = search(model, rows, [limit] * len(rows), 650, n_best=3, source_BS=torch.tensor([source] * len(rows)))
    scores = {tokens: log_prob / ((5 + len(tokens) + 1) / 6) for tokens, log_prob in log_probs.items()}
    for phrases, hypotheses in zip(rows, found, strict=True):
        containing = ((value, tokens) for tokens, value in scores.items() if cases.contains(tokens, phrases))
        scored = sorted(containing, reverse=True)[:3]
        assert [each.tokens for each in hypotheses] == [tokens for _, tokens in scored], phrases
        assert [each.score for each in hypotheses] == pytest.approx([value for value, _ in scored], abs=1e-4)


def test_reserved_tokens_are_in_phrases_alone() -> None:
    limit, source = 6, SOURCES[0]
    rows = [(), single((4,)), single((4,), (4,)), single((5, 4)), single((4,), (5, 4))]
    model = make(MODELS["rnn"], seed=3)
    log_probs = all_log_probs(model, source, limit)
    source_BS, reserved_V = torch.tensor([source] * len(rows)), torch.arange(6) == 4
    found = search(model, rows, [limit] * len(rows), 650, source_BS=source_BS, reserved_V=reserved_V)
    for phrases, hypotheses in zip(rows, found, strict=True):
        counted = [each for each in log_probs if cases.contains(each, phrases) and each.count(4) == len(phrases)]
        best = max(counted, key=lambda tokens: log_probs[tokens] / ((5 + len(tokens) + 1) / 6))
        assert hypotheses[0].tokens == best, phrases


def test_phrases_that_say_something_twice_have_the_scores_of_the_model() -> None:
    """Of 40 tokens, those of the phrases are seldom among the best."""
    model, source, phrases = make(tree(), tokens=40, seed=3), [4, 5, 3], [single((7, 7)), single((9, 8, 9, 8)), ()]
    free = Repetitions.of([source] * 3, 3.0, torch.device("cpu"))
    processors = LogitsProcessors(torch.tensor([12] * 3), eos=EOS, repetitions=free)
    searching = ConstrainedBeamSearch(EOS, Ranking(1.0), 2, phrases=tuple(phrases))
    found = searching(model, torch.tensor([source] * 3), processors)
    for of_row, (hypothesis,) in zip(phrases, found, strict=True):
        assert cases.contains(hypothesis.tokens, of_row)
        assert hypothesis.log_prob == pytest.approx(log_prob(model, source, hypothesis.tokens), abs=1e-3)


@each_model
@pytest.mark.parametrize("phrases_of", [cases.PHRASES, cases.ALTERNATIVES, (cases.AT_ENDS[1], (), cases.AT_ENDS[3])])
@pytest.mark.parametrize("beam", [1, 2, 5])
def test_whatever_the_beam_every_translation_contains_its_phrases(
    name: str, beam: int, phrases_of: tuple[tuple[Constraint, ...], ...]
) -> None:
    limits = [4, 4, 9]  # the first has room for its three tokens and no more
    for seed in range(2):
        model = make(MODELS[name], seed=seed)
        found = search(model, phrases_of, limits, beam, n_best=beam, processors=[Suppress(EOS, before=2)])
        for source, phrases, limit, hypotheses in zip(SOURCES, phrases_of, limits, found, strict=True):
            assert hypotheses
            for each in hypotheses:
                assert cases.contains(each.tokens, phrases)
                assert 2 <= len(each.tokens) < limit
                assert each.log_prob == pytest.approx(log_prob(model, source, each.tokens), abs=1e-4)


def test_no_beam_is_spent_on_what_cannot_meet_its_phrase_in_time() -> None:
    """The second of two tokens is the last chance: both beams continue translations that contain the phrase."""
    table = [[0.01, 0.06, 0.01, 0.02, 0.3, 0.6], [0.01, 0.1, 0.01, 0.03, 0.35, 0.5], [0.1, 0.1, 0.1, 0.5, 0.1, 0.1]]
    (found,) = search(scripted(table), [single((4,))], [3], 2, n_best=2, source_BS=SOURCE_BS[:1])
    assert [each.tokens for each in found] == [(5, 4), (4, 5)]


@each_model
def test_a_prefix_comes_first(name: str) -> None:
    model = make(MODELS[name])
    prefixes = [(5, 5), (4,), (5,)]
    found = search(model, cases.PHRASES, [8] * 3, n_best=2, prefixes=prefixes)
    for prefix, phrases, hypotheses in zip(prefixes, cases.PHRASES, found, strict=True):
        for each in hypotheses:
            assert each.tokens[: len(prefix)] == prefix
            assert cases.contains(each.tokens, phrases)


@each_model
def test_a_sentence_does_not_depend_on_its_company(name: str) -> None:
    model = make(MODELS[name])
    found = search(model, cases.PHRASES, [8] * 3)
    for row, phrases in enumerate(cases.PHRASES):
        source_1S = SOURCE_BS[row : row + 1, : len(SOURCES[row])]
        ((best, *_),) = search(model, [phrases], [8], source_BS=source_1S)
        assert best.tokens == found[row][0].tokens


@each_model
def test_what_appears_anyway_costs_nothing(name: str) -> None:
    """Phrases taken from the best translation leave it the best, with a beam that loses nothing."""
    for seed in range(4):
        model, processors = make(MODELS[name], seed=seed), LogitsProcessors(torch.tensor([5, 5, 5]), eos=EOS)
        free = BeamSearch(EOS, Ranking(1.0), 800)(model, SOURCE_BS, processors)
        told = search(model, [single(best.tokens[:2]) if best.tokens else () for (best,) in free], [5] * 3, 800)
        assert [best.tokens for (best,) in told] == [best.tokens for (best,) in free]


def test_banks_share_the_beams_and_what_one_leaves_goes_to_those_that_have_met_most() -> None:
    def banks(beam: int, missing: Sequence[int]) -> list[int]:
        """Returns the numbers of missing tokens of the chosen candidates, best first."""
        missing_1C = torch.tensor([missing])
        goes_on_1C = torch.ones_like(missing_1C, dtype=torch.bool)
        ((*kept,),) = allocated(missing_1C, goes_on_1C, torch.tensor([[2]]), banks=3, beam=beam).tolist()
        assert kept == sorted(kept), "best first"
        return sorted(missing[candidate] for candidate in kept)

    many = [2] * 9 + [1] * 9 + [0] * 9
    assert banks(3, many) == [0, 1, 2]
    assert banks(5, many) == [0, 0, 0, 1, 2]  # what is over goes to those that have met most
    assert banks(6, [2] * 9 + [1] * 9 + [0]) == [0, 1, 1, 1, 2, 2]  # and what that cannot use to the one before it
    assert banks(6, [2] * 9 + [0]) == [0, 2, 2, 2, 2, 2]
    assert banks(6, [1, 0]) == [0, 1]


def test_states_beyond_the_limit_are_computed_when_beams_reach_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """The translations are those of an automaton that is computed before."""
    model, limits = make(MODELS["rnn"], seed=3), torch.full((len(cases.ENTANGLED),), 9)
    source_BS = torch.tensor([SOURCES[0]] * len(cases.ENTANGLED))
    found = []
    for max_states in (256, 0):
        monkeypatch.setattr(phrases_module, "MAX_STATES", max_states)
        search = ConstrainedBeamSearch(EOS, Ranking(1.0), 4, n_best=3, phrases=cases.ENTANGLED)
        assert search.automaton.is_complete == (max_states > 0)
        found.append(search(model, source_BS, LogitsProcessors(limits, eos=EOS)))
    assert found[0] == found[1]

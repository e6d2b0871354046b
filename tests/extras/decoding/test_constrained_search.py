"""Words that must appear: against an enumeration of all translations that contain them, and the parts by themselves."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest
import torch

from nmt.extras.decoding import phrases as phrases_module
from nmt.extras.decoding.constrained_search import ConstrainedBeamSearch, allocated
from nmt.extras.decoding.phrases import PhraseAutomaton, Progress
from nmt.models.seq2seq import Seq2Seq
from nmt.search.beam import BeamSearch
from nmt.search.hypothesis import WORD_END, Constraint, Phrase
from nmt.search.logits_processors import LogitsProcessors, Suppress
from nmt.search.scoring import Ranking
from tests.models.variants import make
from tests.search.plain_search import EOS, MODELS, SOURCES, Tokens, each_model, log_prob
from tests.search.scripted import scripted

SOURCE_BS = torch.tensor([[4, 5, 1, 4, 3], [5, 3, 0, 0, 0], [5, 5, 4, 3, 0]])


def single(*phrases: Phrase) -> tuple[Constraint, ...]:
    """Phrases without alternatives."""
    return tuple((phrase,) for phrase in phrases)


PHRASES = (single((4, 5), (1,)), (), single((5, 1)))
ALTERNATIVES: tuple[tuple[Constraint, ...], ...] = ((((4, 5), (1,)), ((1, 5), (4,))), (), (((5, 1, 1), (5, 4)),))


FOLLOWING = (4, 1)
"""Tokens that may follow the end of a word."""
FOLLOWS_V = torch.tensor([token in FOLLOWING for token in range(6)])


def contains(tokens: Tokens, phrases: tuple[Constraint, ...], used: frozenset[int] = frozenset()) -> bool:
    """Returns True if one alternative of each phrase occurs in the tokens, without overlaps, in any order."""
    if not phrases:
        return True
    alternatives, *others = phrases
    for each in alternatives:
        phrase = tuple(token for token in each if token != WORD_END)
        for at in range(len(tokens) - len(phrase) + 1):
            place = range(at, at + len(phrase))
            is_end = len(phrase) == len(each) or tokens[place.stop : place.stop + 1] in [(), *((t,) for t in FOLLOWING)]
            is_free = tokens[at : place.stop] == phrase and is_end and used.isdisjoint(place)
            if is_free and contains(tokens, tuple(others), used.union(place)):
                return True
    return False


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


ENTANGLED: tuple[tuple[Constraint, ...], ...] = (
    single((4, 5), (1,)),
    single((4, 5), (4, 1)),  # a common first token
    single((4, 4, 5)),  # a phrase that overlaps itself
    single((4, 5), (5,)),  # a phrase inside another
    single((4, 5), (5, 4)),  # the end of one begins the other
    single((4, 4), (4,), (4, 4)),  # two equal ones
    single((4, 5, 1), (5, 1), (4,)),
    single((4,), (5,), (1,)),
)
CHOICES: tuple[tuple[Constraint, ...], ...] = (
    *ALTERNATIVES[::2],
    (((4, 5, 1), (4, 1)),),  # a common first token
    (((4,), (4, 5)), ((5,),)),  # one alternative begins another, and ends as another phrase
    (((4,), (5,)), ((4,),)),  # the first is best met by what the second does not need
    (((4, 4, 5), (1, 4)), ((4, 4, 5), (1, 4))),  # two equal ones
    (((4, 5), (1,)), ((5, 4), (4, 4, 4)), ((5,),)),
)
END = WORD_END
AT_ENDS: tuple[tuple[Constraint, ...], ...] = (
    (((4, 5, END),),),
    (((4, END),), ((4, 5, END),)),  # what goes on after the first is the second
    (((4, 4, END),), ((4, END),)),
    (((4, END), (1, 5, END)), ((4, 5, END),)),
    (((1, END),), ((4, 5),)),  # one of two asks for the end of a word
    (((1, END), (1, 5)), ((1, 4, END),)),
)


def orders(phrases_of: Sequence[tuple[Constraint, ...]]) -> Iterator[tuple[Constraint, ...]]:
    for phrases in phrases_of:
        yield from sorted(set(itertools.permutations(phrases)))


def test_wide_beams_find_what_enumeration_finds_in_whatever_order_phrases_stand() -> None:
    limit, source = 6, SOURCES[0]
    rows = [phrases for phrases in orders((*ENTANGLED, *CHOICES, *AT_ENDS)) if least_missing((), phrases) < limit]
    model = make(MODELS["rnn"], seed=3)
    log_probs = all_log_probs(model, source, limit)
    search = ConstrainedBeamSearch(EOS, Ranking(1.0), 650, n_best=3, phrases=tuple(rows), follows_word_V=FOLLOWS_V)
    found = search(
        model, torch.tensor([source] * len(rows)), LogitsProcessors(torch.full((len(rows),), limit), eos=EOS)
    )
    for phrases, hypotheses in zip(rows, found, strict=True):
        scored = sorted(
            (
                (log_prob / ((5 + len(tokens) + 1) / 6), tokens)
                for tokens, log_prob in log_probs.items()
                if contains(tokens, phrases)
            ),
            reverse=True,
        )[:3]
        assert [each.tokens for each in hypotheses] == [tokens for _, tokens in scored], phrases
        assert [each.score for each in hypotheses] == pytest.approx([value for value, _ in scored], abs=1e-4)


@each_model
@pytest.mark.parametrize("phrases_of", [PHRASES, ALTERNATIVES, (AT_ENDS[1], (), AT_ENDS[3])])
@pytest.mark.parametrize("beam", [1, 2, 5])
def test_whatever_the_beam_every_translation_contains_its_phrases(
    name: str, beam: int, phrases_of: tuple[tuple[Constraint, ...], ...]
) -> None:
    limits = torch.tensor([4, 4, 9])  # the first has room for its three tokens and no more
    for seed in range(2):
        model = make(MODELS[name], seed=seed)
        search = ConstrainedBeamSearch(
            EOS, Ranking(1.0), beam, n_best=beam, phrases=phrases_of, follows_word_V=FOLLOWS_V
        )
        found = search(model, SOURCE_BS, LogitsProcessors(limits, eos=EOS, processors=[Suppress(EOS, before=2)]))
        for source, phrases, limit, hypotheses in zip(SOURCES, phrases_of, limits.tolist(), found, strict=True):
            assert hypotheses
            for each in hypotheses:
                assert contains(each.tokens, phrases)
                assert 2 <= len(each.tokens) < limit
                assert each.log_prob == pytest.approx(log_prob(model, source, each.tokens), abs=1e-4)


def test_no_beam_is_spent_on_what_cannot_meet_its_phrase_in_time() -> None:
    """The second of two tokens is the last chance: both beams continue translations that contain the phrase."""
    table = [[0.01, 0.06, 0.01, 0.02, 0.3, 0.6], [0.01, 0.1, 0.01, 0.03, 0.35, 0.5], [0.1, 0.1, 0.1, 0.5, 0.1, 0.1]]
    search = ConstrainedBeamSearch(EOS, Ranking(0.0), 2, n_best=2, phrases=(single((4,)),))
    (found,) = search(scripted(table), SOURCE_BS[:1], LogitsProcessors(torch.tensor([3]), eos=EOS))
    assert [each.tokens for each in found] == [(5, 4), (4, 5)]


@each_model
def test_a_prefix_comes_first(name: str) -> None:
    model = make(MODELS[name])
    search = ConstrainedBeamSearch(EOS, Ranking(1.0), 4, n_best=2, phrases=PHRASES)
    processors = LogitsProcessors(torch.tensor([8, 8, 8]), eos=EOS, prefixes=[[5, 5], [4], [5]])
    for prefix, phrases, hypotheses in zip(
        [(5, 5), (4,), (5,)], PHRASES, search(model, SOURCE_BS, processors), strict=True
    ):
        for each in hypotheses:
            assert each.tokens[: len(prefix)] == prefix
            assert contains(each.tokens, phrases)


@each_model
def test_a_sentence_does_not_depend_on_its_company(name: str) -> None:
    model = make(MODELS[name])
    together = ConstrainedBeamSearch(EOS, Ranking(1.0), 4, phrases=PHRASES)
    found = together(model, SOURCE_BS, LogitsProcessors(torch.tensor([8, 8, 8]), eos=EOS))
    for row, phrases in enumerate(PHRASES):
        alone = ConstrainedBeamSearch(EOS, Ranking(1.0), 4, phrases=(phrases,))
        source_1S = SOURCE_BS[row : row + 1, : len(SOURCES[row])]
        ((best, *_),) = alone(model, source_1S, LogitsProcessors(torch.tensor([8]), eos=EOS))
        assert best.tokens == found[row][0].tokens


@each_model
def test_what_appears_anyway_costs_nothing(name: str) -> None:
    """Phrases taken from the best translation leave it the best, with a beam that loses nothing."""
    for seed in range(4):
        model, processors = make(MODELS[name], seed=seed), LogitsProcessors(torch.tensor([5, 5, 5]), eos=EOS)
        free = BeamSearch(EOS, Ranking(1.0), 800)(model, SOURCE_BS, processors)
        phrases = tuple(single(best.tokens[:2]) if best.tokens else () for (best,) in free)
        told = ConstrainedBeamSearch(EOS, Ranking(1.0), 800, phrases=phrases)(model, SOURCE_BS, processors)
        assert [best.tokens for (best,) in told] == [best.tokens for (best,) in free]


def progress(phrases: Sequence[Constraint], tokens: Iterable[int]) -> Progress:
    def after(state: Progress, token: int) -> Progress:
        is_other = token not in state.next_tokens and token in FOLLOWING
        return state.after(WORD_END if is_other else token)

    return functools.reduce(after, tokens, Progress.start(phrases, frozenset(FOLLOWING)))


def least_missing(tokens: Tokens, phrases: tuple[Constraint, ...]) -> int:
    """The length of the shortest continuation that completes the phrases, by trying all."""
    words = sorted({token for alternatives in phrases for phrase in alternatives for token in phrase} - {END})
    return next(
        size
        for size in itertools.count()
        if any(contains((*tokens, *more), phrases) for more in itertools.product(words, repeat=size))
    )


def test_progress_counts_the_least_that_is_missing() -> None:
    """And the next tokens are all that bring a hypothesis nearer."""
    random = np.random.default_rng(1)
    longer = [tuple(random.choice([4, 4, 5, 1, 0], size=length).tolist()) for length in (5, 5, 6, 6, 7, 7)]
    for phrases in (*ENTANGLED, *CHOICES, *AT_ENDS):
        shorter = [tokens for size in range(4) for tokens in itertools.product([4, 5, 1], repeat=size)]
        for tokens in [*shorter, *longer]:
            found = progress(phrases, tokens)
            assert found.missing == least_missing(tokens, phrases), (phrases, tokens)
            assert all(progress(order, tokens).missing == found.missing for order in itertools.permutations(phrases))
            nearer = {t for t in (4, 5, 1, 0) if least_missing((*tokens, t), phrases) < found.missing}
            assert nearer <= set(found.next_tokens), (phrases, tokens)


def test_progress_of_phrases_that_fit_in_very_many_ways_is_bounded() -> None:
    """Each token ends one of 40 phrases and begins another, so the phrases met can be chosen in some 2^20 ways."""
    phrases = single(*((token, token + 1) for token in range(40)))
    assert len(progress(phrases, range(40)).matches) == 65  # the bound, and one without a begun phrase
    found = progress(phrases, range(41))
    assert found.missing == 40  # every second one
    assert progress(phrases, [*range(41), 99, *(token for (phrase,) in phrases for token in phrase)]).missing == 0


def test_where_matches_are_dropped_a_hypothesis_can_still_be_completed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The best match of one that is kept leads to the end in as many steps as are missing, whatever came before."""
    monkeypatch.setattr(phrases_module, "MAX_MATCHES", 1)
    for phrases in (*ENTANGLED, *CHOICES, *AT_ENDS, single((4, 5, 1, 0), (4, 1, 5), (4, 0, 0, 1))):
        for tokens in itertools.product([4, 5, 1], repeat=3):
            found = progress(phrases, tokens)
            for missing in range(found.missing, 0, -1):
                assert found.missing == missing, (phrases, tokens)
                found = min((found.after(token) for token in found.next_tokens), key=lambda each: each.missing)
            assert found.missing == 0, (phrases, tokens)


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


@pytest.mark.parametrize(("count", "computed", "is_complete"), [(6, 256, True), (7, 256, False), (40, 256, False)])
def test_a_bounded_number_of_states_is_computed_before_a_search(count: int, computed: int, is_complete: bool) -> None:
    """n phrases of two tokens have n 2^(n - 1) + 2^n states: those met, and one that may be begun."""
    automaton = PhraseAutomaton([single(*((2 * index, 2 * index + 1) for index in range(count)))])
    assert automaton.is_complete == is_complete
    assert automaton.computed == computed


def test_states_beyond_the_limit_are_computed_when_beams_reach_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """The translations are those of an automaton that is computed before."""
    model, limits = make(MODELS["rnn"], seed=3), torch.full((len(ENTANGLED),), 9)
    source_BS = torch.tensor([SOURCES[0]] * len(ENTANGLED))
    found = []
    for max_states in (256, 0):
        monkeypatch.setattr(phrases_module, "MAX_STATES", max_states)
        search = ConstrainedBeamSearch(EOS, Ranking(1.0), 4, n_best=3, phrases=ENTANGLED)
        assert search.automaton.is_complete == (max_states > 0)
        found.append(search(model, source_BS, LogitsProcessors(limits, eos=EOS)))
    assert found[0] == found[1]

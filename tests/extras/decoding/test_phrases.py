"""The progress of hypotheses in meeting phrases, and the automaton of its states."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable, Sequence

import numpy as np
import pytest

from nmt.extras.decoding import phrases as phrases_module
from nmt.extras.decoding.phrases import PhraseAutomaton, Progress
from nmt.search.hypothesis import WORD_END, Constraint
from tests.extras.decoding.phrase_cases import AT_ENDS, CHOICES, ENTANGLED, FOLLOWING, least_missing, single


def progress(phrases: Sequence[Constraint], tokens: Iterable[int]) -> Progress:
    def after(state: Progress, token: int) -> Progress:
        is_other = token not in state.next_tokens and token in FOLLOWING
        return state.after(WORD_END if is_other else token)

    return functools.reduce(after, tokens, Progress.start(phrases, frozenset(FOLLOWING)))


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


@pytest.mark.parametrize(("count", "computed", "is_complete"), [(6, 256, True), (7, 256, False), (40, 256, False)])
def test_a_bounded_number_of_states_is_computed_before_a_search(count: int, computed: int, is_complete: bool) -> None:
    """n phrases of two tokens have n 2^(n - 1) + 2^n states: those met, and one that may be begun."""
    automaton = PhraseAutomaton([single(*((2 * index, 2 * index + 1) for index in range(count)))])
    assert automaton.is_complete == is_complete
    assert len(automaton._after) == computed

"""Phrases that a translation must contain, each or one of its alternatives: how far a hypothesis has met them, and the
automaton of these states.

Shapes: M states of the automaton, P next tokens of a state.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import torch
from torch import Tensor

from nmt.search.hypothesis import Constraint, Phrase

MAX_MATCHES = 64
"""Maximum number of matches of a hypothesis; those that miss least are kept. Where phrases overlap, the number of
matches may double with each phrase."""

MAX_STATES = 256
"""Maximum number of states of a sentence that are computed before its search; six phrases of two tokens have as many.
Where there are more, they are computed as beams reach them, and the host waits for a GPU once a step."""


class Match(NamedTuple):
    """Assignment of a hypothesis' tokens to the phrases of its sentence."""

    unmet: frozenset[int]
    """Indices of the constraints of which no phrase is begun."""
    rest: Phrase = ()
    """Missing tokens of the phrase that is begun; empty if all that are begun are complete."""

    def dominates(self, other: Match) -> bool:
        """True if each continuation that completes the other match completes this one."""
        return self.rest in ((), other.rest) and self.unmet <= other.unmet


@dataclass(frozen=True)
class Progress:
    """All assignments of a hypothesis' tokens to the phrases of its sentence, without dominated ones: the states of an
    automaton that accepts translations with each phrase, or one of its alternatives, at a position of its own."""

    phrases: tuple[Constraint, ...]
    matches: frozenset[Match]

    @classmethod
    def start(cls, phrases: Sequence[Constraint]) -> Progress:
        """The progress of a hypothesis without tokens."""
        return cls(tuple(phrases), frozenset([Match(frozenset(range(len(phrases))))]))

    @cached_property
    def missing(self) -> int:
        """Least number of further tokens; an upper bound of it where matches were dropped."""
        return min(map(self._missing, self.matches))

    @cached_property
    def next_tokens(self) -> tuple[int, ...]:
        """Tokens that continue or begin a phrase in some match."""
        continuing = [match.rest[0] for match in self.matches if match.rest]
        unmet = {index for match in self.matches if not match.rest for index in match.unmet}
        beginning = [phrase[0] for index in unmet for phrase in self.phrases[index]]
        return tuple(sorted({*continuing, *beginning}))

    def after(self, token: int) -> Progress:
        """The progress with one more token, which continues the phrase that is begun, begins another or belongs to
        none."""
        if token not in self.next_tokens:
            unbroken = frozenset(match for match in self.matches if not match.rest)
            return self if len(unbroken) == len(self.matches) else Progress(self.phrases, unbroken)
        matches: set[Match] = set()
        for match in self.matches:
            if match.rest:
                if match.rest[0] == token:
                    matches.add(match._replace(rest=match.rest[1:]))
                continue
            matches.add(match)
            # of equal constraints the last: it makes no difference which one is met
            index_of = {self.phrases[index]: index for index in sorted(match.unmet)}
            matches |= {
                Match(match.unmet - {index}, phrase[1:])
                for alternatives, index in index_of.items()
                for phrase in alternatives
                if phrase[0] == token
            }
        best = [match for match in matches if not any(other != match and other.dominates(match) for other in matches)]
        if len(best) > MAX_MATCHES:
            best.sort(key=self._missing)
            # and one without a begun phrase, for the next token may break off all others
            best = best[:MAX_MATCHES] + [match for match in best[MAX_MATCHES:] if not match.rest][:1]
        return Progress(self.phrases, frozenset(best))

    def _missing(self, match: Match) -> int:
        return sum(shortest(self.phrases[index]) for index in match.unmet) + len(match.rest)


def shortest(constraint: Constraint) -> int:
    """Length of the shortest alternative."""
    return min(map(len, constraint))


@dataclass(frozen=True)
class Transitions:
    """Those of an automaton as tensors, which a GPU follows without its host."""

    token_MP: Tensor
    """Next tokens of each state; -1 for none."""
    next_MP: Tensor
    """The state after each of them."""
    other_M: Tensor
    """The state after any other token."""
    missing_M: Tensor
    """See ``Progress.missing``."""


class PhraseAutomaton:
    """The states that hypotheses of several sentences may reach, by number."""

    def __init__(self, phrases: Sequence[Sequence[Constraint]]) -> None:
        self.states: list[Progress] = []
        self._number_of: dict[Progress, int] = {}
        self._after: dict[int, tuple[dict[int, int], int]] = {}  # after each next token, after any other
        self.starts = [self._explore(Progress.start(of_sentence)) for of_sentence in phrases]
        """The first state of each sentence."""
        self._transitions: Transitions | None = None

    @property
    def computed(self) -> int:
        """Number of states whose transitions are computed."""
        return len(self._after)

    @property
    def is_complete(self) -> bool:
        """True where those of all states are."""
        return self.computed == len(self.states)

    def transitions(self, device: torch.device, reached: Sequence[int]) -> Transitions:
        """The transitions of all states that are computed; those of the states ``reached`` are."""
        if self._transitions is None or not self.is_complete:
            self._compute(reached)
            after = [self._after.get(number, ({}, number)) for number in range(len(self.states))]
            width = max(len(following) for following, _ in after)
            filled = [[*following.items(), *[(-1, 0)] * (width - len(following))] for following, _ in after]
            pairs_MP2 = torch.tensor(filled, dtype=torch.int64).view(len(after), width, 2)
            others_M2 = torch.tensor([(other, self.states[at].missing) for at, (_, other) in enumerate(after)])
            columns = (*pairs_MP2.unbind(dim=2), *others_M2.unbind(dim=1))
            self._transitions = Transitions(*(column.to(device, non_blocking=True) for column in columns))
        return self._transitions

    def _explore(self, start: Progress) -> int:
        """Compute the transitions of up to ``MAX_STATES`` states from a first one, whose number is returned."""
        first = len(self.states)
        number = self._number(start)
        for following in range(first, first + MAX_STATES):
            if following < len(self.states):
                self._compute([following])
        return number

    def _compute(self, numbers: Sequence[int]) -> None:
        for number in set(numbers) - self._after.keys():
            state = self.states[number]
            after = {token: self._number(state.after(token)) for token in state.next_tokens}
            self._after[number] = after, self._number(state.after(-1))

    def _number(self, state: Progress) -> int:
        if state not in self._number_of:
            self._number_of[state] = len(self.states)
            self.states.append(state)
        return self._number_of[state]

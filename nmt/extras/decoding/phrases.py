"""Phrases, or one of several alternatives each, that a translation must contain: the progress of a hypothesis in
meeting them, and the automaton of these states.

Shapes: M states of the automaton, P next tokens of a state.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import torch
from torch import Tensor

from nmt.search.hypothesis import WORD_END, Constraint, Phrase

BETWEEN_WORDS: tuple[Phrase, ...] = ((), (WORD_END,))
"""Values of the missing tokens at which a phrase may begin."""

MAX_MATCHES = 64
"""Maximum number of matches of a hypothesis; those with the fewest missing tokens are kept. If phrases overlap, the
number of matches may double with each phrase."""

MAX_STATES = 256
"""Maximum number of states of a sentence that are computed before its search; six phrases of two tokens have this many.
If there are more, they are computed when beams reach them, and the host waits for a GPU at each step."""


class Match(NamedTuple):
    """Assignment of a hypothesis' tokens to the phrases of its sentence."""

    unmet: frozenset[int]
    """Indices of the constraints of which no phrase has begun."""
    rest: Phrase = ()
    """Missing tokens of the phrase that has begun; empty if all phrases that have begun are complete."""

    def dominates(self, other: Match) -> bool:
        """Returns True if each continuation that completes the other match also completes this one."""
        return self.rest in ((), other.rest) and self.unmet <= other.unmet


@dataclass(frozen=True)
class Progress:
    """All assignments of a hypothesis' tokens to the phrases of its sentence, without dominated ones. These are the
    states of an automaton that accepts translations with each phrase, or one of its alternatives, at a position of its
    own."""

    phrases: tuple[Constraint, ...]
    matches: frozenset[Match]
    following: frozenset[int] = frozenset()
    """Tokens of the phrases that may follow a ``WORD_END``."""

    @classmethod
    def start(cls, phrases: Sequence[Constraint], following: frozenset[int] = frozenset()) -> Progress:
        """Returns the progress of a hypothesis without tokens."""
        return cls(tuple(phrases), frozenset([Match(frozenset(range(len(phrases))))]), following)

    @cached_property
    def missing(self) -> int:
        """Smallest number of further tokens; an upper bound of it if matches were dropped."""
        return min(map(self._missing, self.matches))

    @cached_property
    def next_tokens(self) -> tuple[int, ...]:
        """Tokens that continue or begin a phrase in some match."""
        continuing = [match.rest[0] for match in self.matches if match.rest not in BETWEEN_WORDS]
        unmet = {index for match in self.matches if match.rest in BETWEEN_WORDS for index in match.unmet}
        beginning = [phrase[0] for index in unmet for phrase in self.phrases[index]]
        return tuple(sorted({*continuing, *beginning}))

    def after(self, token: int) -> Progress:
        """Returns the progress with one more token, which continues the phrase that has begun, begins another one or
        belongs to none. ``WORD_END`` means any token that belongs to none and may follow a word."""
        before = set(self.matches)
        if token == WORD_END or token in self.following:
            before = {match._replace(rest=()) if match.rest == (WORD_END,) else match for match in before}
        if token not in self.next_tokens:
            before = {match for match in before if not match.rest}
            if before == self.matches:
                return self
        matches: set[Match] = set()
        for match in before:
            if match.rest:
                if match.rest[0] == token:
                    matches.add(match._replace(rest=match.rest[1:]))
                continue
            matches.add(match)
            # the last of equal constraints: it makes no difference which one is met
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
            # and one without an incomplete phrase, because the next token may end all others
            best = best[:MAX_MATCHES] + [match for match in best[MAX_MATCHES:] if not match.rest][:1]
        return Progress(self.phrases, frozenset(best), self.following)

    def _missing(self, match: Match) -> int:
        return sum(shortest(self.phrases[index]) for index in match.unmet) + _length(match.rest)


def shortest(constraint: Constraint) -> int:
    """Returns the number of tokens of the shortest alternative."""
    return min(map(_length, constraint))


def _length(phrase: Phrase) -> int:
    return len(phrase) - (phrase[-1:] == (WORD_END,))


@dataclass(frozen=True)
class Transitions:
    """Transitions of an automaton as tensors, which a GPU follows without its host: of all states, or only of the
    states of some rows, which are renumbered."""

    token_MP: Tensor
    """Next tokens of each state; -1 for none."""
    next_MP: Tensor
    """The state after each of them."""
    other_M: Tensor
    """The state after any other token that does not follow a word."""
    word_end_M: Tensor
    """The state after any other token that may follow a word."""
    missing_M: Tensor
    """``Progress.missing`` of all states."""
    state_N: Tensor | None = None
    """Index of each row's state in the other tensors; None means that they have all states."""


class PhraseAutomaton:
    """The automaton of the states that hypotheses of several sentences may reach; states are numbered."""

    def __init__(self, phrases: Sequence[Sequence[Constraint]], follows_word_V: Tensor | None = None) -> None:
        """``follows_word_V`` is a mask of the tokens that may follow a ``WORD_END``."""
        self.states: list[Progress] = []
        self._number_of: dict[Progress, int] = {}
        self._after: dict[int, tuple[dict[int, int], int, int]] = {}  # after each next token and after any other
        self.starts = []
        """The first state of each sentence."""
        # on a CPU there is nothing to wait for, so the many states of alternatives are computed when they are reached
        limit = 0 if follows_word_V is not None and follows_word_V.device.type == "cpu" else MAX_STATES
        follows_V = None if follows_word_V is None else follows_word_V.cpu()
        for of_sentence in phrases:
            tokens = {token for constraint in of_sentence for phrase in constraint for token in phrase} - {WORD_END}
            following = frozenset(token for token in tokens if follows_V is not None and follows_V[token])
            first = len(self.states)
            self.starts.append(self._number(Progress.start(of_sentence, following)))
            for number in range(first, first + limit):
                if number < len(self.states):
                    self._compute([number])
        self._transitions: Transitions | None = None

    @property
    def is_complete(self) -> bool:
        """Returns True if the transitions of all states are computed."""
        return len(self._after) == len(self.states)

    def transitions(self, device: torch.device, reached: Sequence[int]) -> Transitions:
        """Returns the transitions of all states or, if not all are computed, of those that the rows have
        ``reached``."""
        if self._transitions is not None:
            return self._transitions
        self._compute(reached)
        numbers = list(dict.fromkeys(reached)) or list(range(len(self.states)))
        after = [self._after[number] for number in numbers]
        width = max(len(following) for following, _, _ in after)
        filled = [[*following.items(), *[(-1, 0)] * (width - len(following))] for following, _, _ in after]
        columns = [*torch.tensor(filled, dtype=torch.int64).view(len(after), width, 2).unbind(dim=2)]
        columns += torch.tensor([others for _, *others in after]).unbind(dim=1)
        columns.append(torch.tensor([state.missing for state in self.states]))
        if reached:
            index_of = {number: index for index, number in enumerate(numbers)}
            columns.append(torch.tensor([index_of[number] for number in reached]))
        transitions = Transitions(*(column.to(device, non_blocking=True) for column in columns))
        if not reached:
            self._transitions = transitions
        return transitions

    def _compute(self, numbers: Sequence[int]) -> None:
        for number in set(numbers) - self._after.keys():
            state = self.states[number]
            after = {token: self._number(state.after(token)) for token in state.next_tokens}
            self._after[number] = after, self._number(state.after(-1)), self._number(state.after(WORD_END))

    def _number(self, state: Progress) -> int:
        if state not in self._number_of:
            self._number_of[state] = len(self.states)
            self.states.append(state)
        return self._number_of[state]

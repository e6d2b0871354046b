"""Beam search for translations that contain given phrases: dynamic beam allocation (Post & Vilar 2018, "Fast Lexically
Constrained Decoding with Dynamic Beam Allocation for Neural Machine Translation").

The beams of a sentence are shared out among banks: bank c holds hypotheses that have met c tokens of its phrases. So a
hypothesis that has begun to meet them need not be as probable as one that has not. A hypothesis ends only when it has
met all. Differences to the paper: phrases may begin alike, overlap themselves or contain each other, so all ways to
meet them are followed at once, and the one that misses least counts; a bank without candidates leaves its beams to
those that have met most; hypotheses that could not meet all before the limit of length are given up in time, so that
there always is a translation.

Shapes: N rows, K beams of a sentence, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import torch
from torch import Tensor

from nmt.search.beam import Advance, Beams, BeamSearch, Ended

Phrase = tuple[int, ...]


MAX_MATCHES = 64
"""Matches that are kept of a hypothesis, those that miss least: where many phrases overlap in many ways their number
doubles with each, and the most phrases that fit beside each other are hard to find."""


class Match(NamedTuple):
    """Assignment of a hypothesis' tokens to the phrases of its sentence."""

    unmet: frozenset[int]
    """The phrases that are not begun, by their index."""
    rest: Phrase = ()
    """The tokens still to come of the one that is begun; none: all that are begun are complete."""

    def dominates(self, other: Match) -> bool:
        """True if each continuation that completes the other match completes this one."""
        return self.rest in ((), other.rest) and self.unmet <= other.unmet


@dataclass(frozen=True)
class Progress:
    """All assignments of a hypothesis' tokens to the phrases of its sentence, without those that another one dominates:
    the states of an automaton that accepts translations with each phrase in a place of its own."""

    phrases: tuple[Phrase, ...]
    matches: frozenset[Match]

    @cached_property
    def missing(self) -> int:
        """Least number of further tokens; an upper bound of it where matches were dropped."""
        return min(map(self._missing, self.matches))

    @cached_property
    def next_tokens(self) -> tuple[int, ...]:
        """Tokens that continue or begin a phrase in some match."""
        going_on = [match.rest[0] for match in self.matches if match.rest]
        beginning = [self.phrases[place][0] for match in self.matches if not match.rest for place in match.unmet]
        return tuple(sorted({*going_on, *beginning}))

    def after(self, token: int) -> Progress:
        """With one more token. It goes on with the phrase that is begun; where none is, it begins one or belongs to
        none."""
        if token not in self.next_tokens:
            left = frozenset(match for match in self.matches if not match.rest)
            return self if len(left) == len(self.matches) else Progress(self.phrases, left)
        found: set[Match] = set()
        for match in self.matches:
            if match.rest:
                if match.rest[0] == token:
                    found.add(match._replace(rest=match.rest[1:]))
                continue
            found.add(match)
            # of equal phrases the last: which one is met makes no difference
            places = {self.phrases[place]: place for place in sorted(match.unmet)}
            found |= {
                Match(match.unmet - {place}, phrase[1:]) for phrase, place in places.items() if phrase[0] == token
            }
        best = [match for match in found if not any(one != match and one.dominates(match) for one in found)]
        if len(best) > MAX_MATCHES:
            best.sort(key=self._missing)
            # and one that no phrase is begun of, for the next token may break off all others
            best = best[:MAX_MATCHES] + [match for match in best[MAX_MATCHES:] if not match.rest][:1]
        return Progress(self.phrases, frozenset(best))

    def _missing(self, match: Match) -> int:
        return sum(len(self.phrases[place]) for place in match.unmet) + len(match.rest)


def progress(phrases: Sequence[Phrase], tokens: Sequence[int]) -> Progress:
    """Progress after the tokens of a hypothesis."""
    found = Progress(tuple(phrases), frozenset([Match(frozenset(range(len(phrases))))]))
    for token in tokens:
        found = found.after(token)
    return found


class Candidate(NamedTuple):
    """A hypothesis that goes on with a token, or ends."""

    log_prob: float
    row: int
    token: int
    missing: int


@dataclass(frozen=True)
class ConstrainedBeamSearch(BeamSearch):
    """Hypotheses that contain each phrase of their sentence, each as often as it is given and none in the place of
    another. The limit of length leaves room for the phrases."""

    phrases: tuple[tuple[Phrase, ...], ...] = ()
    """Of each source row; a phrase has at least one token."""

    def __post_init__(self) -> None:
        super().__post_init__()
        assert self.groups == 1
        assert all(all(phrases) for phrases in self.phrases)

    @property
    def needs_all_logits(self) -> bool:
        """See ``BeamSearch``."""
        return True

    def advance(self, beams: Beams, log_probs_NV: Tensor, rows: list[int], limits: list[int]) -> Advance:
        """See ``BeamSearch.advance``."""
        log_prob_N, tokens_NT = beams.log_prob_N.tolist(), beams.tokens_NT.tolist()
        told = [progress(self.phrases[rows[row // self.beam]], tokens) for row, tokens in enumerate(tokens_NT)]
        parents: list[int] = []
        chosen: list[Candidate] = []
        ended: list[Ended] = []
        total_NV = beams.log_prob_N[:, None] + log_probs_NV
        best_NW = total_NV.topk(min(2 * self.beam, total_NV.shape[1]), dim=1)
        for sentence, (source_row, limit) in enumerate(zip(rows, limits, strict=True)):
            first = sentence * self.beam
            left = limit - len(tokens_NT[first]) - 2  # steps after this one, less the one for end-of-sentence
            total = sum(map(len, self.phrases[source_row]))
            candidates: dict[tuple[int, int], Candidate] = {}
            for row in range(first, first + self.beam):
                if log_prob_N[row] == -torch.inf:
                    continue
                tokens = list(zip(best_NW.indices[row].tolist(), best_NW.values[row].tolist(), strict=True))
                tokens += [(token, float(total_NV[row, token])) for token in told[row].next_tokens]
                for token, log_prob in tokens:
                    missing = told[row].missing if token == self.eos else told[row].after(token).missing
                    if log_prob > -torch.inf and (token == self.eos or missing <= left):
                        candidates[row, token] = Candidate(log_prob, row, token, missing)
            ranked = sorted(candidates.values(), key=lambda each: -each.log_prob)
            complete = [each for each in ranked if each.missing == 0][: self.beam]
            ended += [Ended(sentence, each.row, each.log_prob) for each in complete if each.token == self.eos]
            going_on = allocated([each for each in ranked if each.token != self.eos], total=total, beam=self.beam)
            going_on += [Candidate(-torch.inf, first, self.eos, 0)] * (self.beam - len(going_on))
            chosen += going_on
            parents += [each.row for each in going_on]
        parents_N = torch.tensor(parents, device=log_probs_NV.device)
        token_N1 = torch.tensor([[each.token] for each in chosen], device=log_probs_NV.device)
        selected = beams.select(parents_N)
        following = replace(
            selected,
            tokens_NT=torch.cat([selected.tokens_NT, token_N1], dim=1),
            log_prob_N=selected.log_prob_N.new_tensor([each.log_prob for each in chosen]),
        )
        return Advance(following, parents_N, tuple(ended))


def allocated(ranked: Sequence[Candidate], *, total: int, beam: int) -> list[Candidate]:
    """Up to ``beam`` of the candidates, best first. Each bank of 0 to ``total`` tokens met gets an equal part of the
    beams; what is over, or what a bank cannot use, goes to those that have met most."""
    banks: list[list[Candidate]] = [[] for _ in range(total + 1)]
    for each in ranked:
        banks[total - each.missing].append(each)
    share = beam // (total + 1)
    taken: list[Candidate] = []
    for bank in banks:
        taken += bank[:share]
        del bank[:share]
    for bank in reversed(banks):
        taken += bank[: beam - len(taken)]
    return sorted(taken, key=lambda each: -each.log_prob)

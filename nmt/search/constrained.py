"""Beam search for translations that contain given phrases: dynamic beam allocation (Post & Vilar 2018, "Fast Lexically
Constrained Decoding with Dynamic Beam Allocation for Neural Machine Translation").

The beams of a sentence are shared out among banks: bank c holds hypotheses that have met c tokens of its phrases. So a
hypothesis that has begun to meet them need not be as probable as one that has not. A hypothesis ends only when it has
met all. Differences to the paper: phrases may share first tokens, overlap themselves or contain each other, so all ways
to meet them are followed at once, and the one that misses least counts; a bank without candidates leaves its beams to
the banks that have met most; hypotheses that could not meet all phrases before the limit of length are dropped in time,
so every sentence has a translation.

Shapes: N rows, K beams of a sentence, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import torch
from torch import Tensor

from nmt.core.device import read_together
from nmt.search.beam import Advance, Beams, BeamSearch
from nmt.search.hypothesis import Phrase

MAX_MATCHES = 64
"""Maximum number of matches of a hypothesis; those that miss least are kept. Where phrases overlap, the number of
matches may double with each phrase."""


class Match(NamedTuple):
    """Assignment of a hypothesis' tokens to the phrases of its sentence."""

    unmet: frozenset[int]
    """Indices of the phrases that are not begun."""
    rest: Phrase = ()
    """Missing tokens of the phrase that is begun; empty if all that are begun are complete."""

    def dominates(self, other: Match) -> bool:
        """True if each continuation that completes the other match completes this one."""
        return self.rest in ((), other.rest) and self.unmet <= other.unmet


@dataclass(frozen=True)
class Progress:
    """All assignments of a hypothesis' tokens to the phrases of its sentence, without dominated ones: the states of an
    automaton that accepts translations with each phrase at a position of its own."""

    phrases: tuple[Phrase, ...]
    matches: frozenset[Match]

    @cached_property
    def missing(self) -> int:
        """Least number of further tokens; an upper bound of it where matches were dropped."""
        return min(map(self._missing, self.matches))

    @cached_property
    def next_tokens(self) -> tuple[int, ...]:
        """Tokens that continue or begin a phrase in some match."""
        continuing = [match.rest[0] for match in self.matches if match.rest]
        beginning = [self.phrases[index][0] for match in self.matches if not match.rest for index in match.unmet]
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
            # of equal phrases the last: it makes no difference which one is met
            index_of = {self.phrases[index]: index for index in sorted(match.unmet)}
            matches |= {
                Match(match.unmet - {index}, phrase[1:]) for phrase, index in index_of.items() if phrase[0] == token
            }
        best = [match for match in matches if not any(other != match and other.dominates(match) for other in matches)]
        if len(best) > MAX_MATCHES:
            best.sort(key=self._missing)
            # and one without a begun phrase, for the next token may break off all others
            best = best[:MAX_MATCHES] + [match for match in best[MAX_MATCHES:] if not match.rest][:1]
        return Progress(self.phrases, frozenset(best))

    def _missing(self, match: Match) -> int:
        return sum(len(self.phrases[index]) for index in match.unmet) + len(match.rest)


def progress(phrases: Sequence[Phrase], tokens: Sequence[int]) -> Progress:
    """Progress after the tokens of a hypothesis."""
    after = Progress(tuple(phrases), frozenset([Match(frozenset(range(len(phrases))))]))
    for token in tokens:
        after = after.after(token)
    return after


class Candidate(NamedTuple):
    """A hypothesis extended by a token, which may be end-of-sentence."""

    log_prob: float
    row: int
    token: int
    missing: int


@dataclass(frozen=True)
class ConstrainedBeamSearch(BeamSearch):
    """Hypotheses that contain each phrase of their sentence, at positions of its own. The limit of length leaves room
    for the phrases."""

    phrases: tuple[tuple[Phrase, ...], ...] = ()
    """Phrases of each source row; a phrase has at least one token."""

    def __post_init__(self) -> None:
        super().__post_init__()
        assert self.groups == 1
        assert all(all(phrases) for phrases in self.phrases)

    @property
    def needs_all_logits(self) -> bool:
        """See ``BeamSearch``."""
        return True

    def advance(self, beams: Beams, log_probs_NV: Tensor, source_rows: list[int], limits: list[int]) -> Advance:
        """See ``BeamSearch.advance``."""
        total_NV, device = beams.log_prob_N[:, None] + log_probs_NV, log_probs_NV.device
        best_NW = total_NV.topk(min(2 * self.beam, total_NV.shape[1]), dim=1)
        # the tokens of all phrases, whichever may come next: so the host waits for a GPU once
        token_P = sorted({token for row in source_rows for phrase in self.phrases[row] for token in phrase})
        column_of = {token: column for column, token in enumerate(token_P)}
        phrase_NP = total_NV[:, torch.tensor(token_P, dtype=torch.int64).to(device, non_blocking=True)]
        *read, phrase_log_prob_NP = read_together(
            [beams.log_prob_N, beams.tokens_NT, best_NW.indices, best_NW.values, phrase_NP]
        )
        log_prob_N, tokens_NT, best_token_NW, best_log_prob_NW = (values.tolist() for values in read)
        progress_N = [
            progress(self.phrases[source_rows[row // self.beam]], tokens) for row, tokens in enumerate(tokens_NT)
        ]
        chosen: list[Candidate] = []
        ended: list[Candidate] = []
        for sentence, (source_row, limit) in enumerate(zip(source_rows, limits, strict=True)):
            first = sentence * self.beam
            steps_left = limit - len(tokens_NT[first]) - 2  # steps after this one, less the one for end-of-sentence
            total = sum(map(len, self.phrases[source_row]))
            candidates: dict[tuple[int, int], Candidate] = {}
            for row in range(first, first + self.beam):
                if log_prob_N[row] == -torch.inf:
                    continue
                tokens = list(zip(best_token_NW[row], best_log_prob_NW[row], strict=True))
                tokens += [
                    (token, float(phrase_log_prob_NP[row, column_of[token]])) for token in progress_N[row].next_tokens
                ]
                for token, log_prob in tokens:
                    after = progress_N[row] if token == self.eos else progress_N[row].after(token)
                    if log_prob > -torch.inf and (token == self.eos or after.missing <= steps_left):
                        candidates[row, token] = Candidate(log_prob, row, token, after.missing)
            ranked = sorted(candidates.values(), key=lambda candidate: -candidate.log_prob)
            complete = [candidate for candidate in ranked if candidate.missing == 0][: self.beam]
            continuing = [candidate for candidate in ranked if candidate.token != self.eos]
            kept = allocated(continuing, total=total, beam=self.beam)
            none = [Candidate(-torch.inf, first, self.eos, 0)] * self.beam
            chosen += (kept + none)[: self.beam]
            ended += ([candidate for candidate in complete if candidate.token == self.eos] + none)[: self.beam]
        values_X4 = torch.tensor(chosen + ended, dtype=torch.float64).to(device, non_blocking=True)
        log_prob_X, row_X = values_X4[:, 0].to(total_NV.dtype), values_X4[:, 1].long()
        (going_on_N, ended_N), (parents_N, ended_parents_N) = log_prob_X.chunk(2), row_X.chunk(2)
        token_N1 = values_X4[: len(chosen), 2:3].long()
        selected = beams.select(parents_N)
        following = replace(selected, tokens_NT=torch.cat([selected.tokens_NT, token_N1], dim=1), log_prob_N=going_on_N)
        return Advance(following, parents_N, *(x_N.view(-1, self.beam) for x_N in (ended_N, ended_parents_N)))


def allocated(ranked: Sequence[Candidate], *, total: int, beam: int) -> list[Candidate]:
    """Up to ``beam`` of the candidates, best first. Each bank of 0 to ``total`` tokens met gets an equal share of the
    beams; beams that are left over, or that a bank cannot use, go to the banks that have met most."""
    banks: list[list[Candidate]] = [[] for _ in range(total + 1)]
    for candidate in ranked:
        banks[total - candidate.missing].append(candidate)
    share = beam // (total + 1)
    taken: list[Candidate] = []
    for bank in banks:
        taken += bank[:share]
        del bank[:share]
    for bank in reversed(banks):
        taken += bank[: beam - len(taken)]
    return sorted(taken, key=lambda candidate: -candidate.log_prob)

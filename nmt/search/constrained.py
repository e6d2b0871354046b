"""Beam search for translations that contain given phrases: dynamic beam allocation (Post & Vilar 2018, "Fast Lexically
Constrained Decoding with Dynamic Beam Allocation for Neural Machine Translation").

The beams of a sentence are shared out among banks: bank c holds hypotheses that have met c tokens of its phrases. So a
hypothesis that has begun to meet them need not be as probable as one that has not. A hypothesis ends only when it has
met all. Differences to the paper: a bank without candidates leaves its beams to those that have met most; hypotheses
that could not meet all before the limit of length are given up in time, so that there always is a translation.

Shapes: N rows, K beams of a sentence, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from torch import Tensor

from nmt.search.beam import Advance, Beams, BeamSearch, Ended

Phrase = tuple[int, ...]


@dataclass(frozen=True)
class Progress:
    """How far a hypothesis is with the phrases of its sentence."""

    unmet: tuple[Phrase, ...]
    """Those not begun, and first the one that is being met, if one is."""
    inside: int = 0
    """How many tokens of that one are there; 0: none is being met."""

    @property
    def missing(self) -> int:
        """Tokens that are still to come."""
        return sum(map(len, self.unmet)) - self.inside

    @property
    def next_tokens(self) -> tuple[int, ...]:
        """Those that meet more: of the phrase that is being met, or the first of any."""
        if self.inside:
            return (self.unmet[0][self.inside],)
        return tuple(dict.fromkeys(phrase[0] for phrase in self.unmet))

    def after(self, token: int) -> Progress:
        """With one more token. One that does not go on with the phrase that is being met breaks it off, and may begin
        one itself."""
        if self.inside and self.unmet[0][self.inside] == token:
            is_met = self.inside + 1 == len(self.unmet[0])
            return Progress(self.unmet[1:]) if is_met else Progress(self.unmet, self.inside + 1)
        for place, phrase in enumerate(self.unmet):
            if phrase[0] == token:
                others = self.unmet[:place] + self.unmet[place + 1 :]
                return Progress(others) if len(phrase) == 1 else Progress((phrase, *others), 1)
        return Progress(self.unmet)


def progress(phrases: Sequence[Phrase], tokens: Sequence[int]) -> Progress:
    """Of a hypothesis."""
    found = Progress(tuple(phrases))
    for token in tokens:
        found = found.after(token)
    return found


class _Candidate(NamedTuple):
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
    def looks_at_all(self) -> bool:
        """See ``BeamSearch``."""
        return True

    def advance(self, beams: Beams, log_probs_NV: Tensor, rows: list[int], limits: list[int]) -> Advance:
        """See ``BeamSearch.advance``."""
        log_prob_N, tokens_NT = beams.log_prob_N.tolist(), beams.tokens_NT.tolist()
        told = [progress(self.phrases[rows[row // self.beam]], tokens) for row, tokens in enumerate(tokens_NT)]
        parents: list[int] = []
        chosen: list[_Candidate] = []
        ended: list[Ended] = []
        total_NV = beams.log_prob_N[:, None] + log_probs_NV
        best_NW = total_NV.topk(min(2 * self.beam, total_NV.shape[1]), dim=1)
        for sentence, (source_row, limit) in enumerate(zip(rows, limits, strict=True)):
            first = sentence * self.beam
            left = limit - len(tokens_NT[first]) - 2  # steps after this one, less the one for end-of-sentence
            total = sum(map(len, self.phrases[source_row]))
            candidates: dict[tuple[int, int], _Candidate] = {}
            for row in range(first, first + self.beam):
                if log_prob_N[row] == -torch.inf:
                    continue
                tokens = list(zip(best_NW.indices[row].tolist(), best_NW.values[row].tolist(), strict=True))
                tokens += [(token, float(total_NV[row, token])) for token in told[row].next_tokens]
                for token, log_prob in tokens:
                    missing = told[row].missing if token == self.eos else told[row].after(token).missing
                    if log_prob > -torch.inf and (token == self.eos or missing <= left):
                        candidates[row, token] = _Candidate(log_prob, row, token, missing)
            ranked = sorted(candidates.values(), key=lambda each: -each.log_prob)
            complete = [each for each in ranked if each.missing == 0][: self.beam]
            ended += [Ended(sentence, each.row, each.log_prob) for each in complete if each.token == self.eos]
            going_on = allocated([each for each in ranked if each.token != self.eos], total=total, beam=self.beam)
            going_on += [_Candidate(-torch.inf, first, self.eos, 0)] * (self.beam - len(going_on))
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


def allocated(ranked: Sequence[_Candidate], *, total: int, beam: int) -> list[_Candidate]:
    """Up to ``beam`` of the candidates, best first. Each bank of 0 to ``total`` tokens met gets an equal part of the
    beams and the last one what is over; what a bank cannot use goes to those that have met most."""
    banks: list[list[_Candidate]] = [[] for _ in range(total + 1)]
    for each in ranked:
        banks[total - each.missing].append(each)
    share, over = divmod(beam, total + 1)
    taken: list[_Candidate] = []
    for met, bank in enumerate(banks):
        wanted = share + (over if met == total else 0)
        taken += bank[:wanted]
        del bank[:wanted]
    for bank in reversed(banks):
        taken += bank[: beam - len(taken)]
    return sorted(taken, key=lambda each: -each.log_prob)

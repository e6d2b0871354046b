"""Beam search for translations that contain given phrases: dynamic beam allocation (Post & Vilar 2018, "Fast Lexically
Constrained Decoding with Dynamic Beam Allocation for Neural Machine Translation").

The beams of a sentence are shared out among banks: bank c holds hypotheses that have met c tokens of its phrases. So a
hypothesis that has begun to meet them need not be as probable as one that has not. A hypothesis ends only when it has
met all. Differences from the paper: phrases may share first tokens, overlap themselves or contain each other, so all
ways to meet them are followed at once, and the one that misses least counts; a phrase may have alternatives, of which
the shortest counts until another one misses less, and may ask for the end of a word after it; a bank without candidates
leaves its beams to the banks that have met most; hypotheses that could not meet all phrases before the limit of length
are dropped in time, so every sentence has a translation.

Shapes: B sentences, K beams of each, N = B x K rows, V vocabulary, W best tokens and X extensions of a row, C = K x X
candidates of a sentence.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

import torch
from torch import Tensor

from nmt.core.device import copy_to_host
from nmt.data.vocabulary import EOS
from nmt.extras.decoding.phrases import PhraseAutomaton, shortest
from nmt.search.beam import Advance, Beams, BeamSearch, first_rows
from nmt.search.config import SearchConfig
from nmt.search.hypothesis import Constraint
from nmt.search.scoring import ranking_of


@dataclass(frozen=True)
class ConstrainedBeamSearch(BeamSearch):
    """Finds hypotheses that contain each phrase of their sentence, or one of its alternatives, at a position of its
    own. The limit of length leaves room for the phrases."""

    phrases: tuple[tuple[Constraint, ...], ...] = ()
    """Constraints of each source row: alternative phrases of at least one token."""
    follows_word_V: Tensor | None = field(default=None, compare=False)
    """Mask of the tokens that may follow a ``WORD_END``, which includes the first tokens of all phrases of a row that
    has one. It is needed for phrases with a ``WORD_END``."""
    reserved_V: Tensor | None = field(default=None, compare=False)
    """Mask of the tokens that hypotheses have in phrases alone."""

    @property
    def needs_all_logits(self) -> bool:
        """See ``BeamSearch``."""
        return True

    @cached_property
    def automaton(self) -> PhraseAutomaton:
        """Automaton of the states of hypotheses of all source rows."""
        return PhraseAutomaton(self.phrases, self.follows_word_V)

    def advance(self, beams: Beams, log_probs_NV: Tensor, source_rows: list[int], limits: list[int]) -> Advance:
        """See ``BeamSearch.advance``."""
        beam, device, automaton = self.beam, log_probs_NV.device, self.automaton
        steps_left = [limit - beams.tokens_NT.shape[1] - 2 for limit in limits]  # except this token and end-of-sentence
        totals = [sum(map(shortest, self.phrases[row])) for row in source_rows]
        starts = [automaton.starts[row] for row in source_rows]
        start_B, left_B1, total_B1 = (
            torch.tensor(values).to(device, non_blocking=True).view(shape)
            for values, shape in ((starts, (-1,)), (steps_left, (-1, 1)), (totals, (-1, 1)))
        )
        state_N = start_B.repeat_interleave(beam) if beams.constraint_N is None else beams.constraint_N
        reached = [] if automaton.is_complete else copy_to_host([state_N])[0].tolist()
        transitions = automaton.transitions(device, reached)
        at_N = state_N if transitions.state_N is None else transitions.state_N

        # the extensions of each row by its best tokens, and by tokens that continue or begin a phrase
        total_NV = beams.log_prob_N[:, None] + log_probs_NV
        free_NV = total_NV if self.reserved_V is None else total_NV.masked_fill(self.reserved_V, -torch.inf)
        best_NW = free_NV.topk(min(2 * beam, total_NV.shape[1]), dim=1)
        phrase_NP, at_N1 = transitions.token_MP[at_N], at_N[:, None]
        is_best_NPW = (phrase_NP[:, :, None] == best_NW.indices[:, None]) & best_NW.values.isfinite()[:, None]
        is_repeated_NP = (phrase_NP < 0) | is_best_NPW.any(dim=2)
        phrase_log_prob_NP = total_NV.gather(1, phrase_NP.clamp(min=0)).masked_fill(is_repeated_NP, -torch.inf)
        log_prob_NX = torch.cat([best_NW.values, phrase_log_prob_NP], dim=1)
        token_NX = torch.cat([best_NW.indices, phrase_NP.clamp(min=0)], dim=1)
        is_next_NXP = token_NX[:, :, None] == phrase_NP[:, None]
        next_NX = (is_next_NXP * transitions.next_MP[at_N][:, None]).sum(dim=2)
        other_NX = transitions.other_M[at_N1]
        if self.follows_word_V is not None:
            other_NX = transitions.word_end_M[at_N1].where(self.follows_word_V[token_NX], other_NX)
        next_NX = next_NX.where(is_next_NXP.any(dim=2), other_NX)
        next_NX = next_NX.where(token_NX != self.eos, state_N[:, None])

        # the candidates of each sentence, best first
        log_prob_BC, token_BC, next_BC = (
            each_NX.view(len(source_rows), -1) for each_NX in (log_prob_NX, token_NX, next_NX)
        )
        is_late_BC = (token_BC != self.eos) & (transitions.missing_M[next_BC] > left_B1)
        log_prob_BC, order_BC = log_prob_BC.masked_fill(is_late_BC, -torch.inf).sort(descending=True, stable=True)
        token_BC, next_BC = token_BC.gather(1, order_BC), next_BC.gather(1, order_BC)
        row_BC = order_BC // token_NX.shape[1] + first_rows(len(state_N), beam, device)
        missing_BC, ends_BC = transitions.missing_M[next_BC], token_BC == self.eos

        is_complete_BC = missing_BC == 0
        is_ended_BC = ends_BC & is_complete_BC & (is_complete_BC.cumsum(dim=1) <= beam)
        ended_BK = log_prob_BC.masked_fill(~is_ended_BC, -torch.inf).topk(beam, dim=1)
        goes_on_BC = ~ends_BC & log_prob_BC.isfinite()
        kept_BK = allocated(missing_BC, goes_on_BC, total_B1, banks=max(totals) + 1, beam=beam)
        parents_N, next_N, token_N = (each_BC.gather(1, kept_BK).flatten() for each_BC in (row_BC, next_BC, token_BC))
        log_prob_N = log_prob_BC.masked_fill(~goes_on_BC, -torch.inf).gather(1, kept_BK).flatten()
        following = replace(beams.extended(parents_N, token_N[:, None], log_prob_N), constraint_N=next_N)
        return Advance(following, parents_N, ended_BK.values, row_BC.gather(1, ended_BK.indices))


def allocated(missing_BC: Tensor, goes_on_BC: Tensor, total_B1: Tensor, *, banks: int, beam: int) -> Tensor:
    """Chooses the candidates to keep, by the number of tokens that each misses, and returns their indices, (B, K), best
    first.

    Candidates are given best first; those that are not continued are kept only if there are too few others, and are
    last. Each bank of 0 to ``total`` met tokens gets an equal share of the beams; beams that are left over, or that a
    bank cannot use, go to the banks that have met most. ``banks`` is the largest number of banks of a sentence.
    """
    in_bank_BCM = missing_BC[:, :, None] == torch.arange(banks, device=missing_BC.device)
    rank_BCM = (in_bank_BCM & goes_on_BC[:, :, None]).cumsum(dim=1)  # from 1
    rank_BC = rank_BCM.gather(2, missing_BC[:, :, None])[:, :, 0]
    order_BC = missing_BC.masked_fill(rank_BC <= beam // (total_B1 + 1), -1).masked_fill(~goes_on_BC, banks)
    kept_BK = order_BC.sort(dim=1, stable=True).indices[:, :beam]
    last_BK = kept_BK + missing_BC.shape[1] * ~goes_on_BC.gather(1, kept_BK)
    return kept_BK.gather(1, last_BK.argsort(dim=1))


def constrained_search(
    config: SearchConfig,
    phrases: tuple[tuple[Constraint, ...], ...],
    follows_word_V: Tensor | None = None,
    reserved_V: Tensor | None = None,
) -> ConstrainedBeamSearch:
    """See ``nmt.search.engine.ConstrainedSearch``."""
    search = ConstrainedBeamSearch(EOS, ranking_of(config), config.beam, config.n_best, phrases=phrases)
    return replace(search, follows_word_V=follows_word_V, reserved_V=reserved_V)

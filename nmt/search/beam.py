"""Beam search over a batch of sentences, in one group of beams or in several separate ones.

Shapes: B active sentences, G groups, K beams of each group, W = G x K beams of a sentence, N = B x W rows (the beams of
a sentence are neighbours, group by group), V vocabulary, S source positions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nmt.core.device import SYNC_INTERVAL, copy_to_host
from nmt.core.operation import Operation
from nmt.core.record import BatchRecord
from nmt.models.seq2seq import Step
from nmt.models.step_model import StepModel
from nmt.nn.output import row_parts
from nmt.ops import TopTokens, log_normalizer, top_tokens
from nmt.search.hypothesis import Hypothesis, Observer
from nmt.search.logits_processors import LogitsProcessors
from nmt.search.repetition import SPARE, Repetitions
from nmt.search.scoring import Ranking, covered

MIN_FINISHED_SHARE = 1 / 16
"""Finished sentences leave a batch when they are at least this share of it, so that a batch takes few sizes. A CPU's
library prepares a kernel for each new size, which takes longer than the steps of the finished rows. On a GPU they leave
when they are at least half of the batch: a CUDA graph for each new size takes longer still."""


@dataclass(frozen=True)
class Beams(BatchRecord):
    """Unfinished hypotheses, one for each of N rows."""

    tokens_NT: Tensor
    """The tokens so far."""
    log_prob_N: Tensor
    """Log-probability of each hypothesis; -inf marks a row without a hypothesis."""
    attended_NS: Tensor | None = None
    """Attention received by each source position; None if the ranking does not need it."""
    constraint_N: Tensor | None = None
    """State of the constraints of each hypothesis; None before the first step, and in searches without constraints."""
    repetitions: Repetitions | None = None
    """What each hypothesis repeats, which its log-probability has paid for; None if that costs nothing."""

    def extended(self, parents_N: Tensor, token_N1: Tensor, log_prob_N: Tensor) -> Beams:
        """Returns hypotheses that extend those of some rows by a token."""
        parents = self.select(parents_N)
        repetitions = parents.repetitions and parents.repetitions.after(token_N1, parents.tokens_NT)
        tokens_NT = torch.cat([parents.tokens_NT, token_N1], dim=1)
        return replace(parents, tokens_NT=tokens_NT, log_prob_N=log_prob_N, repetitions=repetitions)


@dataclass(frozen=True)
class Advance:
    """One step of all beams."""

    beams: Beams
    """Hypotheses that are continued, K for each sentence, best first."""
    parents_N: Tensor
    """The row that each hypothesis extends."""
    ended_BW: Tensor
    """Log-probability of each of the first K extensions of a group if it ended; -inf if it did not end."""
    ended_parent_BW: Tensor
    """The row that each of these extensions extends."""

    @staticmethod
    def joined(steps: Sequence[Advance]) -> Advance:
        """Concatenates the steps of neighbouring sentences; each step numbers its rows from 0."""
        if len(steps) == 1:
            return steps[0]
        first_rows = [0, *accumulate(len(step.parents_N) for step in steps)]
        pairs = list(zip(steps, first_rows, strict=False))
        return Advance(
            Beams.joined([step.beams for step in steps]),
            torch.cat([step.parents_N + first for step, first in pairs]),
            torch.cat([step.ended_BW for step in steps]),
            torch.cat([step.ended_parent_BW + first for step, first in pairs]),
        )


@dataclass(frozen=True)
class Extensions:
    """The best extensions of each sentence's hypotheses by one token, best first."""

    log_prob_BW: Tensor
    """Log-probability of the hypothesis with the token."""
    parent_BW: Tensor
    """The row that each extension extends."""
    token_BW: Tensor

    @staticmethod
    def from_top_tokens(beams: Beams, tokens: TopTokens, *, beam: int) -> Extensions:
        """Finds the best extensions among the most probable tokens of each hypothesis.

        If ``tokens`` have no normalizer, the log-probabilities of the beams include it.
        """
        rows, count = tokens.token_NK.shape
        normalizer_N = tokens.log_normalizer_N
        before_N = beams.log_prob_N if normalizer_N is None else beams.log_prob_N - normalizer_N
        # log p of a hypothesis and its next token; only the best tokens of a row can be among the best of all rows
        log_prob_BX = (tokens.logit_NK + before_N[:, None]).view(rows // beam, -1)
        log_prob_BW, index_BW, _ = top_tokens(log_prob_BX, min(num_candidates(beam), log_prob_BX.shape[1]), False)
        parent_BW = index_BW // count + first_rows(rows, beam, index_BW.device)
        return Extensions(log_prob_BW, parent_BW, tokens.token_NK.view(rows // beam, -1).gather(1, index_BW))

    @staticmethod
    def with_penalty(beams: Beams, log_probs_NV: Tensor, penalty_BV: Tensor, *, beam: int) -> Extensions:
        """Finds the best extensions by any token, ranked by log-probability minus the penalty of the token."""
        rows, vocabulary = log_probs_NV.shape
        # the penalty counts for the ranking of this step only; log-probabilities are kept without it
        total_NV = beams.log_prob_N[:, None] + log_probs_NV
        penalized_BX = (total_NV - penalty_BV.repeat_interleave(beam, dim=0)).view(rows // beam, -1)
        index_BW = top_tokens(penalized_BX, num_candidates(beam), False).token_NK
        parent_BW = index_BW // vocabulary + first_rows(rows, beam, index_BW.device)
        return Extensions(total_NV.view(rows // beam, -1).gather(1, index_BW), parent_BW, index_BW % vocabulary)


def num_candidates(beam: int) -> int:
    """Number of extensions of a sentence that are ranked: at most K of them end, one per beam, so K others remain."""
    return 2 * beam


def first_rows(rows: int, beam: int, device: torch.device) -> Tensor:
    """First row of each sentence, (B, 1)."""
    return torch.arange(0, rows, beam, device=device)[:, None]


def advance(beams: Beams, extensions: Extensions, *, beam: int, eos: int) -> Advance:
    """Keeps the best extensions: those that end and rank among the first K of a sentence are finished, and the first K
    that do not end are continued."""
    log_prob_BW, parent_BW, token_BW = extensions.log_prob_BW, extensions.parent_BW, extensions.token_BW
    width = token_BW.shape[1]
    ends_BW = token_BW == eos
    rank_W = torch.arange(width, device=ends_BW.device)
    # extensions among the first K that end are finished
    ended_BW = log_prob_BW.masked_fill(~ends_BW, -torch.inf)[:, :beam]
    # take the first K that do not end, in their order, by ranking all that end behind them
    chosen_BK = (rank_W + width * ends_BW).topk(beam, dim=1, largest=False, sorted=True).indices
    parents_N = parent_BW.gather(1, chosen_BK).flatten()
    log_prob_N = log_prob_BW.masked_fill(ends_BW, -torch.inf).gather(1, chosen_BK).flatten()
    token_N1 = token_BW.gather(1, chosen_BK).view(-1, 1)
    return Advance(beams.extended(parents_N, token_N1, log_prob_N), parents_N, ended_BW, parent_BW[:, :beam])


@Operation
def advance_unconstrained(beams: Beams, forward: Step[Any], beam: int, eos: int) -> Advance:
    """Calls ``advance`` with the most probable tokens after each hypothesis."""
    spare = SPARE if beams.repetitions else 0
    tokens = forward.top_tokens(min(num_candidates(beam) + spare, forward.vocabulary), True)
    if beams.repetitions:
        penalty_NK = beams.repetitions.penalty(tokens.token_NK, beams.tokens_NT)
        tokens = tokens._replace(logit_NK=tokens.logit_NK - penalty_NK)
    return advance(beams, Extensions.from_top_tokens(beams, tokens, beam=beam), beam=beam, eos=eos)


def advance_groups(
    beams: Beams, log_probs_NV: Tensor, *, groups: int, beam: int, eos: int, diversity: float
) -> Advance:
    """Calls ``advance`` for one group after the other. The penalty of a token in a group is ``diversity`` times the
    number of beams of earlier groups that were continued with that token in this step (Vijayakumar et al. 2018,
    "Diverse Beam Search", Hamming diversity). As in the paper, a penalty counts in its own step only: beams keep their
    own log-probability."""
    if groups == 1:
        tokens = top_tokens(log_probs_NV, min(num_candidates(beam), log_probs_NV.shape[1]), False)
        return advance(beams, Extensions.from_top_tokens(beams, tokens, beam=beam), beam=beam, eos=eos)
    rows, vocabulary = log_probs_NV.shape
    batch = rows // (groups * beam)
    row_BGK = torch.arange(rows, device=log_probs_NV.device).view(batch, groups, beam)
    diversity_penalty_BV = log_probs_NV.new_zeros(batch, vocabulary)
    steps: list[Advance] = []
    for group in range(groups):
        row_N = row_BGK[:, group].flatten()
        group_beams = beams.select(row_N)
        extensions = Extensions.with_penalty(group_beams, log_probs_NV[row_N], diversity_penalty_BV, beam=beam)
        step = advance(group_beams, extensions, beam=beam, eos=eos)
        token_BK, exists_BK = (
            x_N.view(batch, beam) for x_N in (step.beams.tokens_NT[:, -1], step.beams.log_prob_N.isfinite())
        )
        # the next group pays for each beam that has just taken a token
        diversity_penalty_BV = diversity_penalty_BV.scatter_add(1, token_BK, diversity * exists_BK.float())
        steps.append(Advance(step.beams, row_N[step.parents_N], step.ended_BW, row_N[step.ended_parent_BW]))
    joined = Beams.joined([step.beams for step in steps])
    order_N = row_BGK.transpose(0, 1).flatten().argsort()  # from group after group to sentence after sentence
    parents_N = torch.cat([step.parents_N for step in steps])[order_N]
    ended_BW = torch.cat([step.ended_BW for step in steps], dim=1)
    return Advance(
        joined.select(order_N), parents_N, ended_BW, torch.cat([step.ended_parent_BW for step in steps], dim=1)
    )


@dataclass(frozen=True)
class BeamSearch:
    """Finds the best hypotheses for each source row, ranked by ``ranking``; see ``Search``.

    A sentence is done when no unfinished hypothesis can still rank among the ``n_best`` (its log-probability can only
    fall, and its length penalty is at most that of the longest), or when K finished ones rank above the present score
    of every unfinished one. The usual rule, to stop at any K finished hypotheses, fails if the model is certain: the
    second best extension is then an early end at every step, and K of those exist before the right hypothesis ends.
    With several groups the rule applies to each group.
    """

    eos: int
    ranking: Ranking
    beam: int
    """Number of beams of a sentence, in all groups together."""
    n_best: int = 1
    """Maximum number of hypotheses. Each group searches for that many, but at most one for each of its beams; equal
    hypotheses count once."""
    groups: int = 1
    diversity: float = 0.0
    """See ``advance_groups``."""
    observer: Observer = None
    """See ``Observer``."""

    def __post_init__(self) -> None:
        assert 1 <= self.n_best <= self.beam
        assert self.beam % self.groups == 0

    @torch.no_grad()
    def __call__(
        self, model: StepModel[Any, Any], source_BS: Tensor, processors: LogitsProcessors
    ) -> list[tuple[Hypothesis, ...]]:
        """See ``Search``."""
        batch, device, beam = len(source_BS), source_BS.device, self.beam
        memory = model.encode(source_BS)
        state, repetitions = model.start(memory).repeat(beam), processors.repetitions
        is_pad_BS = source_BS == model.pad
        is_first_N = torch.arange(batch * beam, device=device) % self.group_beam == 0
        beams = Beams(
            torch.empty((batch * beam, 0), dtype=torch.int64, device=device),
            torch.zeros(batch * beam, device=device).masked_fill(~is_first_N, -torch.inf),
            torch.zeros(batch * beam, source_BS.shape[1], device=device) if self.ranking.coverage else None,
            repetitions=repetitions and repetitions.repeat(beam),
        )
        token_N = model.first_token(batch * beam, device)
        finished = _Finished([self.ranking.penalty(limit) for limit in processors.limits], self.groups, beam)
        # the source row of each row's sentence
        sentence_N = torch.arange(batch, device=device).repeat_interleave(beam)
        covered_N = torch.zeros_like(beams.log_prob_N)
        source_rows, pending = list(range(batch)), list[tuple[Tensor, ...]]()
        shortest = min(processors.limits)
        for time in range(max(processors.limits)):
            forward = model.step(token_N, memory, state)
            state = forward.state
            if beams.attended_NS is not None:
                attended_NS = beams.attended_NS + forward.weights_NHS.mean(dim=1)
                covered_N = covered(attended_NS, is_pad_BS[sentence_N])
                beams = replace(beams, attended_NS=attended_NS)
            if self.needs_all_logits or not processors.is_unconstrained(time, shortest):
                step = self._advance_by_logits(forward, beams, processors, source_rows, sentence_N)
            else:
                step = advance_unconstrained(beams, forward, beam, self.eos)
            best_BG = step.beams.log_prob_N.view(-1, self.groups, self.group_beam).amax(dim=2)
            paid_N = beams.repetitions.paid_N if beams.repetitions else torch.zeros_like(beams.log_prob_N)
            pending.append((step.ended_BW, step.ended_parent_BW, beams.tokens_NT, covered_N, best_BG, paid_N))
            beams, parents_N = step.beams, step.parents_N
            if (time + 1) % SYNC_INTERVAL.get(device.type, 8) == 0 or time + 1 == max(processors.limits):
                active_sentences = self._read(pending, finished, source_rows)
                pending.clear()
                if not active_sentences:
                    break
                if self.observer is not None:
                    ended = [list(one.tokens) for of_sentence in finished.hypotheses for _, one in of_sentence]
                    self.observer([*ended, *beams.tokens_NT.tolist()])
                shortest = min(processors.limits[source_rows[sentence]] for sentence in active_sentences)
                stay = len(source_rows) - max(int(batch * MIN_FINISHED_SHARE), 1)
                if len(active_sentences) <= (stay if device.type == "cpu" else len(source_rows) // 2):
                    kept_B = torch.tensor(active_sentences, device=device)
                    row_N = (kept_B[:, None] * beam + torch.arange(beam, device=device)).flatten()
                    beams, parents_N = beams.select(row_N), parents_N[row_N]
                    memory, sentence_N, covered_N = memory.select(kept_B), sentence_N[row_N], covered_N[row_N]
                    source_rows = [source_rows[sentence] for sentence in active_sentences]
            state = state.select(parents_N)
            token_N = beams.tokens_NT[:, -1]
        return [self._best(of_sentence) for of_sentence in finished.hypotheses]

    @property
    def group_beam(self) -> int:
        """Number of beams of a group."""
        return self.beam // self.groups

    @property
    def needs_all_logits(self) -> bool:
        """Returns True if a step may take other tokens than the best of each beam."""
        return self.groups > 1

    def _advance_by_logits(
        self, forward: Step[Any], beams: Beams, processors: LogitsProcessors, source_rows: list[int], sentence_N: Tensor
    ) -> Advance:
        """Computes one step from the logits of all tokens, some sentences at a time."""
        steps = []
        for part in row_parts(sentence_N, forward.vocabulary, multiple_of=self.beam):
            logits_NV = forward.logits(part).float()
            part_beams = beams.part(part)
            part_beams = replace(part_beams, log_prob_N=part_beams.log_prob_N - log_normalizer(logits_NV))
            processors.apply(logits_NV, part_beams.tokens_NT, sentence_N[part])
            if part_beams.repetitions:
                part_beams.repetitions.penalize(logits_NV, part_beams.tokens_NT)
            part_rows = source_rows[part.start // self.beam : part.stop // self.beam]
            steps.append(self.advance(part_beams, logits_NV, part_rows, [processors.limits[row] for row in part_rows]))
        return Advance.joined(steps)

    def advance(self, beams: Beams, log_probs_NV: Tensor, source_rows: list[int], limits: list[int]) -> Advance:
        """Computes one step of the sentences ``source_rows``, whose limits of length are ``limits``. ``log_probs_NV``
        may be logits if the log-probabilities of the beams include their normalizers."""
        return advance_groups(
            beams, log_probs_NV, groups=self.groups, beam=self.group_beam, eos=self.eos, diversity=self.diversity
        )

    def _read(self, pending: Sequence[tuple[Tensor, ...]], finished: _Finished, source_rows: list[int]) -> list[int]:
        """Adds the hypotheses that have ended in some steps to those ``finished``; returns the indices into the batch
        of sentences that are not done. ``pending`` has of each step what has ended (see ``Advance``), the tokens of the
        parents, how they ``covered`` the source, the log-probability of the best of each group that goes on, and what
        the parents have paid for repetitions."""
        rows, group_beam = np.array(source_rows), self.group_beam
        values = iter(copy_to_host([tensor for step in pending for tensor in step]))
        for ended_BW, parent_BW, tokens_NT, covered_N, best_BG, paid_N in zip(*[values] * 6, strict=True):
            length = tokens_NT.shape[1] + 1
            if max(ended_BW.max(), finished.score_BGW[rows].max()) == -np.inf < best_BG.min():
                continue  # nothing has ended yet
            # in float64, like the score of a hypothesis
            score_BW = self.ranking.score(ended_BW.astype(float), length, covered_N.astype(float)[parent_BW])
            score_BGK = score_BW.reshape(len(rows), self.groups, group_beam)
            score_BGK[finished.is_done_BG[rows]] = -np.inf
            best_BGW = np.concatenate([finished.score_BGW[rows], score_BGK], axis=2)
            finished.score_BGW[rows] = best_BGW = -np.sort(-best_BGW, axis=2)[:, :, : self.beam]
            # of the other hypotheses only the score is needed
            is_kept_BGK = (score_BGK > -np.inf) & (score_BGK >= best_BGW[:, :, self.n_best - 1 : self.n_best])
            for at in map(tuple, np.argwhere(is_kept_BGK.reshape(ended_BW.shape))):
                tokens, paid = tuple(tokens_NT[parent_BW[at]].tolist()), float(paid_N[parent_BW[at]])
                score = float(score_BW[at]) + paid / self.ranking.penalty(length)
                hypothesis = Hypothesis(tokens, float(ended_BW[at]) + paid, score)
                finished.hypotheses[rows[at[0]]].append((float(score_BW[at]), hypothesis))
            last_BG, first_BG = best_BGW[:, :, group_beam - 1], best_BGW[:, :, min(self.n_best, group_beam) - 1]
            finished.is_done_BG[rows] |= (
                (best_BG == -np.inf)
                # The log-probability only falls, and the length penalty rises. Coverage, at most 0, is left out.
                | (first_BG >= best_BG.astype(float) / finished.penalty_B1[rows])
                | (last_BG >= self.ranking.score(best_BG.astype(float), length))
            )
        return np.flatnonzero(~finished.is_done_BG[rows].all(axis=1)).tolist()

    def _best(self, ranked: list[tuple[float, Hypothesis]]) -> tuple[Hypothesis, ...]:
        by_tokens = {hypothesis.tokens: (score, hypothesis) for score, hypothesis in ranked}
        best = sorted(by_tokens.values(), key=lambda each: -each[0])[: self.n_best]
        return tuple(hypothesis for _, hypothesis in best)


class _Finished:
    """Finished hypotheses of each of B source sentences."""

    def __init__(self, penalties: list[float], groups: int, beam: int) -> None:
        batch = len(penalties)
        self.penalty_B1 = np.array(penalties)[:, None]
        """The length penalty of the longest hypothesis that a sentence may have."""
        self.hypotheses: list[list[tuple[float, Hypothesis]]] = [[] for _ in range(batch)]
        """The hypotheses that may be among the best, each with its score, less what it paid for repetitions."""
        self.score_BGW = np.full((batch, groups, beam), -np.inf)
        """The best W scores of each group, best first, filled up with -inf."""
        self.is_done_BG = np.zeros((batch, groups), dtype=bool)

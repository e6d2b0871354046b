"""Beam search over a batch of sentences, in one group of beams or in several that are kept apart.

Shapes: B sentences still at work, G groups, K beams of each group, W = G x K beams of a sentence, N = B x W rows (a
sentence's beams side by side, group by group), V vocabulary, S source positions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Any

import torch
from torch import Tensor

from nmt.core.record import BatchRecord
from nmt.models.seq2seq import Step
from nmt.models.step_model import StepModel
from nmt.nn.output import row_parts
from nmt.ops import TopTokens, log_normalizer, top_tokens
from nmt.search.hypothesis import Hypothesis
from nmt.search.logits_processors import Rules
from nmt.search.scoring import Ranking, covered

LEAVE_TOGETHER = 16
"""Finished sentences leave a batch when they are this part of it: so it has few sizes on its way. For a matrix of new
size a CPU's library makes a new kernel, which takes longer than the rows that could have been left out."""


@dataclass(frozen=True)
class Beams(BatchRecord):
    """Unfinished hypotheses, one for each of N rows."""

    tokens_NT: Tensor
    """The tokens so far."""
    log_prob_N: Tensor
    """Their log-probability; -inf marks a row without a hypothesis."""
    attended_NS: Tensor | None = None
    """The attention that each source position has got; None where nobody asks."""


@dataclass(frozen=True)
class Ended:
    """A hypothesis that took end-of-sentence."""

    sentence: int
    parent: int
    """The row that it came from."""
    log_prob: float


@dataclass(frozen=True)
class Advance:
    """One step of all beams."""

    beams: Beams
    """Those that go on, K for each sentence, best first."""
    parents_N: Tensor
    """The row that each came from."""
    ended: tuple[Ended, ...]

    @staticmethod
    def joined(steps: Sequence[Advance], *, beam: int) -> Advance:
        """Of neighbouring sentences with ``beam`` rows each, whose rows and places each step counts from 0."""
        if len(steps) == 1:
            return steps[0]
        first_row = [0, *accumulate(len(step.parents_N) for step in steps)]
        parents_N = torch.cat([step.parents_N + first for step, first in zip(steps, first_row, strict=False)])
        ended = tuple(
            Ended(each.sentence + first // beam, each.parent + first, each.log_prob)
            for step, first in zip(steps, first_row, strict=False)
            for each in step.ended
        )
        return Advance(Beams.joined([step.beams for step in steps]), parents_N, ended)


@dataclass(frozen=True)
class Extensions:
    """The best extensions of each sentence's hypotheses by one token, best first."""

    log_prob_BW: Tensor
    """What they then have."""
    parent_BW: Tensor
    """The row that each extends,"""
    token_BW: Tensor
    """and by what."""

    @staticmethod
    def from_top_tokens(beams: Beams, tokens: TopTokens, *, beam: int) -> Extensions:
        """Among the extensions of each hypothesis by its most probable tokens.

        Where ``tokens`` have no normalizer, the log-probabilities of the beams include it.
        """
        rows, count = tokens.token_NK.shape
        before_N = beams.log_prob_N
        if tokens.log_normalizer_N is not None:
            before_N = before_N - tokens.log_normalizer_N
        log_prob_BX = (tokens.logit_NK + before_N[:, None]).view(rows // beam, -1)
        log_prob_BW, index_BW = log_prob_BX.topk(min(num_candidates(beam), log_prob_BX.shape[1]), dim=1)
        parent_BW = index_BW // count + _first_rows(rows, beam, index_BW.device)
        return Extensions(log_prob_BW, parent_BW, tokens.token_NK.view(rows // beam, -1).gather(1, index_BW))

    @staticmethod
    def with_penalty(beams: Beams, log_probs_NV: Tensor, penalty_BV: Tensor, *, beam: int) -> Extensions:
        """Among the extensions by every token, ranked by log-probability less the penalty of the token."""
        rows, vocabulary = log_probs_NV.shape
        total_NV = beams.log_prob_N[:, None] + log_probs_NV
        penalized_BX = (total_NV - penalty_BV.repeat_interleave(beam, dim=0)).view(rows // beam, -1)
        _, index_BW = penalized_BX.topk(num_candidates(beam), dim=1)
        parent_BW = index_BW // vocabulary + _first_rows(rows, beam, index_BW.device)
        return Extensions(total_NV.view(rows // beam, -1).gather(1, index_BW), parent_BW, index_BW % vocabulary)


def num_candidates(beam: int) -> int:
    """Number of extensions of a sentence that are ranked: at most K of them end, one per beam, so K others go on."""
    return 2 * beam


def _first_rows(rows: int, beam: int, device: torch.device) -> Tensor:
    """Of each sentence, (B, 1)."""
    return torch.arange(0, rows, beam, device=device)[:, None]


def advance(beams: Beams, extensions: Extensions, *, beam: int, eos: int) -> Advance:
    """Keeps the best extensions: those that end and stand among the first K of a sentence are finished, and the first K
    that do not end go on."""
    log_prob_BW, parent_BW, token_BW = extensions.log_prob_BW, extensions.parent_BW, extensions.token_BW
    width = token_BW.shape[1]
    ends_BW = token_BW == eos
    rank_W = torch.arange(width, device=ends_BW.device)
    finished_BW = ends_BW & (rank_W < beam) & log_prob_BW.isfinite()
    sentences = finished_BW.nonzero()[:, 0].tolist()
    parents, log_probs = parent_BW[finished_BW].tolist(), log_prob_BW[finished_BW].tolist()
    ended = tuple(map(Ended, sentences, parents, log_probs))
    # The first K that go on, in their order: rank them behind all that end.
    chosen_BK = (rank_W + width * ends_BW).topk(beam, dim=1, largest=False, sorted=True).indices
    parents_N = parent_BW.gather(1, chosen_BK).flatten()
    log_prob_N = log_prob_BW.masked_fill(ends_BW, -torch.inf).gather(1, chosen_BK).flatten()
    token_N1 = token_BW.gather(1, chosen_BK).view(-1, 1)
    chosen = beams.select(parents_N)
    tokens_NT = torch.cat([chosen.tokens_NT, token_N1], dim=1)
    return Advance(replace(chosen, tokens_NT=tokens_NT, log_prob_N=log_prob_N), parents_N, ended)


def advance_groups(
    beams: Beams, log_probs_NV: Tensor, *, groups: int, beam: int, eos: int, diversity: float
) -> Advance:
    """``advance`` for each group by itself, one after the other; a token's penalty in a group is ``diversity`` times
    the number of beams of the groups before it that went on with that token in this step (Vijayakumar et al. 2018,
    "Diverse Beam Search", Hamming diversity). As there, a penalty counts in the step alone: beams keep their own
    log-probability.
    """
    if groups == 1:
        tokens = top_tokens(log_probs_NV, min(num_candidates(beam), log_probs_NV.shape[1]), False)
        return advance(beams, Extensions.from_top_tokens(beams, tokens, beam=beam), beam=beam, eos=eos)
    rows, vocabulary = log_probs_NV.shape
    batch = rows // (groups * beam)
    row_BGK = torch.arange(rows, device=log_probs_NV.device).view(batch, groups, beam)
    penalty_BV = log_probs_NV.new_zeros(batch, vocabulary)
    found: list[Advance] = []
    for group in range(groups):
        row_N = row_BGK[:, group].flatten()
        its_beams = beams.select(row_N)
        extensions = Extensions.with_penalty(its_beams, log_probs_NV[row_N], penalty_BV, beam=beam)
        step = advance(its_beams, extensions, beam=beam, eos=eos)
        token_BK, is_there_BK = step.beams.tokens_NT[:, -1].view(batch, beam), step.beams.log_prob_N.isfinite()
        penalty_BV = penalty_BV.scatter_add(1, token_BK, diversity * is_there_BK.view(batch, beam).float())
        ended = tuple(replace(each, parent=int(row_N[each.parent])) for each in step.ended)
        found.append(Advance(step.beams, row_N[step.parents_N], ended))
    # back from group after group to sentence after sentence
    order_N = row_BGK.transpose(0, 1).flatten().argsort()
    parents_N = torch.cat([each.parents_N for each in found])[order_N]
    following = replace(
        beams.select(parents_N),
        tokens_NT=torch.cat([each.beams.tokens_NT for each in found])[order_N],
        log_prob_N=torch.cat([each.beams.log_prob_N for each in found])[order_N],
    )
    return Advance(following, parents_N, tuple(one for each in found for one in each.ended))


@dataclass(frozen=True)
class BeamSearch:
    """The best hypotheses found for each source row, ranked by ``ranking``; see ``Search``.

    A sentence is done when no unfinished hypothesis can still get among the ``n_best`` (its log-probability can only
    fall, and its length penalty is at most that of the longest), or when K finished ones rank above every unfinished
    one as that stands. To stop at any K finished ones, as is common, would be wrong where the model is sure of itself:
    then the second best extension is an early end at every step, and K of those are there before the right one is.
    With several groups that holds for each of them.
    """

    eos: int
    ranking: Ranking
    beam: int
    """Beams of a sentence, in all groups together."""
    n_best: int = 1
    """There may be fewer, where the beam or the space is smaller; with several groups each finds that many, if its
    beams are so many, and equal ones are one."""
    groups: int = 1
    diversity: float = 0.0
    """See ``advance_groups``."""

    def __post_init__(self) -> None:
        assert 1 <= self.n_best <= self.beam
        assert self.beam % self.groups == 0

    @torch.no_grad()
    def __call__(self, model: StepModel[Any, Any], source_BS: Tensor, rules: Rules) -> list[tuple[Hypothesis, ...]]:
        """See ``Search``."""
        batch, device, beam = len(source_BS), source_BS.device, self.beam
        memory = model.encode(source_BS)
        state = model.start(memory).repeat(beam)
        is_pad_BS = source_BS == model.pad
        is_first_N = torch.arange(batch * beam, device=device) % (beam // self.groups) == 0
        beams = Beams(
            torch.empty((batch * beam, 0), dtype=torch.int64, device=device),
            torch.zeros(batch * beam, device=device).masked_fill(~is_first_N, -torch.inf),
            torch.zeros(batch * beam, source_BS.shape[1], device=device) if self.ranking.coverage else None,
        )
        token_N = model.first_token(batch * beam, device)
        limits = rules.max_length_B.tolist()
        found = [[_Found() for _ in range(self.groups)] for _ in range(batch)]
        at_work_B = torch.arange(batch, device=device)  # the source row of each sentence in the batch
        for time in range(max(limits)):
            forward = model.step(token_N, memory, state)
            state = forward.state
            if beams.attended_NS is not None:
                beams = replace(beams, attended_NS=beams.attended_NS + forward.weights_NHS.mean(dim=1))
            rows = at_work_B.tolist()
            sentence_N = at_work_B.repeat_interleave(beam)
            if self.needs_all_logits or not rules.leaves_all(time, sentence_N):
                step = self._over_all(forward, beams, rules, rows, sentence_N, limits)
            else:
                tokens = forward.top_tokens(min(num_candidates(beam), forward.vocabulary), True)
                step = advance(beams, Extensions.from_top_tokens(beams, tokens, beam=beam), beam=beam, eos=self.eos)
            self._finish(step.ended, beams, found, rows, is_pad_BS)
            beams = step.beams
            staying = self._staying(beams, found, rows, limits, time + 1)
            if not staying:
                break
            parents_N = step.parents_N
            if len(staying) <= len(rows) - max(batch // LEAVE_TOGETHER, 1):
                staying_B = torch.tensor(staying, device=device)
                row_N = (staying_B[:, None] * beam + torch.arange(beam, device=device)).flatten()
                beams, parents_N = beams.select(row_N), parents_N[row_N]
                memory, at_work_B = memory.select(staying_B), at_work_B[staying_B]
            state = state.select(parents_N)
            token_N = beams.tokens_NT[:, -1]
        return [self._best(groups) for groups in found]

    @property
    def needs_all_logits(self) -> bool:
        """Whether other tokens than the best of each beam may be taken."""
        return self.groups > 1

    def _over_all(
        self, forward: Step[Any], beams: Beams, rules: Rules, rows: list[int], sentence_N: Tensor, limits: list[int]
    ) -> Advance:
        """One step by the logits of all tokens, of sentences that stand in ``rows`` of the source."""
        steps = []
        for part in row_parts(len(sentence_N), forward.vocabulary, multiple_of=self.beam):
            logits_NV = forward.logits(part).float()
            its_beams = beams.part(part)
            its_beams = replace(its_beams, log_prob_N=its_beams.log_prob_N - log_normalizer(logits_NV))
            rules.apply(logits_NV, beams.tokens_NT[part], sentence_N[part])
            its_rows = rows[part.start // self.beam : part.stop // self.beam]
            steps.append(self.advance(its_beams, logits_NV, its_rows, [limits[row] for row in its_rows]))
        return Advance.joined(steps, beam=self.beam)

    def advance(self, beams: Beams, log_probs_NV: Tensor, rows: list[int], limits: list[int]) -> Advance:
        """One step of sentences that stand in ``rows`` of the source and have ``limits`` of length. What the entries of
        a row lack to be log-probabilities its beam's ``log_prob_N`` may have already."""
        return advance_groups(
            beams,
            log_probs_NV,
            groups=self.groups,
            beam=self.beam // self.groups,
            eos=self.eos,
            diversity=self.diversity,
        )

    def _finish(
        self,
        ended: tuple[Ended, ...],
        beams: Beams,
        found: list[list[_Found]],
        rows: list[int],
        is_pad_BS: Tensor,
    ) -> None:
        """Enters the hypotheses that have ended, each extending its parent among ``beams``."""
        if not ended:
            return
        parent_N = torch.tensor([each.parent for each in ended], device=is_pad_BS.device)
        covered_N = [0.0] * len(ended)
        if beams.attended_NS is not None:
            sentence_N = torch.tensor([rows[each.sentence] for each in ended], device=is_pad_BS.device)
            covered_N = covered(beams.attended_NS[parent_N], is_pad_BS[sentence_N]).tolist()
        for each, tokens, coverage in zip(ended, beams.tokens_NT[parent_N].tolist(), covered_N, strict=True):
            group = found[rows[each.sentence]][each.parent % self.beam // (self.beam // self.groups)]
            if not group.is_done:
                score = self.ranking.score(each.log_prob, len(tokens) + 1, coverage)
                group.hypotheses.append(Hypothesis(tuple(tokens), each.log_prob, score))

    def _staying(
        self, beams: Beams, found: list[list[_Found]], rows: list[int], limits: list[int], length: int
    ) -> list[int]:
        """The places of the sentences that are not done, after ``length`` steps."""
        best_BG = beams.log_prob_N.view(-1, self.groups, self.beam // self.groups).amax(dim=2).tolist()
        staying = []
        for place, (row, best_G) in enumerate(zip(rows, best_BG, strict=True)):
            for group, best in zip(found[row], best_G, strict=True):
                group.is_done = group.is_done or self._is_settled(group.hypotheses, best, length, limits[row])
            if not all(group.is_done for group in found[row]):
                staying.append(place)
        return staying

    def _is_settled(self, finished: list[Hypothesis], best: float, length: int, limit: int) -> bool:
        """Whether a group with such hypotheses stops, the best unfinished one having ``length`` tokens and the
        log-probability ``best``."""
        beam = self.beam // self.groups
        n_best = min(self.n_best, beam)
        if best == -torch.inf:
            return True
        if len(finished) < n_best:
            return False
        scores = sorted((each.score for each in finished), reverse=True)
        # what is covered is left out of how an unfinished one stands: that could only lower it
        return scores[n_best - 1] >= self.ranking.bound(best, limit) or (
            len(scores) >= beam and scores[beam - 1] >= self.ranking.score(best, length)
        )

    def _best(self, groups: list[_Found]) -> tuple[Hypothesis, ...]:
        by_tokens = {each.tokens: each for group in groups for each in group.hypotheses}
        return tuple(sorted(by_tokens.values(), key=lambda hypothesis: -hypothesis.score)[: self.n_best])


@dataclass
class _Found:
    """What a group of beams of one sentence has found."""

    hypotheses: list[Hypothesis] = field(default_factory=list)
    is_done: bool = False

"""Beam search over a batch of sentences.

Shapes: B sentences still at work, K beams of each, N = B x K rows (a sentence's beams side by side), V vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from nmt.core.record import BatchRecord
from nmt.models.seq2seq import Seq2Seq
from nmt.search.hypothesis import Hypothesis
from nmt.search.scoring import length_penalty


@dataclass(frozen=True)
class Beams(BatchRecord):
    """Unfinished hypotheses, one for each of N rows."""

    tokens_NT: Tensor
    """The tokens so far."""
    log_prob_N: Tensor
    """Their log-probability; -inf marks a row without a hypothesis."""


@dataclass(frozen=True)
class Advance:
    """One step of all beams."""

    beams: Beams
    """Those that go on, K for each sentence, best first."""
    parents_N: Tensor
    """The row that each came from."""
    ended: tuple[tuple[int, int, float], ...]
    """(sentence, parent row, log-probability) of each hypothesis that took end-of-sentence in this step."""


def advance(beams: Beams, log_probs_NV: Tensor, *, beam: int, eos: int) -> Advance:
    """Extends every hypothesis by every token and keeps the best.

    Of a sentence's extensions, ranked by log-probability, those that end and stand among the first K are finished, and
    the first K that do not end go on.
    """
    rows, vocabulary = log_probs_NV.shape
    batch = rows // beam
    # Of 2K extensions at most K end, one for each beam, so K others are among them.
    width = 2 * beam
    total_NV = beams.log_prob_N[:, None] + log_probs_NV
    log_prob_BW, index_BW = total_NV.view(batch, -1).topk(width, dim=1)
    token_BW = index_BW % vocabulary
    first_row_B1 = torch.arange(0, rows, beam, device=index_BW.device)[:, None]
    parent_BW = index_BW // vocabulary + first_row_B1
    ends_BW = token_BW == eos
    rank_W = torch.arange(width, device=ends_BW.device)
    finished_BW = ends_BW & (rank_W < beam) & log_prob_BW.isfinite()
    ended = tuple(
        (sentence, int(parent_BW[sentence, rank]), float(log_prob_BW[sentence, rank]))
        for sentence, rank in finished_BW.nonzero().tolist()
    )
    # The first K that go on, in their order: rank them behind all that end.
    chosen_BK = (rank_W + width * ends_BW).topk(beam, dim=1, largest=False, sorted=True).indices
    parents_N = parent_BW.gather(1, chosen_BK).flatten()
    log_prob_N = log_prob_BW.masked_fill(ends_BW, -torch.inf).gather(1, chosen_BK).flatten()
    token_N1 = token_BW.gather(1, chosen_BK).view(-1, 1)
    tokens_NT = torch.cat([beams.tokens_NT[parents_N], token_N1], dim=1)
    return Advance(Beams(tokens_NT, log_prob_N), parents_N, ended)


@torch.no_grad()
def beam_search(
    model: Seq2Seq[Any, Any],
    source_BS: Tensor,
    max_length_B: Tensor,
    *,
    beam: int,
    eos: int,
    exponent: float,
    n_best: int = 1,
) -> list[tuple[Hypothesis, ...]]:
    """The ``n_best`` best hypotheses found for each source row, best first, ranked by ``log_prob / length_penalty``.

    ``max_length_B`` (at least 1) counts end-of-sentence, which a hypothesis of that length is made to take. There may
    be fewer than ``n_best`` where the beam or the space is smaller.

    A sentence is done when no unfinished hypothesis can still get among the ``n_best`` (its log-probability can only
    fall, and its length penalty is at most that of the longest), or when K finished ones rank above every unfinished
    one as that stands. To stop at any K finished ones, as is common, would be wrong where the model is sure of itself:
    then the second best extension is an early end at every step, and K of those are there before the right one is.
    """
    assert 1 <= n_best <= beam
    batch = len(source_BS)
    device = source_BS.device
    memory = model.encode(source_BS)
    state = model.start(memory).repeat(beam)
    is_first_N = torch.arange(batch * beam, device=device) % beam == 0
    beams = Beams(
        torch.empty((batch * beam, 0), dtype=torch.int64, device=device),
        torch.zeros(batch * beam, device=device).masked_fill(~is_first_N, -torch.inf),
    )
    token_N = model.first_token(batch * beam, device)
    limits = max_length_B.tolist()
    longest = [length_penalty(limit, exponent) for limit in limits]
    found: list[list[Hypothesis]] = [[] for _ in range(batch)]
    at_work = list(range(batch))  # the source row of each sentence still in the batch
    for time in range(max(limits)):
        forward = model.step(token_N, memory, state)
        state = forward.state
        log_probs_NV = forward.logits_NV.log_softmax(dim=1, dtype=torch.float32)
        last = [place for place, row in enumerate(at_work) if limits[row] == time + 1]
        if last:
            _only(log_probs_NV.view(len(at_work), beam, -1), torch.tensor(last, device=device), eos)
        step = advance(beams, log_probs_NV, beam=beam, eos=eos)
        penalty = length_penalty(time + 1, exponent)
        for place, parent, log_prob in step.ended:
            tokens = tuple(beams.tokens_NT[parent].tolist())
            found[at_work[place]].append(Hypothesis(tokens, log_prob, log_prob / penalty))
        beams = step.beams
        best_going_on = beams.log_prob_N[::beam].tolist()
        staying = [
            place
            for place, row in enumerate(at_work)
            if not _is_done(
                found[row],
                as_it_stands=best_going_on[place] / penalty,
                at_best=best_going_on[place] / longest[row],
                beam=beam,
                n_best=n_best,
            )
        ]
        if not staying:
            break
        parents_N = step.parents_N
        if len(staying) < len(at_work):
            at_work = [at_work[place] for place in staying]
            staying_B = torch.tensor(staying, device=device)
            rows_N = (staying_B[:, None] * beam + torch.arange(beam, device=device)).flatten()
            beams, parents_N, memory = beams.select(rows_N), parents_N[rows_N], memory.select(staying_B)
        state = state.select(parents_N)
        token_N = beams.tokens_NT[:, -1]
    return [tuple(sorted(each, key=lambda hypothesis: -hypothesis.score)[:n_best]) for each in found]


def _only(log_probs_BKV: Tensor, places: Tensor, token: int) -> None:
    """Leaves the given sentences no token but one."""
    kept = log_probs_BKV[places, :, token]
    log_probs_BKV[places] = -torch.inf
    log_probs_BKV[places, :, token] = kept


def _is_done(found: list[Hypothesis], *, as_it_stands: float, at_best: float, beam: int, n_best: int) -> bool:
    """Whether to stop, given the score of the best unfinished hypothesis and the best that it could become."""
    scores = sorted((each.score for each in found), reverse=True)
    return (
        at_best == -torch.inf
        or (len(scores) >= n_best and scores[n_best - 1] >= at_best)
        or (len(scores) >= beam and scores[beam - 1] >= as_it_stands)
    )

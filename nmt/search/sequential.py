"""Search that takes one token after another and none back: greedy search, or sampling."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from functools import partial
from typing import Any

import torch
from torch import Tensor

from nmt.models.step_model import StepModel
from nmt.nn.output import row_parts
from nmt.ops import log_normalizer, top_tokens
from nmt.search.hypothesis import Hypothesis, Search
from nmt.search.logits_processors import Rules
from nmt.search.scoring import Ranking, covered

COMPACT_BELOW = 0.8
"""Finished sentences leave the batch when less than this share of it is still at work: leaving costs a copy of the
memory, staying costs the steps of idle rows."""

LOOK_EVERY = {"cpu": 1}
"""Steps between looks at how many are still at work, 8 elsewhere: a GPU is then not waited for at each."""


class Chooser(ABC):
    """Picks the next token of each row."""

    takes_largest = False
    """Whether it is the one with the largest logit, whatever the others are."""

    @abstractmethod
    def choose(self, logits_NV: Tensor, time: int, row_N: Tensor) -> Tensor:
        """The tokens at step ``time``, (N,), of rows that are numbered as at the start: row b x K + k is the k-th path
        of sentence b. What is not allowed has the logit -inf."""


class MostProbable(Chooser):
    """Greedy search."""

    takes_largest = True

    def choose(self, logits_NV: Tensor, time: int, row_N: Tensor) -> Tensor:
        """See ``Chooser``."""
        return top_tokens(logits_NV, 1, False).token_NK[:, 0]


@torch.no_grad()
def paths(
    model: StepModel[Any, Any],
    source_BS: Tensor,
    rules: Rules,
    chooser: Chooser,
    *,
    count: int = 1,
    eos: int,
    ranking: Ranking,
    scored: bool = True,
) -> list[tuple[Hypothesis, ...]]:
    """``count`` hypotheses for each source row, in the order of their paths. The log-probability of a hypothesis is the
    model's, whatever it was chosen by; it and the score are NaN unless ``scored``, which spares a pass over the logits
    of each step and has no say in what is chosen."""
    memory = model.encode(source_BS)
    state = model.start(memory).repeat(count)
    device, rows = source_BS.device, len(source_BS) * count
    tokens_NT = torch.full((rows, int(rules.max_length_B.max())), eos, device=device)
    log_prob_N = torch.full((rows,), 0.0 if scored else math.nan, device=device)
    attended_NS = torch.zeros(rows, source_BS.shape[1], device=device) if ranking.coverage else None
    row_N = torch.arange(rows, device=device)  # the number at the start of each row still in the batch
    token_N = model.first_token(rows, device)
    at_work_N = torch.ones_like(row_N, dtype=torch.bool)
    for time in range(tokens_NT.shape[1]):
        step = model.step(token_N, memory, state)
        state = step.state
        if chooser.takes_largest and rules.leaves_all(time, row_N // count):
            best = step.top_tokens(1, scored)
            token_N = best.token_NK[:, 0]
            chosen_N = None if best.log_normalizer_N is None else best.logit_NK[:, 0] - best.log_normalizer_N
        else:
            before_NT = tokens_NT[row_N, :time]
            token_N, chosen_N = torch.empty_like(row_N), log_prob_N.new_empty(row_N.shape) if scored else None
            for part in row_parts(row_N.shape[0], step.vocabulary):
                logits_NV = step.logits(part)
                if chosen_N is not None:
                    chosen_N[part] = -log_normalizer(logits_NV.float())
                rules.apply(logits_NV, before_NT[part], row_N[part] // count)
                token_N[part] = chooser.choose(logits_NV, time, row_N[part])
                if chosen_N is not None:
                    chosen_N[part] += logits_NV.gather(1, token_N[part, None])[:, 0]
        if chosen_N is not None:
            log_prob_N[row_N] += chosen_N.masked_fill(~at_work_N, 0.0)
        tokens_NT[row_N, time] = token_N.masked_fill(~at_work_N, eos)
        if attended_NS is not None:
            attended_NS[row_N] += step.weights_NHS.mean(dim=1).masked_fill(~at_work_N[:, None], 0.0)
        at_work_N = at_work_N & (token_N != eos)
        if (time + 1) % LOOK_EVERY.get(device.type, 8):
            continue
        at_work_B = at_work_N.view(-1, count).any(dim=1)
        share = at_work_B.float().mean().item()
        if share == 0.0:
            break
        if share < COMPACT_BELOW:
            kept_N = at_work_B.repeat_interleave(count).nonzero()[:, 0]
            memory, state = memory.select(at_work_B.nonzero()[:, 0]), state.select(kept_N)
            row_N, token_N, at_work_N = row_N[kept_N], token_N[kept_N], at_work_N[kept_N]
    covered_N = [0.0] * rows
    if attended_NS is not None:
        is_pad_NS = (source_BS == model.pad).repeat_interleave(count, dim=0)
        covered_N = covered(attended_NS, is_pad_NS).tolist()
    found = [
        _hypothesis(tokens, log_prob, coverage, eos, ranking)
        for tokens, log_prob, coverage in zip(tokens_NT.tolist(), log_prob_N.tolist(), covered_N, strict=True)
    ]
    return [tuple(found[first : first + count]) for first in range(0, rows, count)]


def _hypothesis(tokens: list[int], log_prob: float, coverage: float, eos: int, ranking: Ranking) -> Hypothesis:
    tokens = tokens[: tokens.index(eos)]
    return Hypothesis(tuple(tokens), log_prob, ranking.score(log_prob, len(tokens) + 1, coverage))


def greedy_search(eos: int, ranking: Ranking, scored: bool = True) -> Search:
    """Greedy search: one hypothesis for each source row, of the most probable token at every step; see ``paths``."""
    return partial(paths, chooser=MostProbable(), eos=eos, ranking=ranking, scored=scored)

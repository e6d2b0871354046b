"""Search that appends one token to each hypothesis at a time: the most probable one, or one drawn at random."""

from __future__ import annotations

from functools import partial
from itertools import compress
from typing import Any, Protocol

import torch
from torch import Tensor

from nmt.core.device import SYNC_INTERVAL, copy_to_host
from nmt.models.step_model import StepModel
from nmt.nn.output import row_parts
from nmt.ops import log_normalizer, top_tokens
from nmt.search.hypothesis import Hypothesis, Observer, Search
from nmt.search.logits_processors import LogitsProcessors
from nmt.search.repetition import SPARE
from nmt.search.scoring import Ranking, covered

COMPACT_BELOW = 0.8
"""Finished sentences leave the batch when less than this share of it is active: leaving costs a copy of the memory,
staying costs the steps of idle rows. On a GPU it is a half: see ``beam.MIN_FINISHED_SHARE``."""


class TokenPicker(Protocol):
    """Picks the next token of each row."""

    def __call__(self, logits_NV: Tensor, time: int, row_N: Tensor) -> Tensor:
        """Picks the tokens of step ``time``, (N,). Rows keep their numbers from the start: row b x K + k is hypothesis
        k of sentence b. Tokens that are not allowed have the logit -inf."""


def greedy_search(eos: int, ranking: Ranking, observer: Observer = None) -> Search:
    """Creates a search for one hypothesis of each source row, with the most probable token at every step; see
    ``greedy_or_sample``."""
    return partial(greedy_or_sample, eos=eos, ranking=ranking, observer=observer)


@torch.no_grad()
def greedy_or_sample(
    model: StepModel[Any, Any], source_BS: Tensor, processors: LogitsProcessors, *, pick: TokenPicker | None = None,
    count: int = 1, eos: int, ranking: Ranking, observer: Observer = None,
) -> list[tuple[Hypothesis, ...]]:  # fmt: skip
    """Finds ``count`` hypotheses for each source row, in their order; without ``pick`` it takes the most probable
    tokens.

    The log-probability of a hypothesis is the model's.
    """
    memory = model.encode(source_BS)
    state = model.start(memory).repeat(count)
    device, rows = source_BS.device, len(source_BS) * count
    tokens_NT = torch.full((rows, max(processors.limits)), eos, device=device)
    log_prob_N = torch.zeros(rows, device=device)
    attended_NS = torch.zeros(rows, source_BS.shape[1], device=device) if ranking.coverage else None
    row_N = torch.arange(rows, device=device)  # the original number of each row still in the batch
    at: Tensor | slice = slice(None)  # the same, but quicker as long as all are
    token_N = model.first_token(rows, device)
    is_active_N = torch.ones_like(row_N, dtype=torch.bool)
    limits, shortest = processors.limits, min(processors.limits)
    repetitions = processors.repetitions if pick is None else None
    candidates = 1 if repetitions is None else 1 + SPARE
    for time in range(tokens_NT.shape[1]):
        step = model.step(token_N, memory, state)
        state = step.state
        before_NT = tokens_NT[at, :time]
        if pick is None and processors.is_unconstrained(time, shortest):
            best = step.top_tokens(min(candidates, step.vocabulary), True)
            assert best.log_normalizer_N is not None
            token_NK, log_prob_NK = best.token_NK, best.logit_NK - best.log_normalizer_N[:, None]
        else:
            token_NK = row_N.new_empty(len(row_N), min(candidates, step.vocabulary))
            log_prob_NK = log_prob_N.new_empty(token_NK.shape)
            for part in row_parts(row_N, step.vocabulary):
                logits_NV = step.logits(part)
                normalizer_N = log_normalizer(logits_NV.float())
                processors.apply(logits_NV, before_NT[part], row_N[part] // count)
                if pick is None:
                    token_NK[part] = top_tokens(logits_NV, token_NK.shape[1], False).token_NK
                else:
                    token_NK[part, 0] = pick(logits_NV, time, row_N[part])
                log_prob_NK[part] = logits_NV.gather(1, token_NK[part]) - normalizer_N[:, None]
        if repetitions is not None:
            best_N1 = (log_prob_NK - repetitions.penalty(token_NK, before_NT)).argmax(dim=1, keepdim=True)
            token_NK, log_prob_NK = token_NK.gather(1, best_N1), log_prob_NK.gather(1, best_N1)
            repetitions = repetitions.after(token_NK, before_NT)
        token_N, token_log_prob_N = token_NK[:, 0], log_prob_NK[:, 0]
        has_ended_N = ~is_active_N
        log_prob_N[at] += token_log_prob_N.masked_fill(has_ended_N, 0.0)
        tokens_NT[at, time] = token_N.masked_fill(has_ended_N, eos)
        if attended_NS is not None:
            attended_NS[at] += step.weights_NHS.mean(dim=1).masked_fill(has_ended_N[:, None], 0.0)
        is_active_N = is_active_N & (token_N != eos)
        if (time + 1) % SYNC_INTERVAL.get(device.type, 8):
            continue
        is_active_B = is_active_N.view(-1, count).any(dim=1).tolist()
        if not any(is_active_B):
            break
        if observer is not None:
            observer(tokens_NT[:, : time + 1].tolist())
        shortest = min(compress(limits, is_active_B))
        if sum(is_active_B) < (COMPACT_BELOW if device.type == "cpu" else 0.5) * len(is_active_B):
            kept_B = torch.tensor([row for row, is_active in enumerate(is_active_B) if is_active], device=device)
            kept_N = (kept_B[:, None] * count + torch.arange(count, device=device)).flatten()
            memory, state = memory.select(kept_B), state.select(kept_N)
            at, token_N, is_active_N = row_N[kept_N], token_N[kept_N], is_active_N[kept_N]
            row_N, repetitions = at, repetitions and repetitions.select(kept_N)
            limits = list(compress(limits, is_active_B))
    covered_N = torch.zeros_like(log_prob_N)
    if attended_NS is not None:
        covered_N = covered(attended_NS, (source_BS == model.pad).repeat_interleave(count, dim=0))
    hypotheses: list[Hypothesis] = []
    read = (values.tolist() for values in copy_to_host([tokens_NT, log_prob_N, covered_N]))
    for tokens, log_prob, coverage in zip(*read, strict=True):
        length = tokens.index(eos)
        hypotheses.append(Hypothesis(tuple(tokens[:length]), log_prob, ranking.score(log_prob, length + 1, coverage)))
    return [tuple(hypotheses[first : first + count]) for first in range(0, rows, count)]

"""Greedy search: the most probable token at every step."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from nmt.models.seq2seq import Seq2Seq
from nmt.search.hypothesis import Hypothesis
from nmt.search.scoring import length_penalty

COMPACT_BELOW = 0.8
"""Finished sentences leave the batch when less than this share of it is still at work: leaving costs a copy of the
memory, staying costs the steps of idle rows."""


@torch.no_grad()
def greedy(
    model: Seq2Seq[Any, Any], source_BS: Tensor, max_length_B: Tensor, *, eos: int, exponent: float
) -> list[Hypothesis]:
    """One hypothesis for each source row, in order.

    ``max_length_B`` (at least 1) counts end-of-sentence, which a hypothesis of that length is made to take as its last
    token. ``exponent`` is that of the length penalty, which here decides the score only.
    """
    memory = model.encode(source_BS)
    state = model.start(memory)
    device = source_BS.device
    tokens_BT = torch.full((len(source_BS), int(max_length_B.max())), eos, device=device)
    log_prob_B = torch.zeros(len(source_BS), device=device)
    row_N = torch.arange(len(source_BS), device=device)  # the sentence of each row still in the batch
    token_N = model.first_token(len(source_BS), device)
    at_work_N = torch.ones_like(row_N, dtype=torch.bool)
    for time in range(tokens_BT.shape[1]):
        step = model.step(token_N, memory, state)
        logits_NV, state = step.logits_NV.float(), step.state
        best_N, token_N = logits_NV.max(dim=1)
        is_last_N = max_length_B[row_N] == time + 1
        token_N = torch.where(is_last_N, eos, token_N)
        best_N = torch.where(is_last_N, logits_NV[:, eos], best_N)
        log_prob_B[row_N] += (best_N - logits_NV.logsumexp(dim=1)).masked_fill(~at_work_N, 0.0)
        tokens_BT[row_N, time] = token_N.masked_fill(~at_work_N, eos)
        at_work_N = at_work_N & (token_N != eos)
        share = at_work_N.float().mean().item()
        if share == 0.0:
            break
        if share < COMPACT_BELOW:
            kept_N = at_work_N.nonzero()[:, 0]
            memory, state = memory.select(kept_N), state.select(kept_N)
            row_N, token_N, at_work_N = row_N[kept_N], token_N[kept_N], at_work_N[kept_N]
    return [
        _hypothesis(tokens, log_prob, eos, exponent)
        for tokens, log_prob in zip(tokens_BT.tolist(), log_prob_B.tolist(), strict=True)
    ]


def _hypothesis(tokens: list[int], log_prob: float, eos: int, exponent: float) -> Hypothesis:
    tokens = tokens[: tokens.index(eos)]
    return Hypothesis(tuple(tokens), log_prob, log_prob / length_penalty(len(tokens) + 1, exponent))

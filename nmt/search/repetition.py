"""Words and phrases said twice in a row, which a model that is unsure of the next word likes too much.

A sentence whose translation repeats itself more than its source does is searched again with such repetitions ruled
out. The new translation is taken unless the first is more probable by a margin for each repeated token. So a loop
("Maaaaaa", "a gray gray sweater") ends and "very, very good" stays, while all other translations and all scores are
those of the search alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import final

import torch
from torch import Tensor

from nmt.search.config import SearchConfig
from nmt.search.hypothesis import Hypothesis
from nmt.search.scoring import ranking_of

LONGEST = 8
"""Tokens of the longest repeated sequence that is looked for."""


def repeated_tokens(tokens: Sequence[int]) -> int:
    """Counts the tokens that complete a sequence of at most ``LONGEST`` tokens which stands directly before it, too: 1
    in a b a b c, 2 in a a a."""
    ends = set[int]()
    for size in range(1, LONGEST + 1):
        equal = 0  # tokens in a row that are the one ``size`` tokens before them
        for end, (before, token) in enumerate(zip(tokens, tokens[size:], strict=False)):
            equal = equal + 1 if token == before else 0
            if equal >= size:
                ends.add(end + size)
    return len(ends)


def excess(hypothesis: Hypothesis, source: Sequence[int]) -> int:
    """Counts the repeated tokens that a hypothesis has more than its source."""
    count = repeated_tokens(hypothesis.tokens)
    return max(count - repeated_tokens(source), 0) if count else 0


def least_repetitive(
    both: Sequence[Sequence[Hypothesis]], source: Sequence[int], config: SearchConfig
) -> tuple[Hypothesis, ...]:
    """Ranks the hypotheses of two searches for a translation of ``source`` together, as many as the first found. The
    log-probability of each counts as smaller by the margin for each token that it repeats more often than the
    source."""
    margin, ranking = config.repetition_margin or 0.0, ranking_of(config)

    def rank(hypothesis: Hypothesis) -> float:
        return hypothesis.score - margin * excess(hypothesis, source) / ranking.penalty(len(hypothesis.tokens) + 1)

    different = {hypothesis.tokens: hypothesis for found in both for hypothesis in found}
    return tuple(sorted(different.values(), key=rank, reverse=True)[: len(both[0])])


@final
class NoRepetition:
    """Rules out each token that would complete a repeated sequence."""

    before = math.inf

    def __call__(self, logits_NV: Tensor, tokens_NT: Tensor) -> None:
        """See ``nmt.search.logits_processors.LogitsProcessor``."""
        time = tokens_NT.shape[1]
        for size in range(1, min(LONGEST, (time + 1) // 2) + 1):
            # if the last size - 1 tokens stand directly before as well, the token before those would complete them
            last_NS, before_NS = tokens_NT[:, time - size + 1 :], tokens_NT[:, time - 2 * size + 1 : time - size]
            token_N1 = tokens_NT[:, time - size, None]
            completes_N1 = (last_NS == before_NS).all(dim=1, keepdim=True)
            limit_N1 = logits_NV.new_full(token_N1.shape, torch.inf).masked_fill(completes_N1, -torch.inf)
            logits_NV.scatter_reduce_(1, token_N1, limit_N1, "amin")

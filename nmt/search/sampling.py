"""Translations drawn at random, token by token."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nmt.models.step_model import StepModel
from nmt.search.hypothesis import Hypothesis
from nmt.search.logits_processors import LogitsProcessors
from nmt.search.scoring import Ranking
from nmt.search.sequential import greedy_or_sample


@dataclass(frozen=True)
class Sampling:
    """Draws ``count`` hypotheses of each source row, independently of each other; see ``Search``.

    A draw is a function of ``seed``, its number and the sentence's tokens: it depends neither on the rest of the batch
    nor on ``count``.
    """

    eos: int
    ranking: Ranking
    count: int
    seed: int
    temperature: float = 1.0
    """Temperature of the distribution that tokens are drawn from, softmax(logits / temperature)."""
    top_k: int | None = None
    """Draw from the k most probable tokens only (Fan et al. 2018, "Hierarchical Neural Story Generation")."""
    top_p: float = 1.0
    """Draw from the fewest tokens whose total probability reaches this (Holtzman et al. 2020, "The Curious Case of
    Neural Text Degeneration")."""

    def __call__(
        self, model: StepModel[Any, Any], source_BS: Tensor, processors: LogitsProcessors
    ) -> list[tuple[Hypothesis, ...]]:
        """See ``Search``. The hypotheses are in the order of the draws."""
        uniform_NT = _uniform(source_BS, model.pad, self.count, max(processors.limits), self.seed)

        def pick(logits_NV: Tensor, time: int, row_N: Tensor) -> Tensor:
            logits_NV = truncated(logits_NV.float() / self.temperature, top_k=self.top_k, top_p=self.top_p)
            # in float64, so that the last token's sum is 1 for any vocabulary
            cumulative_NV = logits_NV.softmax(dim=1, dtype=torch.float64).cumsum(dim=1)
            target_N1 = uniform_NT[row_N, time, None] * cumulative_NV[:, -1:]
            # the first token whose sum is above, which never has probability 0
            return torch.searchsorted(cumulative_NV, target_N1, right=True)[:, 0].clamp(max=logits_NV.shape[1] - 1)

        return greedy_or_sample(
            model, source_BS, processors, pick=pick, count=self.count, eos=self.eos, ranking=self.ranking
        )


def truncated(logits_NV: Tensor, *, top_k: int | None = None, top_p: float = 1.0) -> Tensor:
    """Returns the logits with -inf for all but the ``top_k`` most probable tokens and, among these, all but the fewest
    whose total probability is at least ``top_p``. Tokens as probable as the last one that is kept are kept, too."""
    if top_k is not None and top_k < logits_NV.shape[1]:
        least_N1 = logits_NV.topk(top_k, dim=1).values[:, -1:]
        logits_NV = logits_NV.masked_fill(logits_NV < least_N1, -torch.inf)
    if top_p < 1.0:
        probability_NV = logits_NV.softmax(dim=1, dtype=torch.float64)
        sorted_NV = probability_NV.sort(dim=1, descending=True).values
        is_needed_NV = sorted_NV.cumsum(dim=1) - sorted_NV < top_p  # more probable tokens have less in total
        least_N1 = sorted_NV.gather(1, is_needed_NV.sum(dim=1, keepdim=True) - 1)
        logits_NV = logits_NV.masked_fill(probability_NV < least_N1, -torch.inf)
    return logits_NV


def _uniform(source_BS: Tensor, pad: int, count: int, steps: int, seed: int) -> Tensor:
    """Draws uniform numbers from [0, 1), (N, T), for ``count`` rows of each sentence."""
    rows = []
    for source_S in source_BS.cpu().numpy():
        sentence = np.ascontiguousarray(source_S[source_S != pad])
        key = int.from_bytes(hashlib.blake2b(sentence.tobytes(), digest_size=16).digest(), "big")
        rows += [np.random.Generator(np.random.Philox([seed, key, draw])).random(steps) for draw in range(count)]
    return torch.from_numpy(np.stack(rows)).to(source_BS.device)

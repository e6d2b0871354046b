"""Translates any number of sentences, in batches of like length."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from nmt.core.device import Compute
from nmt.data.batching import length_batches, pad
from nmt.data.vocabulary import EOS
from nmt.models.seq2seq import Seq2Seq
from nmt.search.beam import beam_search
from nmt.search.config import SearchConfig
from nmt.search.greedy import greedy
from nmt.search.hypothesis import Hypothesis
from nmt.search.scoring import max_lengths


@torch.inference_mode()
def decode(
    model: Seq2Seq[Any, Any],
    sources: Sequence[Sequence[int]],
    config: SearchConfig,
    compute: Compute,
    *,
    n_best: int = 1,
) -> list[tuple[Hypothesis, ...]]:
    """The best hypotheses of each source (token ids without end-of-sentence), in the order of the sources.

    Sentences are sorted by length and decoded in batches of at most ``config.batch_tokens`` source tokens; which
    others share its batch does not change a sentence's result. The model must be in eval mode.
    """
    assert not model.training
    found: list[tuple[Hypothesis, ...] | None] = [None] * len(sources)
    for rows in length_batches([len(source) + 1 for source in sources], config.batch_tokens):
        padded, length_B = pad([sources[row] for row in rows])
        source_BS = torch.from_numpy(padded).to(compute.device)
        max_length_B = max_lengths(torch.from_numpy(length_B), config.max_length_ratio).to(compute.device)
        with compute.autocast():
            best = _search(model, source_BS, max_length_B, config, n_best)
        for row, each in zip(rows, best, strict=True):
            found[row] = each
    return [each for each in found if each is not None]


def _search(
    model: Seq2Seq[Any, Any], source_BS: Tensor, max_length_B: Tensor, config: SearchConfig, n_best: int
) -> Sequence[tuple[Hypothesis, ...]]:
    exponent = config.length_penalty
    if config.beam == 1:
        return [(best,) for best in greedy(model, source_BS, max_length_B, eos=EOS, exponent=exponent)]
    return beam_search(model, source_BS, max_length_B, beam=config.beam, eos=EOS, exponent=exponent, n_best=n_best)

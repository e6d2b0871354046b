"""Soft alignments of given sentence pairs: the attention of a model that is made to produce the target.

Shapes: B sentences, H heads, T target tokens and S source tokens, both with end-of-sentence.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from nmt.core.device import Compute
from nmt.data.batching import length_batches, pad
from nmt.models.seq2seq import Seq2Seq


@torch.inference_mode()
def forced_weights(
    model: Seq2Seq[Any, Any],
    sources: Sequence[Sequence[int]],
    targets: Sequence[Sequence[int]],
    compute: Compute,
    *,
    batch_tokens: int,
) -> list[NDArray[np.float32]]:
    """For each pair of token ids (without end-of-sentence) its matrix weights_TS, in the order of the pairs.

    Row t is where the model looks to produce target token t; the last row and column are end-of-sentence's. Rows sum
    to 1. Heads are averaged. The model must be in eval mode.
    """
    assert not model.training
    lengths = [max(len(source), len(target)) + 1 for source, target in zip(sources, targets, strict=True)]
    found: list[NDArray[np.float32]] = [np.zeros((0, 0), np.float32)] * len(sources)
    for rows in length_batches(lengths, batch_tokens):
        source_BS, source_length_B = pad([sources[row] for row in rows])
        target_BT, target_length_B = pad([targets[row] for row in rows])
        with compute.autocast():
            memory = model.encode(torch.from_numpy(source_BS).to(compute.device))
            decoded = model.forced(torch.from_numpy(target_BT).to(compute.device), memory)
        weights_BTS = decoded.weights_BHTS.mean(dim=1).float().cpu().numpy()
        for place, row in enumerate(rows):
            found[row] = weights_BTS[place, : target_length_B[place], : source_length_B[place]].copy()
    return found

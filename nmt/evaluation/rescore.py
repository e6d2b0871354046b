"""The log-probability of each token of given translations, under teacher forcing.

Shapes: B pairs, T target tokens with end-of-sentence, N tokens of all pairs without padding.
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
def token_log_probs(
    model: Seq2Seq[Any, Any],
    sources: Sequence[Sequence[int]],
    targets: Sequence[Sequence[int]],
    compute: Compute,
    *,
    batch_tokens: int,
) -> list[NDArray[np.float32]]:
    """Computes log p of each target token given the preceding ones, for each pair of token ids (without
    end-of-sentence), in the order of the pairs: (T,) for each pair, as natural logarithms; the last one is that of
    end-of-sentence. The model must be in eval mode."""
    assert not model.training
    assert len(sources) == len(targets)
    log_p: dict[int, NDArray[np.float32]] = {}
    lengths = [max(len(source), len(target)) + 1 for source, target in zip(sources, targets, strict=True)]
    for rows in length_batches(lengths, batch_tokens):
        source_BS, _ = pad([sources[row] for row in rows])
        padded_BT, length_B = pad([targets[row] for row in rows])
        target_BT = torch.from_numpy(padded_BT).to(compute.device)
        with compute.autocast():
            memory = model.encode(torch.from_numpy(source_BS).to(compute.device))
            readout_BTR = model.teacher_forced(target_BT, memory).readout_BTR
            token_N = (target_BT != model.pad).flatten().nonzero()[:, 0]
            likelihood = model.output.likelihood(
                readout_BTR.flatten(0, 1).index_select(0, token_N), target_BT.flatten()[token_N]
            )
        log_p_N = likelihood.log_p_N.float().cpu().numpy()
        log_p |= zip(rows, np.split(log_p_N, np.cumsum(length_B)[:-1]), strict=True)
    return [log_p[row] for row in range(len(sources))]

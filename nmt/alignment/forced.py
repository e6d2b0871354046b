"""Soft alignments of given sentence pairs: the attention of a model under teacher forcing of the target.

Shapes: B sentences, H heads, T target tokens and S source tokens, both with end-of-sentence.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nmt.core.device import Compute
from nmt.core.errors import InputError
from nmt.data.batching import TokenIds, pair_batches
from nmt.models.names import matching
from nmt.models.seq2seq import Seq2Seq


@torch.inference_mode()
def forced_weights(
    model: Seq2Seq[Any, Any], sources: TokenIds, targets: TokenIds, compute: Compute, *, batch_tokens: int,
    heads: Sequence[str] = ("*",), shifted: bool = False,
) -> list[tuple[NDArray[np.float32], ...]]:  # fmt: skip
    """Computes the matrices weights_TS of each pair of token ids (without end-of-sentence), in the order of the pairs.
    There is one matrix for each pattern of ``heads``: the mean of the heads that match it (see ``chosen_heads``).

    Row t holds the attention that produces target token t or, if ``shifted``, the attention of the next step, which has
    read it (Chen et al. 2020, "Accurate Word Alignment Induction from Neural Machine Translation", section 3.1); the
    last row and column belong to end-of-sentence. Rows sum to 1. The model must have attention, and be in eval mode.
    """
    assert not model.training
    chosen = [chosen_heads(model, pattern) for pattern in heads]

    def attention(source_BS: Tensor, target_BT: Tensor) -> tuple[Tensor, ...]:
        if shifted:  # one more step, which has read the last token
            target_BT = torch.cat([target_BT, target_BT[:, -1:]], dim=1)
        with compute.autocast():
            weights_BHTS = model.teacher_forced(target_BT, model.encode(source_BS)).weights_BHTS
        if shifted:
            weights_BHTS = weights_BHTS[:, :, 1:]
        assert weights_BHTS.shape[1] == len(model.decoder.head_names) > 0, "a model without attention"
        return tuple(weights_BHTS[:, indices].mean(dim=1) for indices in chosen)

    return in_batches(attention, sources, targets, compute.device, batch_tokens=batch_tokens)


def chosen_heads(model: Seq2Seq[Any, Any], pattern: str) -> list[int]:
    """Returns the indices of the heads whose names match a shell pattern, such as ``layer3.*``. Raises InputError if no
    head matches."""
    try:
        return matching(model.decoder.head_names, pattern)
    except ValueError as error:
        raise InputError(f"alignment.heads: {error}") from None


def in_batches(
    weigh: Callable[[Tensor, Tensor], tuple[Tensor, ...]], sources: TokenIds, targets: TokenIds, device: torch.device,
    *, batch_tokens: int, with_end: bool = True,
) -> list[tuple[NDArray[np.float32], ...]]:  # fmt: skip
    """Computes the matrices weights_TS of each pair of token ids by ``weigh``, without padding.

    ``weigh`` takes ``source_BS, target_BT``, padded and with end-of-sentence, and returns tensors (B, T, S). If
    ``with_end`` is false, the last row and column are dropped.
    """
    end = 0 if with_end else 1
    matrices_B: list[tuple[NDArray[np.float32], ...]] = [()] * len(sources)
    for batch in pair_batches(sources, targets, batch_tokens):
        weights = weigh(torch.from_numpy(batch.source_BS).to(device), torch.from_numpy(batch.target_BT).to(device))
        matrices = [weights_BTS.float().cpu().numpy() for weights_BTS in weights]
        for index, row in enumerate(batch.pairs_B.tolist()):
            T, S = batch.target_length_B[index] - end, batch.source_length_B[index] - end
            matrices_B[row] = tuple(weights_BTS[index, :T, :S].copy() for weights_BTS in matrices)
    return matrices_B

"""What one batch contributes to the loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from nmt.data.batching import Batch
from nmt.layers.output import TokenLoss
from nmt.models.feed import Feed
from nmt.models.seq2seq import Seq2Seq


@dataclass(frozen=True)
class TensorBatch:
    """A batch on a device."""

    source_BS: Tensor
    target_BT: Tensor
    target_tokens: int

    @classmethod
    def of(cls, batch: Batch, device: torch.device) -> TensorBatch:
        """The numpy batch as tensors."""
        source_BS, target_BT = torch.from_numpy(batch.source_BS), torch.from_numpy(batch.target_BT)
        tokens = int(batch.target_length_B.sum())
        return cls(source_BS.to(device, non_blocking=True), target_BT.to(device, non_blocking=True), tokens)


def token_loss(model: Seq2Seq[Any, Any], batch: TensorBatch, feed: Feed, *, smoothing: float) -> TokenLoss:
    """The loss summed over the batch's target tokens, end-of-sentence included. Output layer and loss run once over
    all positions of all sentences, padding left out."""
    decoded = model.decode(batch.target_BT, model.encode(batch.source_BS), feed)
    place_N = (batch.target_BT != model.pad).flatten().nonzero()[:, 0]
    readout_NR = decoded.readout_BTR.flatten(0, 1).index_select(0, place_N)
    return model.output.loss(readout_NR, batch.target_BT.flatten()[place_N], smoothing=smoothing)

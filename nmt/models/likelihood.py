"""How probable a model finds given targets."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from nmt.layers.output import TokenLoss
from nmt.models.feed import Feed
from nmt.models.seq2seq import Seq2Seq


def token_loss(
    model: Seq2Seq[Any, Any], source_BS: Tensor, target_BT: Tensor, feed: Feed, *, smoothing: float = 0.0
) -> TokenLoss:
    """The loss summed over the target's tokens, end-of-sentence included. Output layer and loss run once over all
    positions of all sentences, padding left out."""
    decoded = model.decode(target_BT, model.encode(source_BS), feed)
    place_N = (target_BT != model.pad).flatten().nonzero()[:, 0]
    readout_NR = decoded.readout_BTR.flatten(0, 1).index_select(0, place_N)
    return model.output.loss(readout_NR, target_BT.flatten()[place_N], smoothing=smoothing)

"""Attention that is told where to look: Garg et al. 2019, "Jointly Learning to Align and Translate with Transformer
Models", equation 5; before them Chen et al. 2016, "Guided Alignment Training for Topic-Aware Neural Machine
Translation", section 3.2, and Mi et al. 2016, "Supervised Attentions for Neural Machine Translation".

Shapes as in ``seq2seq``; E links between target and source tokens, G of the heads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Guide:
    """Where some heads are to look.

    With A_ts the links' distribution over the source tokens, for each target token t that has links, and a_ts the mean
    of the heads' weights, the loss is the cross entropy - sum over s of A_ts log a_ts. What has no link has no loss.
    """

    heads: Sequence[int]
    """Their places in ``weights_BHTS``."""
    sentence_E: Tensor
    target_E: Tensor
    source_E: Tensor
    share_E: Tensor
    """A_ts at the links."""

    def loss(self, weights_BHTS: Tensor) -> Tensor:
        """Summed over the target tokens that have links. A weight of exactly 0 counts as the least that float32 holds
        with full precision, and has no gradient: a window or sparse weights must see a word to be told of it."""
        heads_G = torch.tensor(self.heads, device=weights_BHTS.device)
        sentence_E1, target_E1, source_E1 = (each[:, None] for each in (self.sentence_E, self.target_E, self.source_E))
        weights_EG = weights_BHTS[sentence_E1, heads_G, target_E1, source_E1]
        mean_E = weights_EG.mean(dim=1)
        return -(self.share_E * mean_E.clamp(min=torch.finfo(torch.float32).tiny).log()).sum()

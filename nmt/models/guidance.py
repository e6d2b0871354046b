"""Attention that is told where to look: Garg et al. 2019, "Jointly Learning to Align and Translate with Transformer
Models", equation 5; before them Chen et al. 2016, "Guided Alignment Training for Topic-Aware Neural Machine
Translation", and Mi et al. 2016, "Supervised Attentions for Neural Machine Translation". Garg et al. also have a second
pass in which the guided head sees the words to come; here one pass gives both losses.

Shapes as in ``seq2seq``; E links between target and source tokens, G of the heads.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

FLOOR = 1e-30
"""What a weight counts as that is less. Its loss has no gradient then; that of a weight of this size is 1e30, which
float32 can still hold with the scale that training in float16 gives to losses."""


@dataclass(frozen=True)
class Guide:
    """Where some heads are to look.

    With A_ts the links' distribution over the source tokens, for each target token t that has links, and a_ts the mean
    of the heads' weights, the loss is the cross entropy - sum over s of A_ts log a_ts. What has no link has no loss.
    """

    heads_G: Tensor
    """Their places in ``weights_BHTS``."""
    sentence_E: Tensor
    target_E: Tensor
    source_E: Tensor
    share_E: Tensor
    """A_ts at the links."""

    def loss(self, weights_BHTS: Tensor) -> Tensor:
        """Summed over the target tokens that have links. A weight below ``FLOOR`` has no gradient: a window or sparse
        weights must see a word to be told of it."""
        sentence_E1, target_E1, source_E1 = (each[:, None] for each in (self.sentence_E, self.target_E, self.source_E))
        weights_EG = weights_BHTS[sentence_E1, self.heads_G, target_E1, source_E1]
        return -(self.share_E * weights_EG.mean(dim=1).clamp(min=FLOOR).log()).sum()

"""Attention supervised by word alignments: Garg et al. 2019, "Jointly Learning to Align and Translate with Transformer
Models", equation 5; before them Chen et al. 2016, "Guided Alignment Training for Topic-Aware Neural Machine
Translation", and Mi et al. 2016, "Supervised Attentions for Neural Machine Translation". In Garg et al. the guided head
sees the words that follow, in a second pass; here one pass gives both losses.

Shapes as in ``seq2seq``; E links between target and source tokens, G of the heads.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from nmt.models.loss import Criterion, TargetTokens
from nmt.models.seq2seq import Decoded
from nmt.nn.output import OutputLayer, TokenLoss

FLOOR = 1e-30
"""Smallest weight that has a gradient; smaller weights are raised to it. The gradient of its logarithm is 1e30, which
float32 can still represent after the scaling of losses in float16 training."""


@dataclass(frozen=True)
class Guide:
    """Links of a batch that some heads learn from.

    Let A_ts be the distribution of links over the source tokens s, for each target token t that has links, and a_ts the
    mean of the heads' weights. The loss is the cross entropy - sum over s of A_ts log a_ts.
    """

    heads_G: Tensor
    """Indices of the heads in ``weights_BHTS``."""
    sentence_E: Tensor
    target_E: Tensor
    source_E: Tensor
    share_E: Tensor
    """A_ts at the links."""

    def loss(self, weights_BHTS: Tensor) -> Tensor:
        """Computes the sum of the loss over the target tokens that have links. A weight below ``FLOOR`` has no
        gradient, so a window or sparse weights learn nothing about words outside."""
        sentence_E1, target_E1, source_E1 = self.sentence_E[:, None], self.target_E[:, None], self.source_E[:, None]
        # the guided heads' weights at the links only: elsewhere A is 0
        weights_EG = weights_BHTS[sentence_E1, self.heads_G, target_E1, source_E1]
        # - sum of A log a, with the mean of the heads as a
        return -(self.share_E * weights_EG.mean(dim=1).clamp(min=FLOOR).log()).sum()


@dataclass(frozen=True)
class Guided(Criterion):
    """Another loss, and beside it that of a guide."""

    other: Criterion
    guide: Guide
    passes: int
    """Passes in the batch, over whose weights of attention the guide's loss is the mean: see ``nmt.models.r_drop``."""

    needs_weights = True

    def __call__(self, output: OutputLayer, decoded: Decoded, tokens: TargetTokens) -> TokenLoss:
        """See ``Criterion``."""
        loss = self.other(output, decoded, tokens)
        guidance = [self.guide.loss(weights_BHTS) for weights_BHTS in decoded.weights_BHTS.chunk(self.passes)]
        return replace(loss, guidance=torch.stack(guidance).mean())

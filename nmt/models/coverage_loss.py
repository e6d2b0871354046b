"""A loss for attending twice: See, Liu & Manning 2017, "Get To The Point: Summarization with Pointer-Generator
Networks", section 2.3. Shapes as in ``seq2seq``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch

from nmt.models.loss import Criterion, TargetTokens
from nmt.models.seq2seq import Decoded
from nmt.nn.output import OutputLayer, TokenLoss


@dataclass(frozen=True)
class CoverageLoss(Criterion):
    """Another loss L, and for each target token the weight that falls where attention has been before (equation 13):

        L + weight * sum over t and s of min(a_ts, c_ts),  c_ts = sum over the steps before t of a_s

    a is the mean of the weights of the heads that training returns, which are all or the guided ones. Any kind of
    attention learns from it; a score of ``coverage`` also sees c.
    """

    needs_weights = True

    other: Criterion
    weight: float
    passes: int
    """Passes in the batch, over which the penalty is the mean: see ``nmt.models.r_drop``."""

    def __call__(self, output: OutputLayer, decoded: Decoded, tokens: TargetTokens) -> TokenLoss:
        """See ``Criterion``."""
        loss, weights_BTS = self.other(output, decoded, tokens), decoded.weights_BHTS.mean(dim=1)
        # c_t: the weights of the steps before
        coverage_BTS = weights_BTS.cumsum(dim=1) - weights_BTS
        penalty_BT = torch.minimum(weights_BTS, coverage_BTS).sum(dim=-1).masked_fill(tokens.is_pad_BT, 0.0)
        return replace(loss, objective=loss.objective + self.weight / self.passes * penalty_BT.sum())

"""R-Drop: Liang et al. 2021, "R-Drop: Regularized Dropout for Neural Networks"."""

from __future__ import annotations

from dataclasses import dataclass

from nmt.models.loss import Criterion, TargetTokens
from nmt.models.seq2seq import Decoded
from nmt.nn.output import OutputLayer, TokenLoss


@dataclass(frozen=True)
class RDrop(Criterion):
    """Two passes over each sentence, under two draws of dropout, whose disagreement is part of the loss (equation 3):

        (L_1 + L_2 + alpha (KL(p_1 || p_2) + KL(p_2 || p_1)) / 2) / 2

    half the paper's, so that the loss keeps its size. Both passes are one batch: all sentences, then all of them again.
    """

    of_each: Criterion
    """L."""
    alpha: float

    def __call__(self, output: OutputLayer, decoded: Decoded, tokens: TargetTokens) -> TokenLoss:
        """See ``Criterion``."""
        # L_1 + L_2
        both = self.of_each(output, decoded, tokens)
        # (KL(p_1 || p_2) + KL(p_2 || p_1)) / 2
        divergence = output.divergence(*tokens.rows(decoded.readout_BTR).chunk(2))
        return TokenLoss(
            objective=0.5 * (both.objective + self.alpha * divergence),
            cross_entropy_N=both.cross_entropy_N.view(2, -1).mean(dim=0),
            correct=None if both.correct is None else both.correct // 2,
        )

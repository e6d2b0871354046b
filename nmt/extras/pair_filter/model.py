"""The classifier of sentence pairs: does a pair look like those of the corpus, or like wrong pairs of some kind?

It compares and aggregates as the decomposable attention model does (Parikh, Täckström, Das and Uszkoreit 2016, "A
Decomposable Attention Model for Natural Language Inference"; in parentheses the paper's equations), but what tokens
attend to each other is not learnt: a lexicon says how well each is explained by the other side (see `lexicon`). So it
has few parameters, none of which belongs to a token, and cannot learn pairs by heart. With x_i the features of the
source's tokens and y_j those of the target's:

    compare    v1 = G_1(x_1 ... x_S)      v2 = G_2(y_1 ... y_T)                             (3)
    aggregate  of each v the sum, the maximum and the mean over the tokens                  (4)
    z = H([both aggregates; sums and means of the features; lengths; 1 if both sides are the same])   (5)

The first layer of G is a convolution over the tokens, because a part that is cut off leaves a run of tokens without
explanation; the second is of each token. The lengths are log l_s, log l_t and log l_s / l_t. z are log-odds of the
kinds, up to a constant.

Shapes: B sentence pairs, S source and T target tokens, F features, W width of a hidden layer, K kinds.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

WINDOW = 5
"""Neighbouring tokens that the convolution sees."""


class PairClassifier(nn.Module):
    """The logits of the kinds of sentence pairs."""

    def __init__(self, features: int, kinds: int, width: int) -> None:
        super().__init__()
        self.windows = nn.ModuleList(nn.Conv1d(features + 1, width, WINDOW, padding=WINDOW // 2) for _ in range(2))
        self.tokens = nn.ModuleList(nn.Linear(width, width) for _ in range(2))
        inputs = 6 * width + 4 * (features + 1) + 4
        layers = (nn.Linear(inputs, 2 * width), nn.ReLU(), nn.Linear(2 * width, width), nn.ReLU())
        self.H = nn.Sequential(*layers, nn.Linear(width, kinds))

    def forward(self, source_BSF: Tensor, target_BTF: Tensor, pair_B3: Tensor) -> Tensor:
        """The logits (B, K) of pairs with these numbers of tokens, at least one on a side, and 1 where both sides are
        the same."""
        length_B2, is_same_B1 = pair_B3[:, :2], pair_B3[:, 2:]
        parts = []
        sides = (source_BSF, target_BTF)
        for window, token, x_BTF, length_B in zip(self.windows, self.tokens, sides, length_B2.T, strict=True):
            is_token_BT1 = (torch.arange(x_BTF.shape[1]) < length_B[:, None])[..., None]
            # Padding is zero; a further feature tells tokens from it.
            x_BTF = torch.cat([x_BTF, torch.ones_like(x_BTF[..., :1])], dim=-1) * is_token_BT1
            v_BTW = token(window(x_BTF.mT).relu().mT).relu() * is_token_BT1  # (3)
            total_BW = torch.cat([v_BTW, x_BTF], dim=-1).sum(dim=1)
            parts += [total_BW / 8, total_BW / length_B[:, None], v_BTW.amax(dim=1)]  # (4); no v is below 0
        log_B2 = length_B2.log()
        parts += [log_B2, log_B2[:, :1] - log_B2[:, 1:], is_same_B1]
        logit_BK: Tensor = self.H(torch.cat(parts, dim=-1))  # (5)
        return logit_BK

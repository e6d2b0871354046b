"""Classifier of sentence pairs: does a pair look like those of the corpus, or like wrong pairs of some kind?

It does not see the tokens themselves, so that it cannot memorise pairs, but how well each token is explained by the
other side (the features of a `Lexicon`). For either side, it sees the mean and the minimum of each feature over all
tokens, and the means over the first and the last third of them, because a part that is cut off leaves its counterpart
without an explanation. With facts about the lines, these are x, and log-odds of the kinds, up to a constant, are

    z = W_3 relu(W_2 relu(W_1 (x - mean) / deviation + b_1) + b_2) + b_3

Shapes: B sentence pairs, T tokens of a side, F features, X inputs of the classifier, K kinds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from nmt.data.words import is_punctuation
from nmt.extras.corpus.pair_filter.lexicon import FEATURES

INPUTS = 2 * 4 * FEATURES + 11
"""X, the number of inputs."""
LIMIT = 5.0
"""Number of deviations from the mean at which an input is clipped."""


class PairClassifier(nn.Module):
    """Computes the logits (B, K) of the kinds of sentence pairs from inputs (B, X)."""

    def __init__(self, mean_X: Tensor, deviation_X: Tensor, kinds: int, width: int) -> None:
        super().__init__()
        self.mean_X = nn.Parameter(mean_X.clone(), requires_grad=False)
        self.deviation_X = nn.Parameter(deviation_X.clamp(min=0.01), requires_grad=False)
        self.hidden = nn.Sequential(nn.Linear(INPUTS, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU())
        self.output = nn.Linear(width, kinds)

    def forward(self, x_BX: Tensor) -> Tensor:
        logit_BK: Tensor = self.output(self.hidden(((x_BX - self.mean_X) / self.deviation_X).clamp(-LIMIT, LIMIT)))
        return logit_BK


def summary(feature_BTF: Tensor, length_B: Tensor) -> Tensor:
    """Computes mean, minimum and the means of both ends of the features of a side, (B, 4 F); each side must have
    tokens."""
    place_T, length_B1 = torch.arange(feature_BTF.shape[1]), length_B[:, None]
    third_B1 = (length_B1 + 2) // 3
    is_token_BT = place_T < length_B1
    parts = [is_token_BT, place_T < third_B1, is_token_BT & (place_T >= length_B1 - third_B1)]
    means = [(part_BT[:, None].float() @ feature_BTF)[:, 0] / part_BT.sum(dim=1, keepdim=True) for part_BT in parts]
    return torch.cat([*means, feature_BTF.masked_fill(~is_token_BT[..., None], torch.inf).amin(dim=1)], dim=-1)


def line_facts(source: str, target: str) -> Sequence[float]:
    """Computes facts about a pair of lines that have words: for each line its length, and whether it begins and ends
    like a sentence; for both the ratio of their lengths, and whether they end in the same way and are equal."""
    source, target = source.strip(), target.strip()
    facts: list[float] = []
    for line in (source, target):
        facts += [line[0].isupper(), line[0].islower(), is_punctuation(line[-1]), math.log(len(line))]
    return [*map(float, facts), facts[3] - facts[7], float(source[-1] == target[-1]), float(source == target)]

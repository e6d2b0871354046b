"""Scheduled sampling: the decoder's input is the gold token or the model's own guess, at random.

Shapes: B sentences, V target vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, final

import torch
from torch import Tensor

from nmt.models.feed import DecoderInputPolicy, Feed, most_probable


@final
class ScheduledSampling(Feed):
    """Feeds the gold token with probability epsilon, else the model's guess (Bengio et al. 2015, section 2.4).

    A coin is tossed for each ``unit``: for every token, as in the paper, or once for a sentence, whose inputs are then
    all gold tokens or all guesses. A guess is the most probable token (``argmax``) or drawn from the model's
    distribution (``sample``); the paper allows both.

    Coins and draws come from the device's global generator, like those of dropout.
    """

    def __init__(
        self,
        gold_probability: float,
        *,
        unit: Literal["token", "sentence"] = "token",
        guess: Literal["argmax", "sample"] = "argmax",
    ) -> None:
        """``gold_probability`` is epsilon; raises ValueError if it is not from 0 to 1."""
        if not 0.0 <= gold_probability <= 1.0:
            raise ValueError(f"gold_probability {gold_probability} is not from 0 to 1")
        self.gold_probability = gold_probability
        self.unit = unit
        self.guess = guess

    def begin(self, rows: int, device: torch.device) -> DecoderInputPolicy:
        """Creates a policy that tosses at each step, or one that uses the tosses made here."""
        guess_by = most_probable if self.guess == "argmax" else drawn
        if self.unit == "token":
            return _TokenCoins(self.gold_probability, guess_by)
        return _SentenceCoins(_tosses(self.gold_probability, rows, device), guess_by)


@dataclass(frozen=True)
class _TokenCoins:
    gold_probability: float
    guess_by: Callable[[Tensor], Tensor]

    def next(self, gold_B: Tensor, logits_BV: Tensor) -> Tensor:
        is_gold_B = _tosses(self.gold_probability, len(gold_B), gold_B.device)
        return torch.where(is_gold_B, gold_B, self.guess_by(logits_BV))


@dataclass(frozen=True)
class _SentenceCoins:
    is_gold_B: Tensor
    guess_by: Callable[[Tensor], Tensor]

    def next(self, gold_B: Tensor, logits_BV: Tensor) -> Tensor:
        return torch.where(self.is_gold_B, gold_B, self.guess_by(logits_BV))


def _tosses(probability: float, rows: int, device: torch.device) -> Tensor:
    """Draws True with ``probability``. The result is always True at 1 and never at 0, because ``rand`` is below 1."""
    return torch.rand(rows, device=device) < probability


def drawn(logits_BV: Tensor) -> Tensor:
    """Draws from softmax(logits): the token at which the cumulative distribution passes a uniform variate.

    This draws one variate for a row instead of one for a token, which takes a tenth of the time of
    ``torch.multinomial``. Logits that are not finite raise no error here; the loss shows them.
    """
    cumulative_BV = logits_BV.detach().float().softmax(dim=-1).cumsum(dim=-1)
    total_B1 = cumulative_BV[:, -1:]  # 1, except for rounding
    drawn_B1 = torch.searchsorted(cumulative_BV, torch.rand_like(total_B1) * total_B1, right=True)
    return drawn_B1[:, 0].clamp(max=logits_BV.shape[1] - 1)

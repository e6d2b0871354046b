"""What the decoder reads as the last word: the gold one, its own guess, or now the one and now the other.

A ``Feed`` is a rule and holds nothing of a batch; for each batch it hands out a ``Chooser``, which keeps what was drawn
for the batch's sentences.

Shapes: B sentences, V target vocabulary. Tokens are int64.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol, final

import torch
from torch import Tensor


class Chooser(Protocol):
    """Chooses the inputs of one batch, a step at a time."""

    def next(self, gold_B: Tensor, logits_BV: Tensor) -> Tensor:
        """The tokens to feed next, given the gold tokens of this step and the model's logits for them. No gradient
        flows through the choice."""
        ...


class Feed(ABC):
    """The rule by which each step's input is chosen, but for the first: that is always begin-of-sentence."""

    @abstractmethod
    def begin(self, rows: int, device: torch.device) -> Chooser:
        """The chooser for a batch of ``rows`` sentences; draws what holds for a whole sentence."""


@final
class TeacherForcing(Feed):
    """Always the gold token (Williams & Zipser 1989); needs no guesses, so a model may run all steps at once."""

    def begin(self, rows: int, device: torch.device) -> TeacherForcing:
        """Itself, for it draws nothing."""
        return self

    def next(self, gold_B: Tensor, logits_BV: Tensor) -> Tensor:
        """The gold token."""
        return gold_B


@final
class FreeRunning(Feed):
    """Always the model's most probable token, as in translation."""

    def begin(self, rows: int, device: torch.device) -> FreeRunning:
        """Itself, for it draws nothing."""
        return self

    def next(self, gold_B: Tensor, logits_BV: Tensor) -> Tensor:
        """The guess."""
        return _most_probable(logits_BV)


@final
class ScheduledSampling(Feed):
    """The gold token with probability epsilon, else the model's guess (Bengio et al. 2015, section 2.4).

    Whether gold or guess is a coin. ``unit`` says what it is tossed for: ``token``, each sentence and step apart, as in
    the paper; ``sentence``, each sentence once, which then reads gold tokens throughout or guesses throughout. A guess
    is the most probable token (``argmax``) or drawn from the model's distribution (``sample``); the paper allows both.

    Coins and draws come from the device's global generator, as dropout's do.
    """

    def __init__(
        self,
        gold_probability: float,
        *,
        unit: Literal["token", "sentence"] = "token",
        guess: Literal["argmax", "sample"] = "argmax",
    ) -> None:
        """``gold_probability`` is epsilon, from 0 to 1; anything else is a ValueError."""
        if not 0.0 <= gold_probability <= 1.0:
            raise ValueError(f"gold_probability {gold_probability} is not from 0 to 1")
        self.gold_probability = gold_probability
        self.unit = unit
        self.guess = guess

    def begin(self, rows: int, device: torch.device) -> Chooser:
        """A chooser that tosses at each step, or one that goes by the tosses made here."""
        guess_by = _most_probable if self.guess == "argmax" else drawn
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
    """True with ``probability``; surely at 1 and never at 0, for ``rand`` is below 1."""
    return torch.rand(rows, device=device) < probability


def _most_probable(logits_BV: Tensor) -> Tensor:
    return logits_BV.argmax(dim=-1)


def drawn(logits_BV: Tensor) -> Tensor:
    """A draw from softmax(logits): where a uniform variate falls in the cumulative distribution. With one variate for a
    row instead of one for a token it takes a tenth of the time of ``torch.multinomial``; and it lets logits pass that
    are not finite, for the loss to be found so."""
    cumulative_BV = logits_BV.detach().float().softmax(dim=-1).cumsum(dim=-1)
    total_B1 = cumulative_BV[:, -1:]  # 1, but for rounding
    drawn_B1 = torch.searchsorted(cumulative_BV, torch.rand_like(total_B1) * total_B1, right=True)
    return drawn_B1[:, 0].clamp(max=logits_BV.shape[1] - 1)

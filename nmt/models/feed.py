"""What the decoder reads as the last word: the gold one, its own guess, or something between."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import final

from torch import Tensor


class Feed(ABC):
    """Chooses the next step's input."""

    @abstractmethod
    def next(self, gold_B: Tensor, logits_BV: Tensor) -> Tensor:
        """The token to feed next, given the gold token of this step and the model's logits for it."""


@final
class TeacherForcing(Feed):
    """Always the gold token (Williams & Zipser 1989); needs no guesses, so a model may run all steps at once."""

    def next(self, gold_B: Tensor, logits_BV: Tensor) -> Tensor:
        """The gold token."""
        return gold_B


@final
class FreeRunning(Feed):
    """Always the model's most probable token, as in translation."""

    def next(self, gold_B: Tensor, logits_BV: Tensor) -> Tensor:
        """The guess."""
        return logits_BV.argmax(dim=-1)

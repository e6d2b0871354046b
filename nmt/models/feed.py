"""Rules for the decoder's input in training: the preceding gold token, or the model's own guess. A mixture of both is
in ``nmt.models.scheduled_sampling``.

A ``Feed`` holds no data of a batch; for each batch it makes a ``DecoderInputPolicy``, which keeps the draws for the
sentences of the batch.

Shapes: B sentences, V target vocabulary. Tokens are int64.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Protocol, final

import torch
from torch import Tensor


class DecoderInputPolicy(Protocol):
    """Chooses the inputs for one batch, one step at a time."""

    def next(self, gold_B: Tensor, logits_BV: Tensor) -> Tensor:
        """Chooses the next inputs from the gold tokens of this step and the logits of the model for them; no gradient
        flows through the choice."""
        ...


class Feed(ABC):
    """A rule that chooses the input of each step except the first, which is always begin-of-sentence."""

    @abstractmethod
    def begin(self, rows: int, device: torch.device) -> DecoderInputPolicy:
        """Creates the policy for a batch of ``rows`` sentences, with the draws that hold for a whole sentence."""


@final
class TeacherForcing(Feed):
    """Feeds the gold token at every step (Williams & Zipser 1989), so that a model may run all steps at once."""

    def begin(self, rows: int, device: torch.device) -> TeacherForcing:
        """Returns itself: it draws nothing."""
        return self

    def next(self, gold_B: Tensor, logits_BV: Tensor) -> Tensor:
        """Returns the gold tokens."""
        return gold_B


@final
class FreeRunning(Feed):
    """Feeds the model's most probable token at every step, as in translation."""

    def begin(self, rows: int, device: torch.device) -> FreeRunning:
        """Returns itself: it draws nothing."""
        return self

    def next(self, gold_B: Tensor, logits_BV: Tensor) -> Tensor:
        """Returns the most probable tokens."""
        return most_probable(logits_BV)


def most_probable(logits_BV: Tensor) -> Tensor:
    """Finds the token with the largest logit of each row, (B,)."""
    return logits_BV.argmax(dim=-1)

"""Interface of searches, and their result."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from torch import Tensor

from nmt.models.step_model import StepModel
from nmt.search.logits_processors import LogitsProcessors

Phrase: TypeAlias = tuple[int, ...]
"""Tokens that a translation is to contain side by side; ``WORD_END`` may be the last."""

WORD_END = -2
"""Stands for the end of a word: before any token that may follow a word, or end-of-sentence."""

Constraint: TypeAlias = tuple[Phrase, ...]
"""Alternative phrases. A translation is to contain one of them."""


@dataclass(frozen=True)
class Hypothesis:
    """A finished translation."""

    tokens: tuple[int, ...]
    """The tokens, without begin- and end-of-sentence."""
    log_prob: float
    """Natural logarithm of its probability, end-of-sentence included."""
    score: float
    """See ``Ranking``."""


class Search(Protocol):
    """Looks for translations of a batch of sentences."""

    def __call__(
        self, model: StepModel[Any, Any], source_BS: Tensor, processors: LogitsProcessors
    ) -> list[tuple[Hypothesis, ...]]:
        """The hypotheses of each source row, best first."""

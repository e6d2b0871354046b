"""The interface of searches, and their result. This module does not import torch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

if TYPE_CHECKING:
    from torch import Tensor

    from nmt.models.step_model import StepModel
    from nmt.search.logits_processors import LogitsProcessors

Phrase: TypeAlias = tuple[int, ...]
"""Successive tokens that a translation must contain; ``WORD_END`` may be the last."""

WORD_END = -2
"""Token of a phrase that matches the end of a word: the next token is any that may follow a word, or
end-of-sentence."""

Constraint: TypeAlias = tuple[Phrase, ...]
"""Alternative phrases, of which a translation must contain one."""


@dataclass(frozen=True)
class Hypothesis:
    """A finished translation."""

    tokens: tuple[int, ...]
    """The tokens, without begin- and end-of-sentence."""
    log_prob: float
    """Natural logarithm of its probability, end-of-sentence included."""
    score: float
    """Score by which hypotheses are ranked; see ``Ranking``."""


Observer: TypeAlias = Callable[[list[list[int]]], object] | None
"""Function that is called after each step of a search, with the tokens of all hypotheses that may still be chosen."""


class Search(Protocol):
    """Searches for translations of a batch of sentences."""

    def __call__(
        self, model: StepModel[Any, Any], source_BS: Tensor, processors: LogitsProcessors
    ) -> list[tuple[Hypothesis, ...]]:
        """Finds the hypotheses of each source row, best first."""

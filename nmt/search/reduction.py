"""Interface of what restricts the sentences of a batch to some target tokens, such as a shortlist."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import torch
from torch import Tensor

from nmt.models.step_model import StepModel
from nmt.search.hypothesis import Constraint, Hypothesis


class ReducedBatch(Protocol):
    """A batch in which each sentence chooses among some tokens only, which have numbers of their own."""

    @property
    def model(self) -> StepModel[Any, Any]:
        """The model over these tokens."""

    @property
    def prefixes(self) -> Sequence[Sequence[int]] | None:
        """The prefixes of the batch in these tokens."""

    @property
    def phrases(self) -> tuple[tuple[Constraint, ...], ...] | None:
        """The constraints of the batch in these tokens."""

    def of_tokens(self, values_V: Tensor) -> Tensor:
        """Values of all tokens as those of the tokens of each row, (B, X)."""

    def restored(self, row: int, hypothesis: Hypothesis) -> Hypothesis:
        """A hypothesis of a row of the batch, in tokens of the whole vocabulary."""


class VocabularyReducer(Protocol):
    """Chooses the target tokens that the sentences of a batch may need."""

    def reduce(
        self,
        model: StepModel[Any, Any],
        sources: Sequence[Sequence[int]],
        prefixes: Sequence[Sequence[int]] | None,
        phrases: tuple[tuple[Constraint, ...], ...] | None,
        device: torch.device,
    ) -> ReducedBatch:
        """The batch reduced; prefixes and phrases stay possible."""

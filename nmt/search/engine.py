"""Engines that find translations: our own search over a model, or one that a model was exported to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from nmt.core.device import Compute
from nmt.models.step_model import StepModel
from nmt.search.config import SearchConfig
from nmt.search.constrained import Phrase
from nmt.search.decode import VocabularyReducer, decode
from nmt.search.hypothesis import Hypothesis


class Engine(Protocol):
    """Translates any number of sentences."""

    def translate_ids(
        self,
        sources: Sequence[Sequence[int]],
        config: SearchConfig,
        *,
        prefixes: Sequence[Sequence[int]] | None = None,
        constraints: Sequence[Sequence[Phrase]] | None = None,
        scored: bool = True,
    ) -> list[tuple[Hypothesis, ...]]:
        """See ``nmt.search.decode.decode``. Without ``scored``, an engine may return NaN for scores and
        log-probabilities."""


@dataclass(frozen=True)
class OwnEngine:
    """Our own search."""

    model: StepModel[Any, Any]
    compute: Compute
    shortlist: VocabularyReducer | None = None

    def translate_ids(
        self,
        sources: Sequence[Sequence[int]],
        config: SearchConfig,
        *,
        prefixes: Sequence[Sequence[int]] | None = None,
        constraints: Sequence[Sequence[Phrase]] | None = None,
        scored: bool = True,
    ) -> list[tuple[Hypothesis, ...]]:
        """See ``Engine``."""
        return decode(
            self.model,
            sources,
            config,
            self.compute,
            prefixes=prefixes,
            constraints=constraints,
            shortlist=self.shortlist,
            scored=scored,
        )

"""The interface of what estimates the confidence of translations, which a plug-in brings."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any, Protocol

from nmt.translator.loading import TrainedModel
from nmt.translator.translation import Translation


class TranslationConfidence(Protocol):
    """The confidence of a translation."""

    @property
    def right(self) -> float:
        """Probability that the translation is right."""

    @property
    def reasons(self) -> tuple[str, ...]:
        """Reasons to look at it."""

    def tree(self) -> dict[str, Any]:
        """Returns the values for JSON."""


class Estimator(Protocol):
    """Estimates the confidence of translations."""

    def with_confidence(
        self, trained: TrainedModel, sources: Sequence[str], ranked: Sequence[tuple[Translation, ...]]
    ) -> list[tuple[Translation, ...]]:
        """Adds the confidence to each translation of each source; a translation may be rejected."""

    def of_pairs(
        self, trained: TrainedModel, sources: Sequence[str], targets: Sequence[str], first_line: int = 1
    ) -> Sequence[TranslationConfidence | None]:
        """Estimates the confidence of given translations."""


def cells(translation: Translation) -> tuple[str, str]:
    """Formats the confidence of a translation and the reasons to look at it; both are blank if there is none."""
    confidence = translation.confidence
    return ("", "") if confidence is None else (f"{confidence.right:.4f}", "; ".join(confidence.reasons))


def with_cells(texts: Sequence[str], candidates: Sequence[Sequence[Translation]], format: str) -> list[str]:
    """Adds the confidence to each line: before the text of the best translation, or at the end of each line of tsv."""
    if format == "text":
        return [f"{cells(best)[0]}\t{text}" for (best, *_), text in zip(candidates, texts, strict=True)]
    if format == "tsv":
        return ["\t".join([text[:-1], *cells(one)]) + "\n" for one, text in zip(chain(*candidates), texts, strict=True)]
    return list(texts)

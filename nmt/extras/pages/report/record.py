"""The contents of a report about a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nmt.alignment.formats import Alignment
from nmt.data.report import Report
from nmt.evaluation.bootstrap import PairedComparison
from nmt.evaluation.by_length import LengthScores
from nmt.evaluation.translation import MetricScore
from nmt.extras.pages.report.attention import Looks
from nmt.translator.confidence import TranslationConfidence


@dataclass(frozen=True)
class ModelPart:
    """A part of a model."""

    name: str
    details: tuple[str, ...]
    """The sizes of the model, in words."""
    parameters: int | None
    """Number of parameters; None if there is no checkpoint in which they can be counted."""

    @property
    def counted(self) -> str:
        """The number in words; empty if it is not known."""
        return "" if self.parameters is None else f"{self.parameters:,} parameters"


@dataclass(frozen=True)
class TrainingCorpus:
    """The training corpus of a model."""

    report: Report
    source_lengths: NDArray[np.int64]
    """Numbers of sentences of 0, 1, 2, … subwords."""
    target_lengths: NDArray[np.int64]


@dataclass(frozen=True)
class Sample:
    """A pair of the validation set with the model's translation."""

    number: int
    """Number of the pair, from 1."""
    source: str
    reference: str
    translation: str
    alignment: Alignment
    """The alignment of source and translation, between words."""
    confidence: TranslationConfidence | None = None
    """Confidence of the translation; None if the run is not calibrated."""


@dataclass(frozen=True)
class ValidationTranslations:
    """The translation of a model's validation set."""

    sources: Sequence[str]
    references: Sequence[str]
    hypotheses: Sequence[str]
    scores: tuple[MetricScore, ...]
    lengths: tuple[LengthScores, ...]
    looks: Looks | None
    """Figures of attention; None if the model has no attention."""
    samples: tuple[Sample, ...]
    against_first: PairedComparison | None = None
    """Comparison of BLEU of the first run and this one; None for the first run, and if references differ."""


@dataclass(frozen=True)
class Snapshots:
    """The attention of a model to some pairs of the validation set at each validation."""

    updates: tuple[int, ...]
    pairs: tuple[tuple[Alignment, ...], ...]
    """The alignments of each pair between subwords, one for each update."""
    looks: tuple[Looks, ...]
    """Entropies and coverages of all pairs, for each update."""


@dataclass(frozen=True)
class Origin:
    """Origin of a run and of the report on it."""

    details: Mapping[str, str]
    """Facts about the run, by their names."""
    config: str
    """The resolved configuration."""
    search: str
    """The search that translates the validation set, in words."""
    links: str
    """The rule that extracts links from weights, in a sentence."""
    smoothing: float
    """Label smoothing of the training loss."""


@dataclass(frozen=True)
class Run:
    """A run. Information that is not available is None or empty, and a note gives the reason."""

    name: str
    facts: Mapping[str, str]
    """Facts about the run, by their names."""
    metrics: tuple[Mapping[str, Any], ...]
    """The lines of metrics.jsonl."""
    parts: tuple[ModelPart, ...]
    corpus: TrainingCorpus | None
    translated: ValidationTranslations | None
    snapshots: Snapshots | None
    notes: tuple[str, ...]
    origin: Origin

"""The contents of a report about a run, among them the entropy and coverage of its model's attention.

    entropy   H_t = -sum_s w_ts log2 w_ts, in bits: 0 where one source subword has all the weight
    coverage  C_s =  sum_t w_ts: the weight of a source subword in all steps together (Tu et al. 2016, "Modeling
              Coverage for Neural Machine Translation", whose models keep it at 1 or so)

Shapes: T target and S source subwords, both with end-of-sentence.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nmt.alignment.formats import Alignment
from nmt.data.report import Report
from nmt.evaluation.bootstrap import PairedComparison
from nmt.evaluation.by_length import LengthScores
from nmt.evaluation.translation import MetricScore
from nmt.translator.confidence import TranslationConfidence

LITTLE, MUCH = 0.2, 2.0
"""Coverage below which a source subword counts as left out, and above which as attended to twice."""


@dataclass(frozen=True)
class Looks:
    """Entropies and coverages of all subwords of some pairs."""

    entropies: NDArray[np.float64]
    """One for each target subword, in bits."""
    coverages: NDArray[np.float64]
    """One for each source subword, without end-of-sentence."""

    @property
    def entropy(self) -> float:
        """Mean entropy, in bits."""
        return _mean(self.entropies)

    @property
    def left_out(self) -> float:
        """Share of the source subwords with a coverage below `LITTLE`."""
        return _mean(self.coverages < LITTLE)

    @property
    def repeated(self) -> float:
        """Share of the source subwords with a coverage above `MUCH`."""
        return _mean(self.coverages > MUCH)


def looks(matrices: Sequence[ArrayLike]) -> Looks:
    """Computes entropies and coverages from the matrices weights_TS of some pairs, whose last column is
    end-of-sentence."""
    weights = [np.asarray(matrix, dtype=np.float64) for matrix in matrices]
    coverages = [weights_TS.sum(axis=0)[:-1] for weights_TS in weights]
    return Looks(np.concatenate([np.zeros(0), *map(entropy, weights)]), np.concatenate([np.zeros(0), *coverages]))


def entropy(weights_TS: NDArray[np.float64]) -> NDArray[np.float64]:
    """Computes the entropy of each row, in bits; 0 log 0 is 0."""
    logs_TS = np.log2(weights_TS, out=np.zeros_like(weights_TS), where=weights_TS > 0)
    entropies_T: NDArray[np.float64] = np.maximum(-(weights_TS * logs_TS).sum(axis=1), 0.0)
    return entropies_T


def _mean(values: NDArray[np.float64] | NDArray[np.bool_]) -> float:
    return float(values.mean()) if values.size else 0.0


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

"""What a report tells of a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nmt.alignment.formats import Alignment
from nmt.data.report import Report
from nmt.evaluation.bootstrap import PairedComparison
from nmt.evaluation.by_length import LengthScores
from nmt.evaluation.translation import Score
from nmt.extras.inspect.report.attention import Looks


@dataclass(frozen=True)
class Part:
    """A part of a model."""

    name: str
    details: tuple[str, ...]
    """Its sizes, in words."""
    parameters: int | None
    """None where there is no checkpoint to count them in."""


@dataclass(frozen=True)
class Corpus:
    """What a model was trained on."""

    report: Report
    source_lengths: NDArray[np.int64]
    """How many sentences have 0, 1, 2, … subwords."""
    target_lengths: NDArray[np.int64]


@dataclass(frozen=True)
class Sample:
    """A pair of the validation set with the model's translation."""

    number: int
    """Of the pair, from 1."""
    source: str
    reference: str
    translation: str
    alignment: Alignment
    """Of source and translation, between words."""


@dataclass(frozen=True)
class Translated:
    """What a model makes of its validation set."""

    sentences: int
    scores: tuple[Score, ...]
    lengths: tuple[LengthScores, ...]
    looks: Looks | None
    """None where the model has no attention."""
    samples: tuple[Sample, ...]
    against_first: PairedComparison | None
    """BLEU of the first run against this one; None for the first, and where references differ."""


@dataclass(frozen=True)
class Snapshots:
    """How the model has attended to some pairs of the validation set at each validation."""

    updates: tuple[int, ...]
    pairs: tuple[tuple[Alignment, ...], ...]
    """Of each pair its alignment between subwords at each update."""
    looks: tuple[Looks, ...]
    """Of all of them at each update."""


@dataclass(frozen=True)
class Run:
    """A run. What could not be had is None or empty, and a note says why."""

    name: str
    facts: Mapping[str, str]
    """What it is, by the name of each fact."""
    metrics: tuple[Mapping[str, Any], ...]
    """The lines of metrics.jsonl."""
    parts: tuple[Part, ...]
    corpus: Corpus | None
    translated: Translated | None
    snapshots: Snapshots | None
    notes: tuple[str, ...]

"""Results of validations: the figures of one, and the best of all so far."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

HIGHER_IS_BETTER = ("accuracy", "bleu", "chrf")
"""Metrics of a validation for which higher is better; for all others lower is better."""


def deciding_metric(figures: Mapping[str, Any], metric: str) -> str:
    """Returns the metric by which a validation is compared: ``metric``, or chrF if ``metric`` is BLEU and is 0, as it
    always is for lines of fewer than four words, so that it cannot tell two such validations apart."""
    return "chrf" if metric == "bleu" and figures.get("bleu") == 0.0 and "chrf" in figures else metric


def rank(figures: Mapping[str, Any], metric: str) -> tuple[float, float, float]:
    """Computes a key by which validations are compared, the greatest for the best: the metric, then
    ``deciding_metric``, then the loss. A missing figure, as in old runs, is worse than any other."""

    def value(name: str) -> float:
        figure = figures.get(name)
        return -math.inf if figure is None else figure if name in HIGHER_IS_BETTER else -figure

    return value(metric), value(deciding_metric(figures, metric)), value("loss")


@dataclass(frozen=True)
class Validated:
    """A validation, and the position of training."""

    update: int
    epoch: int
    minutes: float
    """Minutes of training."""
    figures: Mapping[str, float]
    is_best: bool
    """True if no earlier validation was better."""


@dataclass(frozen=True)
class BestValidation:
    """The best of the validations so far, and counts of the later ones."""

    best: float | None = None
    best_update: int = 0
    without_gain: int = 0
    """Number of validations without gain since the last gain."""
    plateaus: int = 0
    since_plateau: int = 0
    """Number of validations without gain since the last plateau was counted."""
    figures: Mapping[str, float] = field(default_factory=dict)
    """All figures of the best validation; only ``best`` if an older release wrote the state."""

    def tie_break(self, figures: Mapping[str, float], metric: str) -> str | None:
        """Returns the metric that decides between a validation and the best one if both are equal in ``metric``; else
        None."""
        now, best = rank(figures, metric), rank(self.figures, metric)
        return None if now[0] != best[0] else "loss" if now[1] == best[1] else deciding_metric(figures, metric)

    def after(self, figures: Mapping[str, float], update: int, *, metric: str, patience: int | None) -> BestValidation:
        """Returns the best after one more validation; ``patience`` validations in a row without gain are a plateau. A
        validation that is better by the loss alone becomes the best, but counts neither as a gain nor as one without
        gain."""
        now, best = rank(figures, metric), rank(self.figures, metric)
        if now > best:
            zeros = {"without_gain": 0, "since_plateau": 0} if now[:2] > best[:2] else {}
            return dataclasses.replace(self, best=figures[metric], best_update=update, figures=dict(figures), **zeros)
        waited = self.since_plateau + 1
        reached = patience is not None and waited >= patience
        return dataclasses.replace(
            self,
            without_gain=self.without_gain + 1,
            plateaus=self.plateaus + reached,
            since_plateau=0 if reached else waited,
        )


def line(validated: Validated) -> str:
    """Formats a validation on one line."""
    best = " (best)" if validated.is_best else ""
    where = f"update {validated.update}, epoch {validated.epoch}, {validated.minutes:.1f} min"
    return f"{where}: valid {shown(validated.figures)}{best}"


def shown(figures: Mapping[str, float]) -> str:
    """Formats figures with their names."""
    return ", ".join(f"{name} {value:.2f}" for name, value in figures.items())

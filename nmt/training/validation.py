"""Results of validations: the figures of one, and the best of all so far."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Validated:
    """A validation, and the position of training."""

    update: int
    epoch: int
    minutes: float
    """Minutes of training."""
    figures: Mapping[str, float]
    is_best: bool
    """True where none before was better."""


@dataclass(frozen=True)
class BestValidation:
    """The best of the validations so far, and those since."""

    best: float | None = None
    best_update: int = 0
    without_gain: int = 0
    """Validations since the best."""
    plateaus: int = 0
    since_plateau: int = 0
    """Validations without gain since the last plateau was counted."""

    def after(self, value: float, update: int, *, higher_is_better: bool, patience: int | None) -> BestValidation:
        """The best after one more validation; ``patience`` validations in a row without gain are a plateau."""
        gain = self.best is None or (value > self.best if higher_is_better else value < self.best)
        if gain:
            return dataclasses.replace(self, best=value, best_update=update, without_gain=0, since_plateau=0)
        waited = self.since_plateau + 1
        reached = patience is not None and waited >= patience
        return dataclasses.replace(
            self,
            without_gain=self.without_gain + 1,
            plateaus=self.plateaus + reached,
            since_plateau=0 if reached else waited,
        )


def line(validated: Validated) -> str:
    """A validation on one line."""
    best = " (best)" if validated.is_best else ""
    where = f"update {validated.update}, epoch {validated.epoch}, {validated.minutes:.1f} min"
    return f"{where}: valid {shown(validated.figures)}{best}"


def shown(figures: Mapping[str, float]) -> str:
    """Figures with their names."""
    return ", ".join(f"{name} {value:.2f}" for name, value in figures.items())

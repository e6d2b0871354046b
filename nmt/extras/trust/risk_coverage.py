"""Quality against the share of translations that is accepted, and the error of the confidence.

El-Yaniv and Wiener 2010, "On the Foundations of Noise-free Selective Classification". The calibration error is the mean
difference between confidence and share of right translations over ten groups of equal size (Naeini et al. 2015,
"Obtaining Well Calibrated Probabilities Using Bayesian Binning").

Shapes: N translations, sorted by descending confidence.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nmt.core.errors import InputError
from nmt.extras.trust.calibrate import RIGHT, sentence_chrf
from nmt.extras.trust.logistic import Floats
from nmt.translator.translation import Translation

GROUPS = 10


@dataclass(frozen=True)
class Accepted:
    """The translations of at least some confidence."""

    share: float
    """Of all translations."""
    confidence: float
    """The least of them."""
    chrf: float
    """Mean chrF of the sentences."""
    right: float
    """Share of right translations."""


@dataclass(frozen=True)
class RiskCoverage:
    """The figures of a corpus."""

    accepted: tuple[Accepted, ...]
    calibration_error: float

    def lines(self) -> list[str]:
        """Formats a table, with a bar for each mean chrF."""
        rows = [
            f"{each.share:>7.0%} {each.confidence:>11.3f} {each.chrf:>6.1f} {each.right:>6.0%}  "
            + "#" * round(each.chrf / 2)
            for each in self.accepted
        ]
        error = f"calibration error: {100 * self.calibration_error:.1f} %"
        return ["accepted confidence   chrF  right", *rows, error]

    def tree(self) -> dict[str, Any]:
        """Returns the figures for JSON."""
        return asdict(self)


def risk_coverage(translations: Sequence[Translation], references: Sequence[str]) -> RiskCoverage:
    """Computes the figures of the translations that have a confidence. Raises InputError if none has."""
    pairs = zip(translations, references, strict=True)
    known = [(one.confidence.right, one.text, text) for one, text in pairs if one.confidence is not None]
    if not known:
        raise InputError("--risk-coverage: no translation has a confidence, as no line of the source has letters")
    p, texts, references = zip(*sorted(known, key=lambda each: -each[0]), strict=True)
    p_N, chrf_N = np.array(p), np.array(sentence_chrf(texts, references))
    is_right_N = chrf_N >= RIGHT
    ends = sorted({-(-len(p) * group // GROUPS) for group in range(1, GROUPS + 1)})
    accepted = tuple(
        Accepted(end / len(p), float(p_N[end - 1]), float(chrf_N[:end].mean()), float(is_right_N[:end].mean()))
        for end in ends
    )
    return RiskCoverage(accepted, calibration_error(p_N, is_right_N))


def calibration_error(p_N: Floats, is_right_N: NDArray[np.bool_]) -> float:
    """Computes the expected calibration error."""
    order = np.argsort(p_N)
    groups = np.array_split(order, min(GROUPS, len(order)))
    differences = [len(rows) * abs(p_N[rows].mean() - is_right_N[rows].mean()) for rows in groups]
    return float(sum(differences) / len(p_N))

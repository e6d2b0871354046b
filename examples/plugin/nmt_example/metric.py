"""A metric: the share of translations that are equal to their reference."""

from __future__ import annotations

from collections.abc import Sequence

from nmt.evaluation.translation import MetricScore


def exact(hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> MetricScore:
    """Percentage of hypotheses that are equal to one of their references, each set of which has a line for each."""
    equal = [line in lines for line, *lines in zip(hypotheses, *references, strict=True)]
    return MetricScore("exact", 100 * sum(equal) / len(equal), "version:1.0")

"""Charts of a report: conversion of figures to lines, without the drawing."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nmt.extras.pages.report.record import Run

MOST_POINTS = 1000
"""Maximum number of points of a line; for a longer line every second, third … point is drawn, and the last one."""

_WIDTH_OF_BARS = 0.25
"""Widths of the bars of the histograms of entropy and coverage, in bits and in subwords."""


@dataclass(frozen=True)
class ChartLine:
    """A line of a chart."""

    run: int
    """Index of the run that the line belongs to."""
    name: str
    """Name of the line in the legend, beside that of its run."""
    x: tuple[float, ...]
    y: tuple[float, ...]
    kind: int = 0
    """Index of its figure among those of the chart."""
    single: bool = False
    """If True, the line is a single point, as for an average."""


@dataclass(frozen=True)
class Chart:
    """Lines over one axis."""

    key: str
    """Name of the chart in file names and in the page."""
    title: str
    x_label: str
    y_label: str
    lines: tuple[ChartLine, ...] = ()
    x_end: float | None = None
    """End of the x axis, which begins at 0, so that charts can be compared; None means that the axis fits the lines."""
    log: bool = False
    """If True, the values have a logarithmic axis."""
    steps: bool = False
    """If True, the chart is a histogram: a value for each step to the left and the right of x."""

    def look(self, line: ChartLine) -> tuple[int, int]:
        """Chooses the numbers of the colour and of the dashes of a line. Runs differ by colour and figures by dashes;
        if there is only one run or one figure, lines differ by both."""
        has_runs = line.run > 0 or len({each.run for each in self.lines}) > 1
        has_kinds = len({each.kind for each in self.lines}) > 1
        return line.run if has_runs else line.kind, line.kind if has_kinds else line.run


def _of_both(figure: str) -> tuple[tuple[str, str, str], ...]:
    return ("train", figure, "training"), ("valid", figure, "validation")


_SCORES = (("valid", "bleu", "BLEU"), ("valid", "chrf", "chrF"), ("average", "bleu", "BLEU, averaged"))

_CURVES = (
    (Chart("loss", "Loss", "update", "nats per target subword"), _of_both("loss")),
    (Chart("perplexity", "Perplexity", "update", "per target subword", log=True), _of_both("perplexity")),
    (Chart("quality", "Translation of the validation set", "update", "BLEU and chrF"), _SCORES),
    (Chart("accuracy", "Validation accuracy", "update", "% of target subwords"), (("valid", "accuracy", "accuracy"),)),
    (Chart("learning_rate", "Learning rate", "update", ""), (("train", "learning_rate", "learning rate"),)),
    (
        Chart("gradient_norm", "Gradient norm", "update", "before clipping", log=True),
        (("train", "gradient_norm", "norm"),),
    ),
    (Chart("speed", "Speed", "update", "target subwords per second"), (("train", "tokens_per_second", "speed"),)),
)
"""Charts without their lines, with the kind of line in metrics.jsonl, the figure and its name for each line."""


def training_charts(runs: Sequence[Run]) -> list[Chart]:
    """Draws the figures of metrics.jsonl over updates, with a chart for each figure that at least one run has."""
    found = []
    end = _last_update(runs)
    for chart, figures in _CURVES:
        lines = []
        for place, run in enumerate(runs):
            for number, (kind, figure, name) in enumerate(figures):
                x, y = points(run.metrics, kind, figure, positive=chart.log)
                if (kind, figure) == ("train", "loss") and run.origin.smoothing:
                    name = f"training, with label smoothing {run.origin.smoothing:g}"
                if x:
                    lines.append(ChartLine(place, name, x, y, kind=number, single=kind == "average"))
        if lines:
            found.append(replace(chart, lines=tuple(lines), x_end=end))
    return found


def _last_update(runs: Sequence[Run]) -> float:
    return float(max((line["update"] for run in runs for line in run.metrics), default=0))


def points(
    metrics: Sequence[Mapping[str, Any]], kind: str, figure: str, *, positive: bool = False
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Returns updates and values of one figure, without values that are not finite, or not above 0 if they must be
    ``positive``."""
    found = [
        (float(line["update"]), float(line[figure]))
        for line in metrics
        if line["kind"] == kind and isinstance(line.get(figure), (int, float)) and math.isfinite(line[figure])
        if not positive or line[figure] > 0
    ]
    every = math.ceil(len(found) / MOST_POINTS) or 1
    kept = found[::-every][::-1]  # including the last one
    return tuple(x for x, _ in kept), tuple(y for _, y in kept)


def length_charts(runs: Sequence[Run]) -> list[Chart]:
    """Draws the lengths of the training sentences. The longest one per cent are left out, because they would hide the
    others."""
    lines = []
    for place, run in enumerate(runs):
        if run.corpus is not None:
            sides = (("source", run.corpus.source_lengths), ("target", run.corpus.target_lengths))
            for number, (name, counts) in enumerate(sides):
                last = int(np.searchsorted(np.cumsum(counts), 0.99 * counts.sum())) + 1
                share = 100 * counts[:last] / max(counts.sum(), 1)
                lines.append(ChartLine(place, name, tuple(map(float, range(last))), tuple(share.tolist()), number))
    title = "Sentence lengths"
    return [Chart("lengths", title, "subwords", "% of the sentences", tuple(lines), steps=True)] if lines else []


def look_charts(runs: Sequence[Run]) -> list[Chart]:
    """Draws histograms of the entropy of attention and of its coverage."""
    found = [(place, run.translated.looks) for place, run in enumerate(runs) if run.translated and run.translated.looks]
    if not found:
        return []
    entropy = [ChartLine(place, "entropy", *_histogram(looks.entropies)) for place, looks in found]
    coverage = [ChartLine(place, "coverage", *_histogram(looks.coverages)) for place, looks in found]
    return [
        Chart("entropy", "Entropy of attention", "bits", "% of target subwords", tuple(entropy), steps=True),
        Chart("coverage", "Coverage", "attention that it gets", "% of source subwords", tuple(coverage), steps=True),
    ]


def snapshot_charts(runs: Sequence[Run]) -> list[Chart]:
    """Draws the changes of entropy and coverage of attention over training, on the pairs of the snapshots."""
    found = [(place, run.snapshots.updates, run.snapshots.looks) for place, run in enumerate(runs) if run.snapshots]
    if not found:
        return []
    entropy = [ChartLine(place, "entropy", x, tuple(each.entropy for each in looks)) for place, x, looks in found]
    left_out = [
        ChartLine(place, "left out", x, tuple(100 * each.left_out for each in looks)) for place, x, looks in found
    ]
    end, share = _last_update(runs), "% of source subwords"
    return [
        Chart("entropy_over_training", "Entropy over training", "update", "bits, mean", tuple(entropy), end),
        Chart("coverage_over_training", "Left out over training", "update", share, tuple(left_out), end),
    ]


def _histogram(values: NDArray[np.float64]) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Computes the middles of bars and the per cent of the values in each; the last bar has all values above the 99.9th
    percentile."""
    top = math.ceil((np.percentile(values, 99.9) if values.size else 1.0) / _WIDTH_OF_BARS + 1e-9)
    bars = np.minimum((values / _WIDTH_OF_BARS).astype(np.int64), max(top, 1) - 1)
    share = 100 * np.bincount(bars, minlength=max(top, 1)) / max(values.size, 1)
    return tuple(((np.arange(len(share)) + 0.5) * _WIDTH_OF_BARS).tolist()), tuple(share.tolist())

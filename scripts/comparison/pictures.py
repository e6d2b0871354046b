"""The report's pictures: quality against speed, training curves, soft alignments side by side, BLEU by length."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from comparison.report import Picture
from comparison.results import Result, soft_alignments
from comparison.work import Comparison
from nmt.alignment.error_rate import Gold
from nmt.alignment.formats import Alignment, read_gold, read_jsonl
from nmt.extras.inspect.score_plot import plot_by_length

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_COLOURS = {
    "baseline": "#000000",
    "context": "#d55e00",
    "scores": "#0072b2",
    "weights": "#009e73",
    "feeding": "#cc79a7",
    "cells": "#b8860b",
}
"""Of groups; told apart by the colour-blind as well (Okabe & Ito 2008)."""

_LINE_COLOURS = (
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#b8860b", "#56b4e9", "#7a3e00", "#5f3dc4", "#e69f00", "#495057",
)  # fmt: skip
"""Of systems within a group."""

_COLUMNS = 5
_MOST_WORDS = 12
"""On either side of a sentence that is shown; a longer one cannot be read at that size."""


def draw(comparison: Comparison, results: Sequence[Result]) -> list[Picture]:
    """All pictures, into the comparison's folder."""
    folder = comparison.folder
    drawn = [draw_lengths(results, folder), draw_speed(results, folder), draw_curves(results, folder)]
    if comparison.gold is not None:
        gold = read_gold(Path(comparison.gold[2]))
        alignments = {}
        for each in results:
            found = soft_alignments(comparison.case(each.system, each.seeds[0]))
            if found is not None:
                method, file = found
                name = each.system.name if method == "attention" else f"{each.system.name} ({method})"
                alignments[name] = list(read_jsonl(file))
        drawn += draw_alignments(alignments, gold, folder)
    return drawn


def draw_lengths(results: Sequence[Result], folder: Path) -> Picture:
    """BLEU by source length: the baseline and the systems without attention, or all where there are none of those."""
    shown = [each for each in results if each.is_baseline or each.system.group == "context"]
    if len(shown) < 2:
        shown = list(results)
    series = {"with attention" if each.is_baseline else each.system.name: each.lengths for each in shown}
    plot_by_length(series, folder / "lengths.png")
    caption = "BLEU by the length of the source, with 95 % intervals, and how many sentences there are."
    return Picture("lengths.png", "BLEU by length", caption)


def draw_speed(results: Sequence[Result], folder: Path) -> Picture:
    """BLEU against training speed, a point for each system."""
    from matplotlib.ticker import LogLocator, NullLocator

    with _figure(8, 6.5) as figure:
        axes = figure.add_subplot()
        for group, members in _groups(results):
            for each in members:
                x, bleu = each.speed.tokens_per_second, each.bleu_estimate
                error = [[bleu.value - bleu.low], [bleu.high - bleu.value]]
                axes.errorbar(x, bleu.value, yerr=error, color=_COLOURS[group], fmt="o", markersize=5, linewidth=0.7)
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(LogLocator(subs=(1, 1.5, 2, 3, 5, 7)))
        axes.xaxis.set_major_formatter(_plain)
        axes.xaxis.set_minor_locator(NullLocator())
        axes.set_xlabel("training speed, target tokens for each CPU second")
        axes.set_ylabel("BLEU, with 95 % interval")
        _legend(axes, results)
        _label_points(axes, results)
        figure.savefig(folder / "speed.png", dpi=110, bbox_inches="tight")
    return Picture("speed.png", "Quality and speed", "BLEU against training speed, all with the same budget.")


def draw_curves(results: Sequence[Result], folder: Path) -> Picture:
    """Perplexity in training against CPU time, a panel for each group with the baseline in each."""
    groups = [(group, members) for group, members in _groups(results) if group != "baseline"]
    baseline = [each for each in results if each.is_baseline]
    if not groups:
        groups = [("baseline", [])]
    columns = min(3, len(groups))
    rows = math.ceil(len(groups) / columns)
    with _figure(3.1 * columns + 1.2, 2.7 * rows + 0.4) as figure:
        panels = figure.subplots(rows, columns, sharey=True, sharex=True, squeeze=False)
        flat = panels.ravel()
        for axes, (group, members) in zip(flat, groups, strict=False):
            for each in baseline:
                name = f"{each.names[group]} (baseline)" if group in each.names else each.system.name
                axes.plot(*_xy(each), color="#bbbbbb", linewidth=3, label=name)
            for each, colour in zip(members, itertools.cycle(_LINE_COLOURS)):  # as many as there are members
                axes.plot(*_xy(each), color=colour, linewidth=1.2, label=each.system.name)
            axes.set_title(group, fontsize=10)
            axes.set_yscale("log")
            axes.yaxis.set_major_formatter(_plain)
            axes.legend(fontsize=6.5, frameon=False)
            axes.tick_params(labelsize=8, labelbottom=True)
        for axes in flat[len(groups) :]:
            axes.remove()
        figure.supxlabel("CPU minutes", fontsize=10)
        figure.supylabel("perplexity of training batches", fontsize=10)
        figure.tight_layout()
        figure.savefig(folder / "curves.png", dpi=110)
    return Picture(
        "curves.png",
        "Training curves",
        "Training: perplexity of the batches, with dropout, against CPU time; where a model reads its own words, while "
        "it reads them.",
    )


def draw_alignments(
    alignments: Mapping[str, Sequence[Alignment]], gold: Sequence[Gold], folder: Path, *, pictures: int = 2
) -> list[Picture]:
    """For some sentences the soft alignments of all systems side by side, by system name."""
    drawn: list[Picture] = []
    if not alignments:
        return drawn
    some = next(iter(alignments.values()))
    for number, row in enumerate(telling_pairs(some, gold)[:pictures], 1):
        pair = some[row]
        width, height = len(pair.source_words), len(pair.target_words)
        columns = min(_COLUMNS, len(alignments))
        rows = math.ceil(len(alignments) / columns)
        with _figure(1.2 + 0.17 * width * columns, 1.1 + (0.17 * height + 0.25) * rows) as figure:
            panels = figure.subplots(rows, columns, squeeze=False)
            for place, (name, each) in enumerate(alignments.items()):
                axes = panels[place // columns, place % columns]
                _draw_alignment(axes, each[row], gold[row])
                axes.set_title(name, fontsize=8, pad=3)
                if place % columns == 0:
                    axes.set_yticks(range(height), pair.target_words, fontsize=6.5)
                if place // columns == rows - 1:
                    axes.set_xticks(range(width), pair.source_words, fontsize=6.5, rotation=90)
            for axes in panels.ravel()[len(alignments) :]:
                axes.remove()
            figure.tight_layout(pad=0.5)
            file = f"alignments-{number}.png"
            figure.savefig(folder / file, dpi=110)
        drawn.append(
            Picture(
                file,
                f"Alignments of sentence {row + 1}",
                "Weights of each system for one sentence pair; frames are gold links.",
            )
        )
    return drawn


def telling_pairs(pairs: Sequence[Alignment], gold: Sequence[Gold]) -> list[int]:
    """The pairs of at most twelve words a side, those whose sure links cross most first."""
    short = [
        row
        for row, pair in enumerate(pairs)
        if max(len(pair.source_words), len(pair.target_words)) <= _MOST_WORDS and gold[row].sure
    ]
    return sorted(short, key=lambda row: -_crossings(gold[row]))


def _crossings(gold: Gold) -> int:
    links = sorted(gold.sure)
    return sum(a[0] < b[0] and a[1] > b[1] for a in links for b in links)


def _draw_alignment(axes: Axes, alignment: Alignment, gold: Gold) -> None:
    from matplotlib.patches import Rectangle

    axes.imshow(alignment.weights_TS, cmap="Blues", vmin=0, vmax=1, aspect="auto", interpolation="nearest")
    for source, target in sorted(gold.sure):
        axes.add_patch(Rectangle((source - 0.5, target - 0.5), 1, 1, fill=False, edgecolor="#d9480f", linewidth=0.7))
    axes.set_xticks([])
    axes.set_yticks([])


def _groups(results: Sequence[Result]) -> Iterator[tuple[str, list[Result]]]:
    for group in dict.fromkeys(each.system.group for each in results):
        yield group, [each for each in results if each.system.group == group]


def _label_points(axes: Axes, results: Sequence[Result]) -> None:
    """Names in a column beside the axes, in the order of their points' heights, each with a line to its point."""
    axes.margins(x=0.05)
    low, high = axes.get_ylim()
    ordered = sorted(results, key=lambda result: -result.bleu_estimate.value)
    heights = _spread([each.bleu_estimate.value for each in ordered], (high - low) / 36)
    for each, height in zip(ordered, heights, strict=True):
        axes.annotate(
            each.system.name,
            (each.speed.tokens_per_second, each.bleu_estimate.value),
            xytext=(1.02, (height - low) / (high - low)),
            textcoords="axes fraction",
            fontsize=8,
            verticalalignment="center",
            color=_COLOURS[each.system.group],
            arrowprops={"arrowstyle": "-", "color": _COLOURS[each.system.group], "linewidth": 0.5, "relpos": (0, 0.5)},
        )


def _spread(heights: Sequence[float], gap: float) -> list[float]:
    """The nearest heights, by least squares, of which each lies at least ``gap`` below the one before; the given ones
    do not rise. Neighbours that are too near become a block round their mean (pool adjacent violators)."""
    blocks: list[list[float]] = []
    for place, height in enumerate(heights):
        blocks.append([height + place * gap])  # without the gaps due they must not rise
        while len(blocks) > 1 and fmean(blocks[-1]) > fmean(blocks[-2]):
            last = blocks.pop()
            blocks[-1] += last
    levels = [fmean(block) for block in blocks for _ in block]
    return [level - place * gap for place, level in enumerate(levels)]


def _plain(value: float, _: float) -> str:
    """A tick's number, not as a power of ten."""
    return f"{value:,.0f}" if value >= 10 else f"{value:g}"


def _legend(axes: Axes, results: Sequence[Result]) -> None:
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], color=_COLOURS[group], marker="o", linestyle="none", label=group)
        for group, _ in _groups(results)
    ]
    axes.legend(handles=handles, fontsize=8, frameon=False)


def _xy(result: Result) -> tuple[list[float], list[float]]:
    minutes, perplexity = zip(*result.curve, strict=True) if result.curve else ((), ())
    return list(minutes), list(perplexity)


@contextmanager
def _figure(width: float, height: float) -> Iterator[Figure]:
    """A figure in matplotlib's own style, whatever the user's is, without pyplot."""
    from matplotlib import style
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    look: dict[str, Any] = {"axes.spines.top": False, "axes.spines.right": False, "text.parse_math": False}
    with style.context(["default", look]):
        figure = Figure(figsize=(width, height))
        FigureCanvasAgg(figure)
        yield figure

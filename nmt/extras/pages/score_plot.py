"""Picture of scores by source length: a line with intervals for each system, above the number of sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from nmt.core.errors import InputError
from nmt.core.terminal_width import drawable
from nmt.evaluation.by_length import FEW, LengthScores, length_label

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

Metric: TypeAlias = Literal["BLEU", "chrF2"]
_Series: TypeAlias = Mapping[str, Sequence[LengthScores]]
_Limits: TypeAlias = tuple[int, int | None]

COLOURS = (
    "#2171b5", "#d9480f", "#2b8a3e", "#862e9c", "#c2255c", "#0b7285", "#a37200", "#5f3dc4", "#495057", "#5c940d",
)  # fmt: skip
"""Colours of the series, in their order."""
_MARKERS = "osD^vPX"
"""Marks of the series: with ten colours, seven marks distinguish seventy systems."""

TEXT_COLOUR = "#222222"
NOTE_COLOUR = "#777777"
AXIS_COLOUR = "#888888"
GRID_COLOUR = "#e4e4e4"
BAR_COLOUR = "#c9ddf0"

_SPREAD = 0.6
"""Part of the distance between two buckets that the systems of one bucket occupy side by side."""
_CROWD = 4
"""Number of systems above which the marks are smaller."""


def plot_by_length(series: _Series, path: Path, *, metric: Metric = "BLEU", title: str = "") -> None:
    """Draws the score of each bucket of source lengths with its 95 % interval, one line for each named series, into a
    PNG or SVG file; below it the number of sentences.

    Points of few sentences (`LengthScores.is_few`) are hollow. If there are several series, their names form a legend;
    a series may lack buckets that others have. Any text can be in a name or the title: nothing is read as a formula.
    The user's matplotlib style is ignored, and pyplot is not used.

    Raises InputError like `check_plot` and if the file cannot be written, ValueError without a bucket.
    """
    check_plot(path)
    figure = draw_by_length(series, metric=metric, title=title)
    from matplotlib import rc_context, style

    # with letters as outlines and fixed names, equal pictures give equal files
    with style.context("default"), rc_context({"svg.hashsalt": "nmt", "svg.fonttype": "path"}):
        metadata = {"Date": None} if path.suffix.lower() == ".svg" else {}
        try:
            figure.savefig(path, dpi=200, bbox_inches="tight", pad_inches=0.12, metadata=metadata)
        except OSError as error:
            raise InputError(f"{path}: cannot write the picture: {error.strerror}") from None


def draw_by_length(series: _Series, *, metric: Metric = "BLEU", title: str = "", legend: bool = True) -> Figure:
    """Draws the picture of `plot_by_length`, to be saved in any format; without a `legend` the caller shows the names.
    Raises ValueError without a bucket."""
    buckets = sorted(
        {(each.first, each.last) for scores in series.values() for each in scores},
        key=lambda limits: (limits[0], float("inf") if limits[1] is None else limits[1]),
    )
    if not buckets:
        raise ValueError("there is no bucket to draw")
    from matplotlib import style
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    place = {limits: float(number) for number, limits in enumerate(buckets)}
    inches = len(buckets) * max(0.85, 0.13 * len(series))
    with style.context("default"):
        figure = Figure(figsize=(max(5.8, inches), 4.4))
        FigureCanvasAgg(figure)
        score_axes, count_axes = figure.subplots(2, 1, sharex=True, height_ratios=(3.5, 1))
        figure.subplots_adjust(hspace=0.06)
        samples = _draw_scores(score_axes, series, place, metric)
        _draw_counts(count_axes, series, place)
        _dress(score_axes, count_axes, buckets, metric)
        _draw_heading(score_axes, series, title)
        if legend and len(series) > 1:
            _draw_legend(count_axes, samples, list(series))
    return figure


def check_plot(path: Path) -> None:
    """Raises InputError, before the work, if `plot_by_length` could not draw into this file."""
    if path.suffix.lower() not in (".png", ".svg"):
        raise InputError(f"{path}: a picture is a file that ends in .png or .svg; name it so")
    if not path.parent.is_dir():
        raise InputError(f"{path}: the folder {path.parent} for this picture does not exist; make it first")


def _draw_scores(axes: Axes, series: _Series, place: Mapping[_Limits, float], metric: Metric) -> list[Line2D]:
    """Draws the series side by side within each bucket; returns one sample of each for the legend."""
    from matplotlib.lines import Line2D

    samples = []
    is_crowded = len(series) > _CROWD
    size = 4.8 if is_crowded else 6.0
    for number, scores in enumerate(series.values()):
        colour, marker = COLOURS[number % len(COLOURS)], _MARKERS[number % len(_MARKERS)]
        x = [place[each.first, each.last] + _aside(number, len(series)) for each in scores]
        estimates = [each.bleu if metric == "BLEU" else each.chrf for each in scores]
        values = [each.value for each in estimates]
        axes.plot(x, values, color=colour, linewidth=1.3, alpha=0.5, zorder=2)
        axes.vlines(
            x,
            [each.low for each in estimates],
            [each.high for each in estimates],
            color=colour,
            linewidth=size / 4,
            alpha=0.55 if is_crowded else 0.85,
            zorder=3,
        )
        faces = ["white" if each.is_few else colour for each in scores]
        axes.scatter(x, values, s=size**2, marker=marker, c=faces, edgecolors=colour, linewidths=1.3, zorder=4)
        samples.append(Line2D([], [], color=colour, marker=marker, markersize=size, linewidth=1.3))
    return samples


def _draw_counts(axes: Axes, series: _Series, place: Mapping[_Limits, float]) -> None:
    """Draws one bar for each bucket if all series have the same sentences, else one for each series."""
    counts = [{(each.first, each.last): each.sentences for each in scores} for scores in series.values()]
    are_shared = all(each == counts[0] for each in counts)
    if are_shared:
        counts = counts[:1]
    highest = max(count for each in counts for count in each.values())
    for number, each in enumerate(counts):
        x = [place[limits] + _aside(number, len(counts)) for limits in each]
        colour, alpha = (BAR_COLOUR, 1.0) if are_shared else (COLOURS[number % len(COLOURS)], 0.4)
        axes.bar(x, list(each.values()), width=_SPREAD / len(counts), color=colour, alpha=alpha, linewidth=0)
        size = 8.5 if are_shared else 7
        if len(counts) <= 2:  # more bars leave no room for figures
            for at, count in zip(x, each.values(), strict=True):
                axes.text(
                    at, count + 0.05 * highest, f"{count:,}", size=size, color=TEXT_COLOUR, ha="center", va="bottom"
                )
    axes.set_ylim(0, 1.4 * highest)


def _aside(number: int, crowd: int) -> float:
    """Computes the distance of a series from the middle of its bucket."""
    return _SPREAD * ((number + 0.5) / crowd - 0.5)


def _dress(score_axes: Axes, count_axes: Axes, buckets: Sequence[_Limits], metric: Metric) -> None:
    for axes in (score_axes, count_axes):
        axes.spines[["top", "right", "left"]].set_visible(False)
        axes.spines["bottom"].set(color=AXIS_COLOUR, linewidth=0.8)
        axes.tick_params(length=0, labelcolor=TEXT_COLOUR, labelsize=10)
    score_axes.spines["bottom"].set_visible(False)
    score_axes.tick_params(labelbottom=False)
    score_axes.grid(axis="y", color=GRID_COLOUR, linewidth=0.8)
    score_axes.set_axisbelow(True)
    score_axes.set_ylim(bottom=max(score_axes.get_ylim()[0], 0.0))
    score_axes.set_ylabel(metric, size=10, color=TEXT_COLOUR, labelpad=8)
    count_axes.set_yticks([])
    count_axes.set_ylabel("sentences", size=9, color=TEXT_COLOUR, labelpad=8)
    count_axes.set_xlim(-0.55, len(buckets) - 0.45)
    count_axes.set_xticks(range(len(buckets)), [length_label(*limits).replace("-", "–") for limits in buckets])
    count_axes.set_xlabel("words in the source sentence", size=10, color=TEXT_COLOUR, labelpad=6)
    count_axes.figure.align_ylabels([score_axes, count_axes])


def _draw_heading(axes: Axes, series: _Series, title: str) -> None:
    note = "vertical lines: 95% bootstrap intervals"
    if any(each.is_few for scores in series.values() for each in scores):
        note += f"; hollow: fewer than {FEW} sentences"
    axes.annotate(
        note, (0, 1), (0, 6), xycoords="axes fraction", textcoords="offset points", size=8.5, color=NOTE_COLOUR
    )
    if title:
        axes.set_title(drawable(title), size=12, color=TEXT_COLOUR, loc="left", pad=22, parse_math=False)


def _draw_legend(axes: Axes, samples: Sequence[Line2D], names: Sequence[str]) -> None:
    names = [drawable(name) for name in names]
    legend = axes.legend(
        samples,
        [" "] * len(names),  # a name that begins with an underscore would be left out
        loc="upper left",
        bbox_to_anchor=(0, -0.68),
        borderaxespad=0,
        borderpad=0,
        ncols=1 if max(map(len, names)) > 24 else min(len(names), 4),
        frameon=False,
        fontsize=9,
        handlelength=2.2,
        columnspacing=2.0,
        labelcolor=TEXT_COLOUR,
    )
    for text, name in zip(legend.get_texts(), names, strict=True):
        text.set(text=name, parse_math=False)

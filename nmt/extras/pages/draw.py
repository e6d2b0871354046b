"""Pictures by matplotlib: heatmaps of alignments and of a layer's gates, charts of a run, scores by source length, the
diagram of a model, and sentences as curves through a layer's states.

All have one style, and none of the user's. pyplot is not used, and equal data give equal files. Labels may contain any
text: nothing is read as a formula, and characters without a glyph become boxes. Text in SVG is text.

A page has its colours from CSS: the SVG in it names variables instead of colours, so that it is light or dark like the
page.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import BytesIO, StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from matplotlib import style
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.collections import PolyCollection
from matplotlib.colors import Colormap, LinearSegmentedColormap, Normalize
from matplotlib.figure import Figure, SubFigure
from matplotlib.font_manager import fontManager
from matplotlib.lines import Line2D
from matplotlib.patches import FancyBboxPatch, Rectangle
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter
from numpy.typing import NDArray

from nmt.alignment.error_rate import Gold
from nmt.alignment.formats import Alignment
from nmt.core.errors import InputError
from nmt.core.files import writing
from nmt.core.terminal_width import drawable
from nmt.evaluation.by_length import FEW, LengthScores, length_label
from nmt.extras.pages.report.charts import Chart, ChartLine
from nmt.extras.pages.report.record import ModelPart

if TYPE_CHECKING:
    from nmt.extras.pages.states.trace import Trace

_Series: TypeAlias = Mapping[str, Sequence[LengthScores]]
_Limits: TypeAlias = tuple[int, int | None]

COLOURS = (
    "#2171b5", "#d9480f", "#2b8a3e", "#862e9c", "#c2255c", "#0b7285", "#a37200", "#5f3dc4", "#495057", "#5c940d",
)  # fmt: skip
"""Colours of runs, systems and sentences, in their order; the pages have the same, as ``--run0`` to ``--run9``."""
_MARKERS = "osD^vPX"
"""Marks of systems: with ten colours, seven marks distinguish seventy systems."""
_DASHES: Sequence[Any] = ("-", (0, (4, 1.6)), (0, (1, 1.4)))
"""Dashes of lines: solid, dashed, dotted, like the classes of CSS in the key."""
TEXT_COLOUR, NOTE_COLOUR, AXIS_COLOUR, GRID_COLOUR, BAR_COLOUR = "#222222", "#777777", "#888888", "#e4e4e4", "#c9ddf0"
_FRAME_COLOUR, _LINK_COLOUR, GOLD_COLOUR = "#555555", "#111111", "#d9480f"

WEIGHT_COLOURS = ("#ffffff", "#c9ddf0", "#6baed6", "#2171b5", "#08306b")
"""From weight 0, the colour of the paper, to weight 1; the pages have the same."""
NEGATIVE_COLOURS = ("#ffffff", "#fddbc7", "#f4a582", "#d6604d", "#67001f")
"""Colours from 0 to the smallest of signed values: red beside blue, which colour-blind people can distinguish (Brewer
2003, RdBu)."""

_CSS = {
    TEXT_COLOUR: "--ink", NOTE_COLOUR: "--faint", AXIS_COLOUR: "--tie", GRID_COLOUR: "--line", BAR_COLOUR: "--bar",
    "#ffffff": "--card", **{colour: f"--run{place}" for place, colour in enumerate(COLOURS)},
}  # fmt: skip
SVG_SETTINGS = {"svg.fonttype": "none", "svg.hashsalt": "nmt"}
"""Settings of SVG: text stays text, and names are the same each time."""

_FONTS = (
    "DejaVu Sans", "Noto Sans", "Noto Sans CJK SC", "Noto Sans CJK JP", "Arial Unicode MS", "Noto Emoji", "Symbola",
)  # fmt: skip
"""Fonts that are tried in order for each character, if they are installed; the first one is part of matplotlib."""


# ---- what all pictures share


class Picture(Figure):
    """A figure that is saved with the room that its labels need around it, and that a notebook shows."""

    def savefig(self, fname: Any, *, transparent: bool | None = None, **options: Any) -> None:
        room = {"bbox_inches": "tight", "pad_inches": 0.12, **options}
        super().savefig(fname, transparent=transparent, **room)

    def _repr_png_(self) -> bytes:
        self.savefig(stream := BytesIO())
        return stream.getvalue()


@contextmanager
def own_style() -> Iterator[None]:
    """Sets matplotlib's default style instead of the user's, and ignores characters that no font has. Text is drawn
    literally: otherwise a word such as $x_1$ would be drawn as a formula, or fail as one."""
    installed = set(fontManager.get_font_names())
    fonts = [*(name for name in _FONTS if name in installed), "sans-serif"]
    settings = {**SVG_SETTINGS, "text.parse_math": False, "font.family": fonts}
    with style.context(["default", settings]), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        yield


@own_style()
def save(figure: Figure, file: Path | BytesIO, format: str, *, dpi: float = 200) -> None:
    """Writes a figure as "svg" or "png". Raises OSError if it cannot be written."""
    metadata = {"Creator": None, "Date": None} if format == "svg" else None
    figure.savefig(file, format=format, dpi=dpi, metadata=metadata)


@own_style()
def inline_svg(figure: Figure, key: str) -> str:
    """Converts a figure to an SVG element of a page, which fills the available width and whose names begin with
    ``key``."""
    figure.savefig(file := StringIO(), format="svg", bbox_inches=None, metadata={"Date": None})
    svg = re.sub(r"(?s)^.*?(?=<svg)|<(metadata|style)\b(?:(?!</?\1\b).)*+</\1>", "", file.getvalue())
    svg = re.sub(r'(\bid="|href="#|url\(#)([^")]+)', lambda found: f"{found[1]}{key}-{found[2]}", svg)
    for colour, name in _CSS.items():
        svg = re.sub(rf"(?<=: ){colour}(?=[;\"])", f"var({name})", svg)
    drawn = r'<svg \1 aria-hidden="true" focusable="false">'
    return re.sub(r'<svg(?>[^<]*?(viewBox="[^"]*"))[^<>]*>', drawn, svg, count=1)


def _label(word: str, limit: int = 24) -> str:
    """Formats a word for a picture, cut if it is long, because it would take the room of the picture."""
    word = drawable(word)
    return word if len(word) <= limit else word[: limit - 1] + "…"


def _style_axes(axes: Axes, *, size: float) -> None:
    """Gives the axes of a chart horizontal lines and a bottom."""
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.spines["bottom"].set(color=AXIS_COLOUR, linewidth=0.8)
    axes.tick_params(which="both", length=0, labelcolor=TEXT_COLOUR, labelsize=size)
    axes.grid(axis="y", color=GRID_COLOUR, linewidth=0.8)
    axes.set_axisbelow(True)


def _write_above(axes: Axes, text: str, *, size: float) -> None:
    """Writes a note above the axes, where numbers of any length leave room."""
    place: dict[str, Any] = {"xycoords": "axes fraction", "textcoords": "offset points"}
    axes.annotate(text, (0, 1), (0, 7), **place, size=size, color=NOTE_COLOUR)


def _draw_legend(
    axes: Axes, samples: Sequence[Artist], names: Sequence[str], below: float, *, columns: int, **room: float
) -> None:
    """Shows names with their samples at a place below the axes, a part of their height."""
    room = {"borderaxespad": 0, "borderpad": 0, **room}
    look = {"frameon": False, "fontsize": 9, "ncols": columns, "labelcolor": TEXT_COLOUR, **room}
    blank = [" "] * len(samples)  # a name that begins with an underscore would be left out
    legend = axes.legend(samples, blank, loc="upper left", bbox_to_anchor=(0, below), **look)
    for text, name in zip(legend.get_texts(), names, strict=True):
        text.set_text(drawable(name))


# ---- heatmaps


@own_style()
def plot_alignment(
    alignment: Alignment, path: Path | None = None, *, languages: Sequence[str] | None = None, gold: Gold | None = None
) -> Figure:
    """Draws the heatmap of an alignment, and writes it to a path that ends in .png or .svg. A notebook shows the
    figure.

    Rows are target words from top to bottom, columns source words from left to right, and the darkness of a cell is its
    weight on a fixed scale from 0 to 1, so that pictures can be compared; of another magnitude, on a scale that ends
    with the largest absolute value, negative values in red. Links are drawn as dots, `gold` as squares: solid where
    sure, dashed where only possible; both between words only. `languages` are those of source and target, for the axes.
    The picture grows with the sentence and keeps its labels legible.

    Raises InputError for another ending and when the file cannot be written.
    """
    format = "png" if path is None else path.suffix[1:].lower()
    if format not in ("png", "svg"):
        raise InputError(f"{path}: end its name in .png or .svg")
    rows, columns = max(len(alignment.target_tokens), 1), max(len(alignment.source_tokens), 1)
    cell = float(np.clip(6 / max(rows, columns), 0.23, 0.42))  # inches
    width, height = columns * cell, rows * cell
    bar_height = float(np.clip(height, 1.4, 2.4))
    figure = Picture(figsize=(width, height))
    axes = figure.add_axes((0, 0, 1, 1))  # so that every cell has the right size
    bar_axes = figure.add_axes((1 + 0.22 / width, 1 - bar_height / height, 0.13 / width, bar_height / height))
    _draw_weights(axes, bar_axes, alignment)
    _draw_words(axes, alignment, languages, size=float(np.clip(32 * cell, 8, 11)))
    if alignment.level == "word":
        marks = _draw_marks(axes, gold, alignment, cell)
        room = {"borderaxespad": 0.6, "handletextpad": 0.5, "columnspacing": 1.4}
        room |= {"handlelength": 1.1, "handleheight": 1.1}
        below = min(0, 1 - bar_height / height)
        _draw_legend(axes, list(marks.values()), list(marks), below, columns=3 if width > 3.2 else 1, **room)
    if path is not None:  # at most 8000 pixels: sentences of several hundred words are coarser rather than larger
        with writing(path):
            save(figure, path, format, dpi=min(200, 8000 / (max(width, height) + 4)))
    return figure


def _colormap(*, signed: bool) -> Colormap:
    """Returns the colours from 0 to 1, or for signed values from -1 to 1."""
    colours = [*NEGATIVE_COLOURS[:0:-1], *WEIGHT_COLOURS] if signed else WEIGHT_COLOURS
    return LinearSegmentedColormap.from_list("weight", colours)


def _draw_scale(
    figure: Figure | SubFigure, values: ScalarMappable, axes: Axes, label: str = "", **options: Any
) -> None:
    """Draws the scale of a heatmap beside it."""
    bar = figure.colorbar(values, cax=axes, **options)
    bar.outline.set(edgecolor=_FRAME_COLOUR, linewidth=0.8)
    bar.ax.tick_params(labelsize=8, length=2.5, width=0.8, color=_FRAME_COLOUR)
    bar.set_label(label, size=9, labelpad=5)


def _draw_weights(axes: Axes, bar_axes: Axes, alignment: Alignment) -> None:
    weights_TS, magnitude = np.asarray(alignment.weights_TS, dtype=np.float64), alignment.magnitude
    signed = magnitude == "signed"
    most = 1.0 if magnitude == "relative" else float(np.abs(weights_TS).max(initial=0)) or 1.0
    rows, columns = (max(size, 1) for size in weights_TS.shape)  # an empty side has one white row or column
    # squares instead of an image, which would have pixels in SVG, too; paler ones have the colour of the paper
    dark = np.argwhere(np.abs(weights_TS) >= most / 512).tolist()
    corners = [[(s - 0.5, t - 0.5), (s + 0.5, t - 0.5), (s + 0.5, t + 0.5), (s - 0.5, t + 0.5)] for t, s in dark]
    look: dict[str, Any] = {"cmap": _colormap(signed=signed), "norm": Normalize(-most if signed else 0, most)}
    shades = np.array([weights_TS[t, s] for t, s in dark])
    cells = PolyCollection(corners, array=shades, antialiaseds=False, linewidths=0, **look)
    axes.add_collection(cells, autolim=False)
    axes.set(xlim=(-0.5, columns - 0.5), ylim=(rows - 0.5, -0.5))
    axes.set_xticks(np.arange(1, columns) - 0.5, minor=True)
    axes.set_yticks(np.arange(1, rows) - 0.5, minor=True)
    axes.grid(which="minor", color=GRID_COLOUR, linewidth=0.5)
    axes.spines[:].set(color=_FRAME_COLOUR, linewidth=0.8)
    ticks = [0, 0.25, 0.5, 0.75, 1] if magnitude == "relative" else None
    quantity = {"relative": "attention weight", "raw": "size of the derivative of log p", "signed": "e · ∂ log p / ∂ e"}
    _draw_scale(axes.figure, cells, bar_axes, quantity[magnitude], ticks=ticks)


def _draw_words(axes: Axes, alignment: Alignment, languages: Sequence[str] | None, *, size: float) -> None:
    sides: tuple[str, ...] = ("source", "target")
    if languages:
        sides = tuple(drawable(f"{side}: {name}") for side, name in zip(sides, languages, strict=True))
    sources, targets = ([_label(word) for word in side] for side in (alignment.source_tokens, alignment.target_tokens))
    axes.xaxis.tick_top()
    axes.xaxis.set_label_position("top")
    axes.tick_params(which="both", length=0, pad=4)
    axes.set_xticks(range(len(sources)), sources, size=size, rotation=90)
    axes.set_yticks(range(len(targets)), targets, size=size)
    axes.set_xlabel(sides[0], size=size + 1, style="italic", labelpad=6)
    axes.set_ylabel(sides[1], size=size + 1, style="italic", labelpad=6)


def _draw_marks(axes: Axes, gold: Gold | None, alignment: Alignment, cell: float) -> dict[str, Artist]:
    """Draws gold links and links; returns one sample of each kind for the legend, by its name."""
    samples: dict[str, Artist] = {}
    if gold is not None:
        look: dict[str, Any] = {"fill": False, "linewidth": 0.9 + 2 * cell}
        look["edgecolor"] = _LINK_COLOUR if alignment.magnitude == "signed" else GOLD_COLOUR
        for kind, squares in (("sure", gold.sure), ("possible", gold.possible - gold.sure)):
            look["linestyle"] = "-" if kind == "sure" else (0, (2.2, 1.4))
            for source, target in sorted(squares):
                axes.add_patch(Rectangle((source - 0.42, target - 0.42), 0.84, 0.84, **look))
            samples[f"gold, {kind}"] = Rectangle((0, 0), 1, 1, **look)
    look = {"color": _LINK_COLOUR, "marker": "o", "markersize": 15 * cell, "linestyle": "none"}
    look |= {"markeredgecolor": "white", "markeredgewidth": 0.8}
    (samples["link"],) = axes.plot(*np.array(alignment.links).reshape(-1, 2).T, **look)
    return samples


@own_style()
def draw_gates(trace: Trace, *, units: int) -> Figure:
    """Draws gates and states below each other: a row for each of the ``units`` whose hidden state varies most over the
    sentence, with its number, a column for each token. Gates are on a scale from 0 to 1, hidden states from -1 to 1,
    cell states up to their largest absolute value."""
    units_U = np.sort(np.argsort(-trace.states_TD.std(axis=0), kind="stable")[:units])
    width, height = len(trace.tokens) * 0.34, len(units_U) * 0.105  # inches
    figure = Picture(figsize=(width, len(trace.values) * height))
    panels = figure.subplots(len(trace.values), 1, sharex=True, squeeze=False)[:, 0]
    figure.subplots_adjust(0, 0, 1, 1, hspace=0.15 / height)
    for axes, (name, value_TD) in zip(panels, trace.values.items(), strict=True):
        value_UT = value_TD[:, units_U].T
        is_gate, most = " gate " in name, float(np.abs(value_UT).max()) if name.startswith("cell") else 1.0
        scale: dict[str, Any] = {"cmap": _colormap(signed=not is_gate), "vmin": 0 if is_gate else -most, "vmax": most}
        mesh = axes.pcolormesh(value_UT, rasterized=True, **scale)
        _draw_scale(figure, mesh, axes.inset_axes((1 + 0.12 / width, 0, 0.11 / width, 1)))
        axes.set_yticks(np.arange(len(units_U)) + 0.5, [str(unit + 1) for unit in units_U], size=5.5, color=NOTE_COLOUR)
        axes.set_ylabel(name, size=9, color=TEXT_COLOUR)
        axes.tick_params(length=0, pad=2, labelbottom=False)
        axes.spines[:].set(color=_FRAME_COLOUR, linewidth=0.8)
        axes.invert_yaxis()
    panels[0].xaxis.tick_top()
    panels[0].tick_params(labeltop=True, length=0)
    words = [_label(token) for token in trace.tokens]
    panels[0].set_xticks(np.arange(len(words)) + 0.5, words, size=9, rotation=90)
    return figure


# ---- charts


@own_style()
def draw_chart(chart: Chart, names: Sequence[str] | None = None) -> Figure:
    """Draws a chart; with ``names`` of the runs, it has a title and a legend, which a page writes itself. An inch has
    72 units of an SVG, the figure's pixels."""
    figure = Picture(figsize=(4.4, 2.75), dpi=72)
    axes = figure.add_subplot()
    figure.subplots_adjust(left=0.12, right=0.96, top=0.9, bottom=0.17)
    samples = [_draw_line(axes, chart, line) for line in chart.lines]
    _draw_axes(axes, chart)
    if names is not None:
        axes.set_title(chart.title, size=11, color=TEXT_COLOUR, loc="left", pad=24)
        labels = [f"{names[line.run]}: {line.name}" for line in chart.lines]
        _draw_legend(axes, samples, labels, -0.26, columns=2)
    return figure


def _draw_line(axes: Axes, chart: Chart, line: ChartLine) -> Artist:
    """Draws a line and returns a sample for the legend."""
    number, dash = chart.look(line)
    colour = COLOURS[number % len(COLOURS)]
    look: dict[str, Any] = {"color": colour, "linewidth": 1.5, "linestyle": _DASHES[dash % len(_DASHES)]}
    if chart.steps:
        half = (line.x[1] - line.x[0]) / 2 if len(line.x) > 1 else 0.5
        edges = [line.x[0] - half, *(x + half for x in line.x)]
        if dash == 0:
            axes.stairs(line.y, edges, fill=True, color=colour, alpha=0.13, linewidth=0)
        return axes.stairs(line.y, edges, **look)
    if len(line.x) <= 30:  # more marks would hide the line
        look |= {"marker": "D", "markersize": 5} if line.single else {"marker": "o", "markersize": 3.2}
    return axes.plot(line.x, line.y, **look)[0]


def _draw_axes(axes: Axes, chart: Chart) -> None:
    _style_axes(axes, size=10.5)
    axes.margins(x=0.02)
    axes.xaxis.set_major_locator(MaxNLocator(5, integer=not chart.steps))
    values = [value for line in chart.lines for value in line.y]
    if chart.log:
        axes.set_yscale("log")
        subs = (1.0,) if max(values) > 200 * min(values) else (1.0, 2.0, 5.0)
        axes.yaxis.set_major_locator(LogLocator(subs=subs))
        axes.yaxis.set_minor_formatter(NullFormatter())
    else:
        axes.yaxis.set_major_locator(MaxNLocator(5))
        if min(values) >= 0:  # no value is below 0
            axes.set_ylim(bottom=0 if chart.steps else max(axes.get_ylim()[0], 0.0))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(FuncFormatter(lambda value, _: _figure(value)))
    axes.set_xlabel(chart.x_label, size=10.5, color=NOTE_COLOUR)
    _write_above(axes, chart.y_label, size=10.5)
    if chart.x_end is not None:
        axes.set_xlim(0, chart.x_end * 1.02)


def _figure(value: float) -> str:
    """Formats a number with about four digits."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def chart_points(figure: Figure, chart: Chart) -> dict[str, Any]:
    """Finds the points of a drawn chart, and their texts: `size` [width, height] and `box` [left, top, right, bottom]
    of the axes in units of the SVG, from the top, the `x` label, and of each of the `lines` its `run`, `colour`, `name`
    and `points` [x, y, text of x, text of y]."""
    (axes,) = figure.axes
    width, height = figure.bbox.width, figure.bbox.height
    box = axes.get_window_extent()
    lines = []
    for line in chart.lines:
        places = axes.transData.transform(list(zip(line.x, line.y, strict=True)))
        points = [
            [round(float(x), 1), round(float(height - y), 1), _figure(at), _figure(value)]
            for (x, y), at, value in zip(places, line.x, line.y, strict=True)
        ]
        lines.append({"run": line.run, "colour": chart.look(line)[0], "name": line.name, "points": points})
    corners = [round(float(each), 1) for each in (box.x0, height - box.y1, box.x1, height - box.y0)]
    return {"size": [round(width, 1), round(height, 1)], "box": corners, "x": chart.x_label, "lines": lines}


@own_style()
def draw_curves(traces: Mapping[str, Trace], planes: Sequence[NDArray[np.float64]], shares: Sequence[float]) -> Figure:
    """Draws each sentence as a curve through its states in a plane, starting at a ring. ``planes`` are the coordinates
    (T, 2) by two principal components, and ``shares`` what these have of the variance."""
    figure = Picture(figsize=(8, 6))
    axes = figure.add_subplot()
    samples: list[Artist] = []
    for number, (trace, plane_T2) in enumerate(zip(traces.values(), planes, strict=True)):
        colour, (x_T, y_T) = COLOURS[number % len(COLOURS)], plane_T2.T
        axes.plot(x_T, y_T, "o-", color=colour, linewidth=1.1, markersize=2.5, alpha=0.6)
        samples += axes.plot(x_T[:1], y_T[:1], "o-", color=colour, markersize=8, markerfacecolor="none")
        look: dict[str, Any] = {"textcoords": "offset points", "size": 7, "color": colour}
        for place, token in zip(plane_T2.tolist(), trace.tokens, strict=True):
            axes.annotate(_label(token.strip("▁") or token), place, (3, 3), **look)
    _style_axes(axes, size=8)
    axes.spines["left"].set(visible=True, color=AXIS_COLOUR, linewidth=0.8)
    axes.grid(color=GRID_COLOUR, linewidth=0.8)
    axes.set_xlabel(f"first principal component, {shares[0]:.0%} of the variance", size=9, color=TEXT_COLOUR)
    axes.set_ylabel(f"second principal component, {shares[1]:.0%}", size=9, color=TEXT_COLOUR)
    _draw_legend(axes, samples, [_label(name, 80) for name in traces], -0.11, columns=1)
    return figure


# ---- scores by source length


def plot_by_length(series: _Series, path: Path) -> None:
    """Draws the BLEU of each bucket of source lengths with its 95 % interval, one line for each named series, into a
    PNG or SVG file; below it the number of sentences.

    Points of few sentences (`LengthScores.is_few`) are hollow. If there are several series, their names form a legend;
    a series may lack buckets that others have.

    Raises InputError if the file cannot be written.
    """
    with writing(path):
        save(draw_by_length(series), path, path.suffix[1:].lower())


@own_style()
def draw_by_length(series: _Series, *, legend: bool = True) -> Figure:
    """Draws the picture of `plot_by_length`, to be saved in any format; without a `legend` the caller shows the
    names."""
    limits = {(each.first, each.last) for scores in series.values() for each in scores}
    buckets = sorted(limits, key=lambda each: (each[0], each[1] or float("inf")))
    place = {bucket: float(number) for number, bucket in enumerate(buckets)}
    figure = Picture(figsize=(max(5.8, len(buckets) * max(0.85, 0.13 * len(series))), 4.4))
    score_axes, count_axes = figure.subplots(2, 1, sharex=True, height_ratios=(3.5, 1))
    figure.subplots_adjust(hspace=0.06)
    for axes in (score_axes, count_axes):
        _style_axes(axes, size=10)
    samples = _draw_scores(score_axes, series, place)
    _draw_counts(count_axes, series, place)
    score_axes.spines["bottom"].set_visible(False)
    score_axes.tick_params(labelbottom=False)
    score_axes.set_ylim(bottom=max(score_axes.get_ylim()[0], 0.0))
    score_axes.set_ylabel("BLEU", size=10, color=TEXT_COLOUR, labelpad=8)
    count_axes.set_yticks([])
    count_axes.set_ylabel("sentences", size=9, color=TEXT_COLOUR, labelpad=8)
    count_axes.set_xlim(-0.55, len(buckets) - 0.45)
    count_axes.set_xticks(range(len(buckets)), [length_label(*bucket).replace("-", "–") for bucket in buckets])
    count_axes.set_xlabel("words in the source sentence", size=10, color=TEXT_COLOUR, labelpad=6)
    figure.align_ylabels([score_axes, count_axes])
    hollow = f"; hollow: fewer than {FEW} sentences"
    has_few = any(each.is_few for scores in series.values() for each in scores)
    _write_above(score_axes, f"vertical lines: 95% bootstrap intervals{hollow if has_few else ''}", size=8.5)
    if legend and len(series) > 1:
        columns = 1 if max(map(len, series)) > 24 else min(len(series), 4)
        _draw_legend(count_axes, samples, list(series), -0.68, columns=columns, handlelength=2.2)
    return figure


def _draw_scores(axes: Axes, series: _Series, place: Mapping[_Limits, float]) -> list[Line2D]:
    """Draws the series side by side within each bucket; returns one sample of each for the legend."""
    samples = []
    size, alpha = (4.8, 0.55) if len(series) > 4 else (6.0, 0.85)
    for number, scores in enumerate(series.values()):
        colour, marker = COLOURS[number % len(COLOURS)], _MARKERS[number % len(_MARKERS)]
        x = [place[each.first, each.last] + _aside(number, len(series)) for each in scores]
        values, lows, highs = ([getattr(each.bleu, name) for each in scores] for name in ("value", "low", "high"))
        axes.plot(x, values, color=colour, linewidth=1.3, alpha=0.5, zorder=2)
        axes.vlines(x, lows, highs, color=colour, linewidth=size / 4, alpha=alpha, zorder=3)
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
    for number, each in enumerate(counts):
        x = [place[limits] + _aside(number, len(counts)) for limits in each]
        colour, alpha = (BAR_COLOUR, 1.0) if are_shared else (COLOURS[number % len(COLOURS)], 0.4)
        bars = axes.bar(x, list(each.values()), width=0.6 / len(counts), color=colour, alpha=alpha, linewidth=0)
        if len(counts) <= 2:  # more bars leave no room for figures
            axes.bar_label(bars, fmt="{:,.0f}", padding=2, size=8.5 if are_shared else 7, color=TEXT_COLOUR)
    axes.set_ylim(0, 1.4 * max(count for each in counts for count in each.values()))


def _aside(number: int, crowd: int) -> float:
    """Computes the distance of a series from the middle of its bucket; a bucket's systems have 0.6 of its width."""
    return 0.6 * ((number + 0.5) / crowd - 0.5)


# ---- the diagram of a model


@own_style()
def draw_model(parts: Sequence[ModelPart]) -> Figure:
    """Draws the parts of a model: encoder and decoder over their embeddings, attention between them, output on top."""
    figure = Picture(figsize=(6.4, 3.66))
    axes = figure.add_axes((0, 0, 1, 1), xlim=(0, 6.4), ylim=(0, 3.66))
    axes.set_axis_off()
    corners = {
        "source embedding": (0.1, 0.42), "encoder": (0.1, 1.4), "attention": (2.25, 1.4),
        "target embedding": (4.4, 0.42), "decoder": (4.4, 1.4), "output": (4.4, 2.68),
    }  # fmt: skip
    for part in parts:
        is_tall = part.name in ("encoder", "decoder", "attention")
        _draw_box(axes, part, *corners[part.name], height=0.98 if is_tall else 0.72)
    arrows = [(1.05, 1.12, 1.05, 1.4), (5.35, 1.12, 5.35, 1.4), (5.35, 2.38, 5.35, 2.68)]
    arrows += [(1.05, 0.2, 1.05, 0.42), (5.35, 0.2, 5.35, 0.42)]
    attends = any(part.name == "attention" for part in parts)
    arrows += [(2.0, 1.89, 2.25, 1.89), (4.15, 1.89, 4.4, 1.89)] if attends else [(2.0, 1.89, 4.4, 1.89)]
    look = {"arrowstyle": "-|>", "color": AXIS_COLOUR, "linewidth": 1.2, "shrinkA": 0, "shrinkB": 0}
    for x0, y0, x1, y1 in arrows:
        axes.annotate("", (x1, y1), (x0, y0), arrowprops=look)
    labels = (1.05, 0.09, "source sentence"), (5.35, 0.09, "translation so far"), (5.35, 3.56, "next subword")
    for x, y, text in labels:
        axes.text(x, y, text, size=9, color=NOTE_COLOUR, ha="center", va="center")
    return figure


def _draw_box(axes: Axes, part: ModelPart, x: float, y: float, *, height: float) -> None:
    width = 1.9
    filling = BAR_COLOUR if part.name == "attention" else "#ffffff"
    box = FancyBboxPatch((x + 0.06, y + 0.06), width - 0.12, height - 0.12, "round,pad=0.06")
    box.set(facecolor=filling, edgecolor=AXIS_COLOUR, linewidth=1.2)
    axes.add_patch(box)
    rows = list(filter(None, [part.name, *part.details, part.counted]))
    pitch = min(0.2, (height - 0.12) / len(rows))
    top = y + height / 2 + pitch * (len(rows) - 1) / 2
    look: dict[str, Any] = {"color": TEXT_COLOUR, "ha": "center", "va": "center"}
    for place, row in enumerate(rows):
        size, weight = (8.5, "normal") if place else (10, "bold")
        axes.text(x + width / 2, top - place * pitch, drawable(row), size=size, weight=weight, **look)

"""Charts and the diagram of a model as matplotlib's figures: one drawing for the page, for SVG and for PNG.

A page has its colours from CSS: the SVG in it names variables instead of colours, so that it is light or dark like the
page. Text is text there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from nmt.core.errors import InputError
from nmt.core.files import whole_file
from nmt.core.terminal_width import drawable
from nmt.evaluation.by_length import LengthScores
from nmt.extras.pages.report.charts import Chart, Line
from nmt.extras.pages.report.record import Part
from nmt.extras.pages.score_plot import (
    AXIS_COLOUR,
    BAR_COLOUR,
    COLOURS,
    GRID_COLOUR,
    NOTE_COLOUR,
    TEXT_COLOUR,
    draw_by_length,
)

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Trace: TypeAlias = Mapping[str, Any]
"""The points of a chart in its SVG, and their texts: `size` [width, height] and `box` [left, top, right,
bottom] of the axes in units of the SVG, the `x` label, and of each of the `lines` its `run`, `colour`, `name` and
`points` [x, y, text of x, text of y]."""

_SIZE = (4.4, 2.75)
"""Size of a chart in inches, each of which has 72 units of an SVG."""
_DASHES: Sequence[Any] = ("-", (0, (4, 1.6)), (0, (1, 1.4)))
"""Dashes of lines: solid, dashed, dotted, like the classes of CSS in the key."""
_MARKED = 30
"""Maximum number of points of a line that has a mark at each of them."""
_CSS = {
    TEXT_COLOUR: "--ink",
    NOTE_COLOUR: "--faint",
    AXIS_COLOUR: "--tie",
    GRID_COLOUR: "--line",
    BAR_COLOUR: "--bar",
    "#ffffff": "--card",
    **{colour: f"--run{place}" for place, colour in enumerate(COLOURS)},
}
_COLOUR = re.compile(r"(?<=: )#[0-9a-f]{6}(?=[;\"])")
_NAME = re.compile(r'(\bid="|href="#|url\(#)([^")]+)')
_FRAME = re.compile(r"(?s)^.*?(?=<svg)|<(metadata|style)\b(?:(?!</?\1\b).)*+</\1>")
_SVG: dict[Any, Any] = {"svg.hashsalt": "nmt", "svg.fonttype": "none"}


@dataclass(frozen=True)
class Drawing:
    """A picture in a page."""

    svg: str
    trace: Trace


def drawing(chart: Chart) -> Drawing:
    """Draws a chart for a page, which has its title and legend."""
    figure = draw(chart)
    return Drawing(inline_svg(figure, chart.key), _trace(figure, chart))


def draw(chart: Chart, names: Sequence[str] | None = None) -> Figure:
    """Draws a chart; with ``names`` of the runs, it has a title and a legend."""
    figure, axes = _figure(*_SIZE)
    figure.subplots_adjust(left=0.12, right=0.96, top=0.9, bottom=0.17)
    samples = [_draw_line(axes, chart, line) for line in chart.lines]
    _dress(axes, chart)
    if names is not None:
        axes.set_title(chart.title, size=11, color=TEXT_COLOUR, loc="left", pad=24)
        _draw_legend(axes, chart, samples, names)
    return figure


def draw_model(parts: Sequence[Part]) -> Figure:
    """Draws the parts of a model: encoder and decoder over their embeddings, attention between them, output on top."""
    figure, axes = _figure(6.4, 3.66)
    axes.set_axis_off()
    axes.set_position((0, 0, 1, 1))
    axes.set_xlim(0, 6.4)
    axes.set_ylim(0, 3.66)
    places = {
        "source embedding": (0.1, 0.42),
        "encoder": (0.1, 1.4),
        "attention": (2.25, 1.4),
        "target embedding": (4.4, 0.42),
        "decoder": (4.4, 1.4),
        "output": (4.4, 2.68),
    }
    for part in parts:
        is_tall = part.name in ("encoder", "decoder", "attention")
        _draw_box(axes, part, *places[part.name], height=0.98 if is_tall else 0.72)
    arrows = [((1.05, 1.12), (1.05, 1.4)), ((2.0, 1.89), (2.25, 1.89)), ((4.15, 1.89), (4.4, 1.89))]
    arrows += [((5.35, 1.12), (5.35, 1.4)), ((5.35, 2.38), (5.35, 2.68)), ((1.05, 0.2), (1.05, 0.42))]
    arrows.append(((5.35, 0.2), (5.35, 0.42)))
    if not any(part.name == "attention" for part in parts):
        arrows[1:3] = [((2.0, 1.89), (4.4, 1.89))]
    for begin, end in arrows:
        style = {"arrowstyle": "-|>", "color": AXIS_COLOUR, "linewidth": 1.2, "shrinkA": 0, "shrinkB": 0}
        axes.annotate("", end, begin, arrowprops=style)
    for x, text in ((1.05, "source sentence"), (5.35, "translation so far")):
        axes.text(x, 0.09, text, size=9, color=NOTE_COLOUR, ha="center", va="center")
    axes.text(5.35, 3.56, "next subword", size=9, color=NOTE_COLOUR, ha="center", va="center")
    return figure


def lengths_svg(series: Mapping[str, Sequence[LengthScores]], key: str) -> str:
    """Draws scores by source length for a page, which has the legend."""
    figure = draw_by_length(series, legend=False)
    figure.set_layout_engine("constrained", hspace=0.06)  # to find the width of the labels
    return inline_svg(figure, key)


def inline_svg(figure: Figure, key: str) -> str:
    """Converts a figure to an SVG element of a page, which fills the available width and whose names begin with
    ``key``."""
    svg = _NAME.sub(lambda found: f"{found[1]}{key}-{found[2]}", _FRAME.sub("", _saved_svg(figure)))
    svg = _COLOUR.sub(lambda found: f"var({_CSS[found[0]]})" if found[0] in _CSS else found[0], svg)
    drawn = r'<svg \1 aria-hidden="true" focusable="false">'
    return re.sub(r'<svg(?>[^<]*?(viewBox="[^"]*"))[^<>]*>', drawn, svg, count=1)


def save(figure: Figure, folder: Path, name: str) -> None:
    """Writes a figure as SVG and as PNG. Raises InputError if it cannot be written."""
    from matplotlib import rc_context, style

    for format in ("svg", "png"):
        path = folder / f"{name}.{format}"
        with style.context("default"), rc_context(_SVG):
            metadata = {"Date": None, "Creator": None} if format == "svg" else None
            try:
                with whole_file(path) as new:
                    figure.savefig(new, format=format, dpi=200, bbox_inches="tight", pad_inches=0.12, metadata=metadata)
            except OSError as error:
                raise InputError(f"--pictures {folder}: cannot write {path.name}: {error.strerror}") from None


def label(value: float) -> str:
    """Formats a number with about four digits."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def _figure(width: float, height: float) -> tuple[Figure, Axes]:
    from matplotlib import style
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with style.context("default"):
        figure = Figure(figsize=(width, height), dpi=72)
        FigureCanvasAgg(figure)
        return figure, figure.add_subplot()


def _saved_svg(figure: Figure) -> str:
    from matplotlib import rc_context, style

    file = StringIO()
    with style.context("default"), rc_context(_SVG):
        figure.savefig(file, format="svg", metadata={"Date": None})
    return file.getvalue()


def _draw_line(axes: Axes, chart: Chart, line: Line) -> Artist:
    """Draws a line and returns a sample for the legend."""
    number, dash = chart.look(line)
    colour = COLOURS[number % len(COLOURS)]
    style: dict[str, Any] = {"color": colour, "linewidth": 1.5, "linestyle": _DASHES[dash % len(_DASHES)]}
    if chart.steps:
        half = (line.x[1] - line.x[0]) / 2 if len(line.x) > 1 else 0.5
        edges = [line.x[0] - half, *(x + half for x in line.x)]
        if dash == 0:
            axes.stairs(line.y, edges, fill=True, color=colour, alpha=0.13, linewidth=0)
        return axes.stairs(line.y, edges, **style)
    if len(line.x) <= _MARKED:
        style |= {"marker": "D", "markersize": 5} if line.single else {"marker": "o", "markersize": 3.2}
    return axes.plot(line.x, line.y, **style)[0]


def _dress(axes: Axes, chart: Chart) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.spines["bottom"].set(color=AXIS_COLOUR, linewidth=0.8)
    axes.tick_params(which="both", length=0, labelcolor=TEXT_COLOUR, labelsize=10.5)
    axes.grid(axis="y", color=GRID_COLOUR, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.margins(x=0.02)
    formatter = FuncFormatter(lambda value, _: label(value))
    axes.xaxis.set_major_locator(MaxNLocator(5, integer=not chart.steps))
    axes.xaxis.set_major_formatter(formatter)
    if chart.log:
        axes.set_yscale("log")
        values = [value for line in chart.lines for value in line.y]
        subs = (1.0,) if max(values) > 200 * min(values) else (1.0, 2.0, 5.0)
        axes.yaxis.set_major_locator(LogLocator(subs=subs))
        axes.yaxis.set_minor_formatter(NullFormatter())
    else:
        axes.yaxis.set_major_locator(MaxNLocator(5))
        lowest = min(value for line in chart.lines for value in line.y)
        if lowest >= 0:  # no value is below 0
            axes.set_ylim(bottom=0 if chart.steps else max(axes.get_ylim()[0], 0.0))
    axes.yaxis.set_major_formatter(formatter)
    axes.set_xlabel(chart.x_label, size=10.5, color=NOTE_COLOUR)
    # above the axis, where numbers of any length leave room
    axes.annotate(
        chart.y_label,
        (0, 1),
        (0, 8),
        xycoords="axes fraction",
        textcoords="offset points",
        size=10.5,
        color=NOTE_COLOUR,
    )
    if chart.x_end is not None:
        axes.set_xlim(0, chart.x_end * 1.02)


def _draw_legend(axes: Axes, chart: Chart, samples: Sequence[Artist], names: Sequence[str]) -> None:
    """Shows a sample of each line, below the axes."""
    legend = axes.legend(
        samples,
        [" "] * len(samples),  # a name that begins with an underscore would be left out
        loc="upper left",
        bbox_to_anchor=(0, -0.24),
        borderaxespad=0,
        frameon=False,
        fontsize=8.5,
        ncols=2,
        labelcolor=TEXT_COLOUR,
    )
    for text, line in zip(legend.get_texts(), chart.lines, strict=True):
        text.set(text=f"{drawable(names[line.run])}: {line.name}", parse_math=False)


def _draw_box(axes: Axes, part: Part, x: float, y: float, *, height: float) -> None:
    from matplotlib.patches import FancyBboxPatch

    width = 1.9
    shape = FancyBboxPatch(
        (x + 0.06, y + 0.06),
        width - 0.12,
        height - 0.12,
        boxstyle="round,pad=0.06",
        facecolor=BAR_COLOUR if part.name == "attention" else "#ffffff",
        edgecolor=AXIS_COLOUR,
        linewidth=1.2,
    )
    axes.add_patch(shape)
    count = [] if part.parameters is None else [f"{part.parameters:,} parameters"]
    rows = [part.name, *part.details, *count]
    pitch = min(0.2, (height - 0.12) / len(rows))
    top = y + height / 2 + pitch * (len(rows) - 1) / 2
    for place, row in enumerate(rows):
        heading = place == 0
        axes.text(
            x + width / 2,
            top - place * pitch,
            drawable(row),
            size=10 if heading else 8.5,
            weight="bold" if heading else "normal",
            color=TEXT_COLOUR,
            ha="center",
            va="center",
            parse_math=False,
        )


def _trace(figure: Figure, chart: Chart) -> Trace:
    """Finds the points of a chart. Units of the SVG are the figure's pixels, 72 to the inch, from the top."""
    (axes,) = figure.axes
    height = figure.bbox.height
    box = axes.get_window_extent()
    lines = []
    for line in chart.lines:
        places = axes.transData.transform(list(zip(line.x, line.y, strict=True)))
        points = [
            [round(float(x), 1), round(float(height - y), 1), label(at), label(value)]
            for (x, y), at, value in zip(places, line.x, line.y, strict=True)
        ]
        lines.append({"run": line.run, "colour": chart.look(line)[0], "name": line.name, "points": points})
    corners = [box.x0, height - box.y1, box.x1, height - box.y0]
    return {
        "size": [round(float(figure.bbox.width), 1), round(float(height), 1)],
        "box": [round(float(each), 1) for each in corners],
        "x": chart.x_label,
        "lines": lines,
    }

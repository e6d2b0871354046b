"""A soft alignment as a picture: a heatmap with the source along the top and the target down the side."""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nmt.alignment import Link, Magnitude
from nmt.alignment.error_rate import Gold
from nmt.alignment.formats import Alignment, AlignmentWriter
from nmt.core.errors import InputError
from nmt.core.files import make_folder
from nmt.core.terminal_width import drawable

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap
    from matplotlib.figure import Figure

Picture: TypeAlias = Literal["png", "svg"]

_COLOURS = ("#ffffff", "#c9ddf0", "#6baed6", "#2171b5", "#08306b")
"""From weight 0, the colour of the paper, to weight 1; the pages have the same, in ``nmt/extras/pages/base.css``."""

_NEGATIVE_COLOURS = ("#ffffff", "#fddbc7", "#f4a582", "#d6604d", "#67001f")
"""Colours from 0 to the smallest of signed values: red beside blue, which colour-blind people can distinguish (Brewer
2003, RdBu)."""

_QUANTITIES = {"relative": "attention weight", "raw": "size of the derivative of log p", "signed": "e · ∂ log p / ∂ e"}
_SIDES = ("source", "target")
_GOLD_COLOUR = "#d9480f"
_LINK_COLOUR = "#111111"
_FRAME_COLOUR = "#555555"
_GRID_COLOUR = "#e4e4e4"
_LONGEST_SIDE = 8000
"""Maximum number of pixels of a side; a sentence of several hundred words is drawn coarser rather than larger."""
_WHITE = 1 / 512
"""Weight below which a cell has the colour of the paper."""
SVG_SETTINGS = {"svg.fonttype": "none", "svg.hashsalt": "nmt"}
"""Settings of SVG: text stays text, and names are the same each time."""
_LABEL_LIMIT = 24
"""Maximum number of characters of a label; a longer one is cut, because it would take the room of the picture."""

_FONTS = (
    "DejaVu Sans",
    "Noto Sans",
    "Noto Sans CJK SC",
    "Noto Sans CJK JP",
    "Arial Unicode MS",
    "Noto Emoji",
    "Symbola",
)
"""Fonts that are tried in order for each character, if they are installed; the first one is part of matplotlib."""


def plot(
    weights_TS: ArrayLike,
    source_words: Sequence[str],
    target_words: Sequence[str],
    path: Path | None = None,
    *,
    title: str = "",
    languages: Sequence[str] | None = None,
    gold: Gold | None = None,
    links: Iterable[Link] | None = None,
    format: Picture = "png",
    magnitude: Magnitude = "relative",
) -> Figure:
    """Draws the heatmap of one soft alignment, and writes it to a path as a PNG file, or as SVG, where text is text. A
    notebook shows the figure.

    Rows are target words from top to bottom, columns source words from left to right, and the darkness of a cell is its
    weight on a fixed scale from 0 to 1, so that pictures can be compared; of another `magnitude`, on a scale that ends
    with the largest absolute value, negative values in red. `links` are drawn as dots, `gold` as squares: solid where
    sure, dashed where only possible. `languages` are those of source and target, for the axes. The picture grows with
    the sentence and keeps its labels legible. Any text can be in a label: nothing is read as a formula, and characters
    without a glyph become boxes. The user's matplotlib style is ignored, and pyplot is not used. The same arguments
    give the same bytes.

    Raises InputError when the file cannot be written, ValueError when the matrix does not fit the words.
    """
    weights_TS = np.asarray(weights_TS, dtype=np.float64)
    if weights_TS.shape != (len(target_words), len(source_words)):
        words = f"{len(target_words)} target and {len(source_words)} source words"
        raise ValueError(f"a matrix of shape {weights_TS.shape} for {words}")
    from matplotlib import style
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    class Heatmap(Figure):
        """A figure that its axes fill, so that every cell has the right size; saving adds the room that the labels
        need."""

        def savefig(self, fname: Any, *, transparent: bool | None = None, **options: Any) -> None:
            room = {"bbox_inches": "tight", "pad_inches": 0.12, **options}
            super().savefig(fname, transparent=transparent, **room)

        def _repr_png_(self) -> bytes:
            self.savefig(stream := io.BytesIO())
            return stream.getvalue()

    rows, columns = max(len(target_words), 1), max(len(source_words), 1)
    cell = float(np.clip(6 / max(rows, columns), 0.23, 0.42))  # inches
    width, height = columns * cell, rows * cell
    bar_height = float(np.clip(height, 1.4, 2.4))
    with style.context(["default", SVG_SETTINGS]), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        figure = Heatmap(figsize=(width, height))
        FigureCanvasAgg(figure)
        axes = figure.add_axes((0, 0, 1, 1))
        bar_axes = figure.add_axes((1 + 0.22 / width, 1 - bar_height / height, 0.13 / width, bar_height / height))
        _draw_heatmap(axes, bar_axes, weights_TS, magnitude)
        sides = [f"{side}: {name}" for side, name in zip(_SIDES, languages or (), strict=False)] or _SIDES
        _draw_labels(axes, source_words, target_words, title, sides, size=float(np.clip(32 * cell, 8, 11)))
        marks = _draw_marks(axes, gold, links, cell, _LINK_COLOUR if magnitude == "signed" else _GOLD_COLOUR)
        if marks:
            _draw_legend(axes, marks, below=min(0, 1 - bar_height / height), columns=3 if width > 3.2 else 1)
        dpi = min(200, _LONGEST_SIDE / (max(width, height) + 4))
        metadata = {"Creator": None, "Date": None} if format == "svg" else None
        try:
            if path is not None:
                figure.savefig(path, format=format, dpi=dpi, metadata=metadata)
        except OSError as error:
            raise InputError(f"{path}: cannot write the picture: {error.strerror}") from None
    return figure


def plot_alignment(
    alignment: Alignment, path: Path | None = None, *, languages: Sequence[str] | None = None, gold: Gold | None = None
) -> Figure:
    """Draws an alignment, see ``plot``; links and gold between words only. Raises InputError for a path that ends in
    neither .png nor .svg."""
    marks: Any = {"gold": gold, "links": alignment.links} if alignment.level == "word" else {}
    words = alignment.source_tokens, alignment.target_tokens
    format: Any = "png" if path is None else path.suffix[1:].lower()
    if format not in ("png", "svg"):
        raise InputError(f"{path}: end its name in .png or .svg")
    marks["languages"] = languages
    return plot(alignment.weights_TS, *words, path, format=format, magnitude=alignment.magnitude, **marks)


class PictureWriter(AlignmentWriter):
    """Writes one picture per alignment into a folder: 000001.png for the first pair, and so on, blank pairs too; or
    000001.svg.

    The folder is made if it is missing. `gold` holds one record per pair, in order. Links and gold are drawn at word
    level only, because they are between words. Raises InputError when the folder cannot be made or gold runs out.
    """

    def __init__(
        self, folder: Path, gold: Sequence[Gold] | None = None, *, languages: Sequence[str] | None = None,
        format: Picture = "png",
    ) -> None:  # fmt: skip
        make_folder(folder)
        self._folder = folder
        self._gold = gold
        self._languages = languages
        self._format: Picture = format
        self._number = 0

    def write(self, alignment: Alignment) -> None:
        self._number += 1
        gold = None
        if self._gold is not None:
            if self._number > len(self._gold):
                raise InputError(f"more than {len(self._gold)} sentence pairs but {len(self._gold)} gold lines")
            gold = self._gold[self._number - 1]
        path = self._folder / f"{self._number:06d}.{self._format}"
        plot_alignment(alignment, path, languages=self._languages, gold=gold)


def colours(*, signed: bool = False) -> Colormap:
    """Returns the colours from 0 to 1, or for signed values from -1 to 1."""
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("weight", [*_NEGATIVE_COLOURS[:0:-1], *_COLOURS] if signed else _COLOURS)


def _draw_heatmap(axes: Axes, bar_axes: Axes, weights_TS: NDArray[np.float64], magnitude: Magnitude) -> None:
    from matplotlib.collections import PolyCollection
    from matplotlib.colors import Normalize

    signed = magnitude == "signed"
    most = 1.0 if magnitude == "relative" else float(np.abs(weights_TS).max(initial=0)) or 1.0
    T, S = weights_TS.shape
    rows, columns = max(T, 1), max(S, 1)  # a pair with an empty side has one white row or column
    # squares instead of an image, which would have pixels in SVG, too
    dark = [(target, source) for target, source in np.argwhere(np.abs(weights_TS) >= most * _WHITE).tolist()]
    cells = PolyCollection(
        [[(s - 0.5, t - 0.5), (s + 0.5, t - 0.5), (s + 0.5, t + 0.5), (s - 0.5, t + 0.5)] for t, s in dark],
        array=np.array([weights_TS[cell] for cell in dark]),
        cmap=colours(signed=signed),
        norm=Normalize(-most if signed else 0, most),
        antialiaseds=False,
        linewidths=0,
    )
    axes.add_collection(cells, autolim=False)
    axes.set(xlim=(-0.5, columns - 0.5), ylim=(rows - 0.5, -0.5))
    for edge in np.arange(1, columns) - 0.5:
        axes.axvline(edge, color=_GRID_COLOUR, linewidth=0.5)
    for edge in np.arange(1, rows) - 0.5:
        axes.axhline(edge, color=_GRID_COLOUR, linewidth=0.5)
    for axes_with_frame in (axes, bar_axes):
        axes_with_frame.spines[:].set(color=_FRAME_COLOUR, linewidth=0.8)
    ticks = [0, 0.25, 0.5, 0.75, 1] if magnitude == "relative" else None
    bar = axes.figure.colorbar(cells, cax=bar_axes, ticks=ticks)
    bar.outline.set(edgecolor=_FRAME_COLOUR, linewidth=0.8)
    bar.ax.tick_params(labelsize=8, length=2.5, width=0.8, color=_FRAME_COLOUR)
    bar.set_label(_QUANTITIES[magnitude], size=9, labelpad=5)


def _draw_labels(
    axes: Axes,
    source_words: Sequence[str],
    target_words: Sequence[str],
    title: str,
    sides: Sequence[str],
    *,
    size: float,
) -> None:
    plain = plain_text()
    axes.xaxis.tick_top()
    axes.xaxis.set_label_position("top")
    axes.tick_params(length=0, pad=4)
    axes.set_xticks(range(len(source_words)), [label(word) for word in source_words], size=size, rotation=90, **plain)
    axes.set_yticks(range(len(target_words)), [label(word) for word in target_words], size=size, **plain)
    axes.set_xlabel(drawable(sides[0]), size=size + 1, style="italic", labelpad=6, **plain)
    axes.set_ylabel(drawable(sides[1]), size=size + 1, style="italic", labelpad=6, **plain)
    if title:
        axes.set_title(drawable(title), size=size + 2, loc="left", pad=10, **plain)


def _draw_marks(
    axes: Axes, gold: Gold | None, links: Iterable[Link] | None, cell: float, gold_colour: str
) -> list[Artist]:
    """Draws gold links and links; returns one sample of each kind for the legend."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Rectangle

    samples: list[Artist] = []
    look: dict[str, Any]
    if gold is not None:
        line = 0.9 + 2 * cell
        for kind, squares, style in (
            ("sure", gold.sure, "-"),
            ("possible", gold.possible - gold.sure, (0, (2.2, 1.4))),
        ):
            look = {"fill": False, "edgecolor": gold_colour, "linewidth": line, "linestyle": style}
            for source, target in sorted(squares):
                axes.add_patch(Rectangle((source - 0.42, target - 0.42), 0.84, 0.84, **look))
            samples.append(Rectangle((0, 0), 1, 1, label=f"gold, {kind}", **look))
    if links is not None:
        look = {"color": _LINK_COLOUR, "marker": "o", "markersize": 15 * cell, "linestyle": "none"}
        look |= {"markeredgecolor": "white", "markeredgewidth": 0.8}
        points = sorted(links)
        axes.plot([source for source, _ in points], [target for _, target in points], **look)
        samples.append(Line2D([], [], label="link", **look))
    return samples


def _draw_legend(axes: Axes, samples: list[Artist], *, below: float, columns: int) -> None:
    axes.legend(
        handles=samples,
        loc="upper left",
        bbox_to_anchor=(0, below),
        borderaxespad=0.6,
        borderpad=0,
        ncols=columns,
        frameon=False,
        fontsize=9,
        handlelength=1.1,
        handleheight=1.1,
        handletextpad=0.5,
        columnspacing=1.4,
    )


def plain_text() -> dict[str, Any]:
    """Returns arguments with which matplotlib draws a text literally: without ``parse_math=False`` and ``usetex=False``
    a word such as $x_1$ would be drawn as a formula, or fail as one."""
    from matplotlib.font_manager import fontManager

    installed = set(fontManager.get_font_names())
    family = [*(name for name in _FONTS if name in installed), "sans-serif"]
    return {"parse_math": False, "usetex": False, "family": family}


def label(word: str, limit: int = _LABEL_LIMIT) -> str:
    """Formats a word for a picture, cut if it is long."""
    word = drawable(word)
    return word if len(word) <= limit else word[: limit - 1] + "…"

"""Pictures of states: those of a sentence as heatmaps, and sentences as curves in the plane of the first two principal
components of their states (Sutskever et al. 2014, figure 2, shows the last states of sentences in this way)."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from html import escape
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from nmt.core.errors import InputError
from nmt.core.files import whole_file
from nmt.extras.pages.plot import SVG_SETTINGS, colours, label, plain_text
from nmt.extras.pages.score_plot import AXIS_COLOUR, COLOURS, GRID_COLOUR, NOTE_COLOUR, TEXT_COLOUR
from nmt.extras.pages.states.trace import CELL, Trace

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST = len(COLOURS)
"""Maximum number of sentences of a picture."""

_ROW, _COLUMN = 0.105, 0.34
"""Height of a unit and width of a token, in inches."""

_PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>{title}</title>
<style>body {{ margin: 1rem; font: 1rem/1.5 system-ui, sans-serif; background: #fff; color: #222 }}
h1, h2 {{ font-size: 1.1rem }} svg {{ max-width: 100%; height: auto }}</style>
<h1>{title}</h1>
"""


def write_pictures(traces: Mapping[str, Trace], path: Path, *, curves: bool, units: int, title: str) -> None:
    """Writes the gates of a sentence, or all sentences as ``curves``, as PNG or SVG, by the ending of the name; or a
    page of HTML of all of them. Keys are the names of the sentences. The same states give the same bytes, independently
    of the user's matplotlib style. Raises InputError if the file cannot be written."""
    from matplotlib import style

    format_ = path.suffix.lower()[1:]
    with style.context(["default", SVG_SETTINGS]), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        figures = {} if curves else {name: draw_gates(trace, units=units) for name, trace in traces.items()}
        if curves or (format_ == "html" and len(traces) > 1):
            figures["Principal components"] = draw_curves(traces)
        data = _PAGE.format(title=escape(title)).encode()
        for heading, figure in figures.items():
            stream = BytesIO()
            look: dict[str, Any] = {"dpi": 200, "bbox_inches": "tight", "pad_inches": 0.12}
            if format_ == "png":
                figure.savefig(stream, format="png", **look)
            else:
                figure.savefig(stream, format="svg", metadata={"Creator": None, "Date": None}, **look)
            picture = stream.getvalue()
            data += f"<h2>{escape(heading)}</h2>\n".encode("utf-8", "replace") + picture[picture.find(b"<svg") :]
    try:
        with whole_file(path) as partial:
            partial.write_bytes(data if format_ == "html" else picture)
    except OSError as error:
        raise InputError(f"--output {path}: cannot be written: {error.strerror}") from None


def draw_gates(trace: Trace, *, units: int) -> Figure:
    """Draws gates and states below each other: a row for each of the ``units`` whose hidden state varies most over the
    sentence, with its number, a column for each token. Gates are on a scale from 0 to 1, hidden states from -1 to 1,
    cell states up to their largest absolute value."""
    from matplotlib.figure import Figure

    units_U = np.sort(np.argsort(-trace.states_TD.std(axis=0), kind="stable")[:units])
    width, height = len(trace.tokens) * _COLUMN, len(units_U) * _ROW
    figure = Figure(figsize=(width, len(trace.values) * height))
    panels = figure.subplots(len(trace.values), 1, sharex=True, squeeze=False)[:, 0]
    figure.subplots_adjust(0, 0, 1, 1, hspace=0.15 / height)
    for axes, (name, value_TD) in zip(panels, trace.values.items(), strict=True):
        value_UT = value_TD[:, units_U].T
        is_gate, most = " gate " in name, float(np.abs(value_UT).max()) if name == CELL else 1.0
        scale: dict[str, Any] = {"cmap": colours(signed=not is_gate), "vmin": 0 if is_gate else -most, "vmax": most}
        mesh = axes.pcolormesh(value_UT, rasterized=True, **scale)
        bar = figure.colorbar(mesh, cax=axes.inset_axes((1 + 0.12 / width, 0, 0.11 / width, 1)))
        bar.ax.tick_params(labelsize=7, length=2, color=AXIS_COLOUR)
        bar.outline.set(edgecolor=AXIS_COLOUR, linewidth=0.8)
        axes.set_yticks(np.arange(len(units_U)) + 0.5, [str(unit + 1) for unit in units_U], size=5.5, color=NOTE_COLOUR)
        axes.set_ylabel(name, size=9, color=TEXT_COLOUR)
        axes.tick_params(length=0, pad=2, labelbottom=False)
        axes.spines[:].set(color=AXIS_COLOUR, linewidth=0.8)
        axes.invert_yaxis()
    panels[0].xaxis.tick_top()
    panels[0].tick_params(labeltop=True, length=0)
    words = [label(token) for token in trace.tokens]
    panels[0].set_xticks(np.arange(len(words)) + 0.5, words, size=9, rotation=90, **plain_text())
    return figure


def draw_curves(traces: Mapping[str, Trace]) -> Figure:
    """Draws each sentence as a curve through its states in the plane of the first two principal components of all
    states, starting at a ring. Raises InputError for fewer than three states."""
    from matplotlib.figure import Figure

    planes, shares = components([trace.states_TD for trace in traces.values()])
    figure = Figure(figsize=(8, 6))
    axes = figure.add_subplot()
    for number, (trace, plane_T2) in enumerate(zip(traces.values(), planes, strict=True)):
        colour, (x_T, y_T) = COLOURS[number % MOST], plane_T2.T
        axes.plot(x_T, y_T, "o-", color=colour, linewidth=1.1, markersize=2.5, alpha=0.6)
        axes.plot(x_T[:1], y_T[:1], "o-", color=colour, markersize=8, markerfacecolor="none", label=" ")
        for place, token in zip(plane_T2.tolist(), trace.tokens, strict=True):
            axes.annotate(
                label(token.strip("▁") or token),
                place,
                (3, 3),
                textcoords="offset points",
                size=7,
                color=colour,
                **plain_text(),
            )
    axes.grid(color=GRID_COLOUR, linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[:].set(color=AXIS_COLOUR, linewidth=0.8)
    axes.tick_params(labelsize=8, length=0, labelcolor=NOTE_COLOUR)
    axes.set_xlabel(f"first principal component, {shares[0]:.0%} of the variance", size=9, color=TEXT_COLOUR)
    axes.set_ylabel(f"second principal component, {shares[1]:.0%}", size=9, color=TEXT_COLOUR)
    legend = axes.legend(loc="upper left", bbox_to_anchor=(0, -0.1), frameon=False, fontsize=8.5)
    for text, name in zip(legend.get_texts(), traces, strict=True):
        text.set(text=label(name, 80), color=TEXT_COLOUR, **plain_text())
    return figure


def components(states: Sequence[NDArray[np.float32]]) -> tuple[list[NDArray[np.float64]], list[float]]:
    """Computes the first two principal components of the states (T, D) of all sentences, (T, 2) each, and their shares
    of the variance; the largest loading of each is positive. Raises InputError for fewer than three states."""
    all_ND = np.concatenate(states).astype(np.float64)
    if len(all_ND) < 3:
        raise InputError(f"{len(all_ND)} states make no plane; give longer sentences, or more of them")
    all_ND -= all_ND.mean(axis=0)
    _, size_K, loading_KD = np.linalg.svd(all_ND, full_matrices=False)
    loading_2D = [row_D * np.sign(row_D[np.abs(row_D).argmax()]) for row_D in loading_KD[:2]]
    shares = size_K[:2] ** 2 / max(float(size_K @ size_K), 1e-30)
    return np.split(all_ND @ np.array(loading_2D).T, np.cumsum([len(each) for each in states])[:-1]), shares.tolist()

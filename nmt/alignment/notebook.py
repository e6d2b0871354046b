"""Heatmaps of alignments for a notebook: a table of HTML, source words over its columns, target words before its rows.

The blue of a cell shows its weight, its tooltip has both words and the weight, and a dot marks a link.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from nmt.alignment import Link, Weights
from nmt.core.notebook import BLUE, background, escape, text

MOST_TOKENS = 60
"""Maximum number of tokens of a side that are shown; a table of all word pairs of two long texts would freeze the
browser."""

_SOURCE = "writing-mode: vertical-rl; transform: rotate(180deg); padding: 4px 2px; text-align: left"
_TARGET = "padding: 2px 8px; text-align: right"
_CELL = "min-width: 1.4em; padding: 0; text-align: center; border: 1px solid rgba(128, 128, 128, 0.2)"


def heatmap(sources: Sequence[str], targets: Sequence[str], weights_TS: Weights, links: Collection[Link]) -> str:
    """Draws a heatmap of the first tokens of both sides."""
    columns, rows = sources[:MOST_TOKENS], targets[:MOST_TOKENS]
    head = "".join(f'<th style="{_SOURCE}">{text(word)}</th>' for word in columns)
    body = "".join(
        f'<tr><th style="{_TARGET}">{text(word)}</th>'
        + "".join(
            _cell(source, word, float(weights_TS[row, column]), linked=(column, row) in links)
            for column, source in enumerate(columns)
        )
        + "</tr>"
        for row, word in enumerate(rows)
    )
    cut = [
        f"the first {MOST_TOKENS} of {len(words)} on the {side} side"
        for side, words in (("source", sources), ("target", targets))
        if len(words) > MOST_TOKENS
    ]
    note = f"<div>{', '.join(cut)}</div>" if cut else ""
    return f'<table style="border-collapse: collapse"><tr><td></td>{head}</tr>{body}</table>{note}'


def _cell(source: str, target: str, weight: float, *, linked: bool) -> str:
    title = escape(f"{source} – {target}: {weight:.3f}{', linked' if linked else ''}")
    return f'<td style="{_CELL}; {background(BLUE, weight)}" title="{title}">{"•" if linked else ""}</td>'

"""HTML of results for Jupyter notebooks, without scripts, for light and dark pages.

Text and lines have the colour of the page, and backgrounds are transparent blue or red. Jupyter calls the method
``_repr_html_`` of a result; the module itself does not need Jupyter.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape as _escape

BLUE, RED = "33, 113, 181", "214, 39, 40"
"""Background colours, without their opacity."""

_CELL = "padding: 2px 8px; text-align: left; vertical-align: top"


def escape(words: str) -> str:
    """Escape text for a page or the value of an attribute. A lone surrogate becomes a question mark."""
    return _escape(words.encode("utf-8", errors="replace").decode())


def text(words: str) -> str:
    """Format text as HTML, in the direction of its own letters, with its white space."""
    return f'<bdi style="white-space: pre-wrap">{escape(words)}</bdi>'


def figure(number: float) -> str:
    """Format a score with four significant digits."""
    return f"{number:.4g}"


def background(colour: str, share: float) -> str:
    """Return the CSS of a background with the opacity ``share``, from 0 to 1."""
    return f"background: rgba({colour}, {min(1.0, max(0.0, share)):.2f})"


def table(rows: Iterable[tuple[str, str]]) -> str:
    """Format a table of names and values; values are HTML."""
    lines = "".join(
        f'<tr><th style="{_CELL}">{escape(name)}</th><td style="{_CELL}">{value}</td></tr>' for name, value in rows
    )
    return f"<table>{lines}</table>"


def tinted(pieces: Sequence[str], shares: Sequence[float], notes: Sequence[str]) -> str:
    """Format pieces of text on a red background, whose opacity is the share of each, with notes as tooltips."""
    return " ".join(
        f'<span style="{background(RED, share)}" title="{escape(note)}">{text(piece)}</span>'
        for piece, share, note in zip(pieces, shares, notes, strict=True)
    )

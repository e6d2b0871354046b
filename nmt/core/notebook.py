"""What a Jupyter notebook shows of a result: HTML without script, whose colours suit a light and a dark page.

Text and lines take the page's own colour, and backgrounds are transparent blue or red, so nothing has to know which
it is. Jupyter asks a result for it by its method ``_repr_html_``; nothing of Jupyter is needed to make it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape as _escape
from typing import Protocol, TypeVar

MOST_SHOWN = 20
"""Results of a list that are shown; the number of the others follows."""

BLUE, RED = "31, 119, 180", "214, 39, 40"
"""Of backgrounds, to which a share is added."""

_CELL = "padding: 2px 8px; text-align: left; vertical-align: top"


class Showing(Protocol):
    """What Jupyter shows as HTML."""

    def _repr_html_(self) -> str: ...


Shown = TypeVar("Shown", bound=Showing)


class Results(list[Shown]):
    """A list that a notebook shows one by one."""

    def _repr_html_(self) -> str:
        shown = "".join(each._repr_html_() for each in self[:MOST_SHOWN])
        more = len(self) - MOST_SHOWN
        return shown + (f"<div>… and {more:,} more</div>" if more > 0 else "")


def escape(words: str) -> str:
    """Text between tags or in the quotes of an attribute. A surrogate that stands alone, which no page can hold,
    becomes a question mark."""
    return _escape(words.encode("utf-8", errors="replace").decode())


def text(words: str) -> str:
    """Text in HTML, in the direction of its own letters, its white space as it is."""
    return f'<bdi style="white-space: pre-wrap">{escape(words)}</bdi>'


def figure(number: float) -> str:
    """A score as a person reads it."""
    return f"{number:.4g}"


def background(colour: str, share: float) -> str:
    """A style: the colour where ``share`` is 1, the page where it is 0."""
    return f"background: rgba({colour}, {min(1.0, max(0.0, share)):.2f})"


def table(rows: Iterable[tuple[str, str]]) -> str:
    """A name before each value; values are HTML."""
    lines = "".join(
        f'<tr><th style="{_CELL}">{escape(name)}</th><td style="{_CELL}">{value}</td></tr>' for name, value in rows
    )
    return f"<table>{lines}</table>"


def tinted(pieces: Sequence[str], shares: Sequence[float], notes: Sequence[str]) -> str:
    """Pieces of text, the redder the higher the share of each, with notes to point at."""
    return " ".join(
        f'<span style="{background(RED, share)}" title="{escape(note)}">{text(piece)}</span>'
        for piece, share, note in zip(pieces, shares, notes, strict=True)
    )

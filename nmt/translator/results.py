"""Lists of results that a Jupyter notebook shows."""

from __future__ import annotations

from typing import Protocol, TypeVar

MOST_SHOWN = 20
"""Maximum number of results of a list that are shown."""


class HasHtml(Protocol):
    """An object that Jupyter shows as HTML."""

    def _repr_html_(self) -> str: ...


Result = TypeVar("Result", bound=HasHtml)


class Results(list[Result]):
    """A list whose entries a notebook shows below each other."""

    def _repr_html_(self) -> str:
        shown = "".join(result._repr_html_() for result in self[:MOST_SHOWN])
        more = len(self) - MOST_SHOWN
        return shown + (f"<div>… and {more:,} more</div>" if more > 0 else "")

"""The translation of a line, and lists of results that a Jupyter notebook shows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, TypeVar


@dataclass(frozen=True)
class Translation:
    """The translation of one line: of one sentence, or of several pieces."""

    text: str
    score: float
    """Score by which translations are ranked: ``log_prob`` divided by the length penalty, plus coverage if the search
    counts it; with ``search.consensus`` the similarity to all draws, from 0 to 1; 0 for a blank source."""
    log_prob: float
    """Natural logarithm of its probability under the model; 0 for a blank source."""
    cut: int = 0
    """Number of source tokens beyond ``search.max_source_tokens``, which the model did not read."""
    tokens: tuple[str, ...] = ()
    """The subwords of the translation."""
    parts: tuple[tuple[str, str], ...] = ()
    """Source and target of each piece that the model has translated."""
    longest: int = 0
    """Number of subwords of the longest of these targets."""

    confidence: Any = None
    """``nmt.translator.confidence.TranslationConfidence``; None without an estimator, and for a blank source."""

    alternatives: tuple[Translation, ...] = ()
    """Further translations, best first, if ``n_best`` is above 1."""

    def __repr__(self) -> str:
        more = f", {len(self.alternatives)} alternatives" if self.alternatives else ""
        return f"Translation({self.text!r}, score={self.score:.3f}{more})"

    def _repr_html_(self) -> str:
        """Returns HTML of the text and its score for a notebook."""
        from nmt.core import notebook

        return notebook.table([("translation", notebook.text(self.text)), ("score", notebook.figure(self.score))])


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

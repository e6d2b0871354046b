"""What a translator gives for a line."""

from __future__ import annotations

from dataclasses import dataclass

from nmt.core import notebook


@dataclass(frozen=True)
class Translation:
    """The translation of one line: of one sentence, or of several pieces."""

    text: str
    score: float
    """What it was ranked by: ``log_prob`` over the length penalty, with coverage where that counts, or by
    ``search.consensus`` its likeness to all that were drawn, from 0 to 1; 0 for a blank source."""
    log_prob: float
    """Natural logarithm of its probability under the model; 0 for a blank source."""
    cut: int = 0
    """Source tokens that were left out because the sentence had more than ``search.max_source_tokens``."""
    tokens: tuple[str, ...] = ()
    """The subwords that it is made of."""
    parts: tuple[tuple[str, str], ...] = ()
    """What the model was given and what it made of it, piece by piece."""
    longest: int = 0
    """Subwords of the longest of these translations."""

    def _repr_html_(self) -> str:
        """For a notebook: the text and its score."""
        return notebook.table([("translation", notebook.text(self.text)), ("score", notebook.figure(self.score))])

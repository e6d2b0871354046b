"""Validations as rows of a table, for a person who watches a training."""

from __future__ import annotations

from dataclasses import dataclass

from nmt.core.terminal_width import cut
from nmt.training.validation import Validated

BOLD, FAINT, GREEN, YELLOW = 1, 2, 32, 33
"""Codes of a terminal (SGR)."""


@dataclass(frozen=True)
class Example:
    """A sentence of the valid corpus with its current translation."""

    source: str
    reference: str
    translation: str


class Table:
    """Formats the rows of a table, the first one below the names of the columns; each is followed by the example, if
    there is one."""

    def __init__(self, *, width: int, colour: bool) -> None:
        self.example: Example | None = None
        self._width, self._colour = width, colour
        self._begun = False

    def __call__(self, validated: Validated) -> str:
        """Returns a row, with the head before it and the example after it, if they are due."""
        head = f"{'update':>8} {'epoch':>6} {'min':>7}" + "".join(f" {name:>11}" for name in validated.figures)
        row = f"{validated.update:>8,} {validated.epoch:>6} {validated.minutes:>7.1f}"
        row += "".join(f" {figure:>{max(11, len(name))}.2f}" for name, figure in validated.figures.items())
        if validated.is_best:
            row = f"{self._painted(row, BOLD)}  {self._painted('best', GREEN)}"
        lines = [row] if self._begun else [head, row]
        self._begun = True
        return "\n".join(lines if self.example is None else [*lines, *self._sentences(self.example)])

    def _sentences(self, example: Example) -> list[str]:
        """Returns a sentence, its reference and its translation; words of the translation that are in the reference,
        too, are green."""
        gold = set(example.reference.split())
        words = [
            self._painted(word, GREEN if word in gold else YELLOW) for word in self._cut(example.translation).split()
        ]
        return [
            self._painted(f"  source       {self._cut(example.source)}", FAINT),
            self._painted(f"  reference    {self._cut(example.reference)}", FAINT),
            f"  translation  {' '.join(words)}",
        ]

    def _cut(self, text: str) -> str:
        return cut(text, max(20, self._width - 16))

    def _painted(self, text: str, code: int) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self._colour else text

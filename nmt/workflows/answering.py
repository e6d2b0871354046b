"""What is written for a window of lines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nmt.core.lines import Line
from nmt.workflows.output import OutputFormat, aligned, document_lines, json_lines, text_lines, tsv_lines
from nmt.workflows.translation import Translation
from nmt.workflows.translator import Translator


@dataclass(frozen=True)
class Window:
    """Lines that are translated together, with what their translations begin with and contain."""

    lines: Sequence[Line]
    prefixes: Sequence[str] | None = None
    constraints: Sequence[Sequence[str]] | None = None


@dataclass(frozen=True)
class Answer:
    """What came of a window."""

    text: str
    """What is written."""
    warnings: tuple[str, ...]
    subwords: int
    """How many the translations have."""


@dataclass(frozen=True)
class Wanted:
    """What is written of a translation."""

    format: OutputFormat = "text"
    alignment: bool = False

    def answer(self, translator: Translator, window: Window) -> Answer:
        """Translates a window."""
        found = translator.candidates(
            [line.text for line in window.lines],
            prefixes=window.prefixes,
            constraints=window.constraints,
            first_line=window.lines[0].number,
        )
        warnings = [line.warning for line in window.lines if line.warning is not None]
        warnings += translator.cuts([best for best, *_ in found], first_line=window.lines[0].number)
        subwords = sum(len(translation.tokens) for each in found for translation in each)
        return Answer(self._written(translator, window.lines, found), tuple(warnings), subwords)

    def _written(self, translator: Translator, lines: Sequence[Line], found: Sequence[tuple[Translation, ...]]) -> str:
        if self.format != "jsonl":
            of_line = (
                tsv_lines if self.format == "tsv" else document_lines if translator.search.document else text_lines
            )
            return "".join(of_line(line, each) for line, each in zip(lines, found, strict=True))
        if not self.alignment:
            return "".join(json_lines(line, each, None) for line, each in zip(lines, found, strict=True))
        return "".join(json_lines(*each) for each in zip(lines, found, aligned(translator, found), strict=True))

"""What is written for a window of lines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from nmt.core.errors import InputError
from nmt.core.lines import Line
from nmt.core.memory import malloc_trim
from nmt.translator.output import (
    OutputFormat,
    aligned,
    document_lines,
    json_lines,
    json_result,
    text_lines,
    tsv_lines,
)
from nmt.translator.translation import Translation
from nmt.translator.translator import Translator


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
class Values:
    """What came of texts that stand in records."""

    values: tuple[Any, ...]
    """What a record gets, of each text: the translation, or in ``jsonl`` a list of all with what is known of them."""
    warnings: tuple[str, ...]
    subwords: int


@dataclass(frozen=True)
class Wanted:
    """What is written of a translation."""

    format: OutputFormat = "text"
    alignment: bool = False

    def check(self, n_best: int) -> None:
        """Raises InputError where one line is to hold several translations."""
        if self.format == "text" and n_best > 1:
            raise InputError(
                "--format text: has one line for each translation; use tsv or jsonl for --n-best 2 and more"
            )

    def answer(self, translator: Translator, window: Window) -> Answer:
        """Translates a window."""
        found, warnings, subwords = _found(translator, window, scored=self.format != "text")
        return Answer(self._written(translator, window.lines, found), warnings, subwords)

    def values(self, translator: Translator, lines: Sequence[Line]) -> Values:
        """Translates texts that stand in records, each as what its record gets."""
        found, warnings, subwords = _found(translator, Window(lines), scored=self.format == "jsonl")
        if self.format != "jsonl":
            return Values(tuple(best.text for best, *_ in found), warnings, subwords)
        alignments = aligned(translator, found) if self.alignment else [None] * len(found)
        results = (
            json_result(line.text, each, known) for line, each, known in zip(lines, found, alignments, strict=True)
        )
        return Values(tuple(result["translations"] for result in results), warnings, subwords)

    def _written(self, translator: Translator, lines: Sequence[Line], found: Sequence[tuple[Translation, ...]]) -> str:
        if self.format != "jsonl":
            of_line = (
                tsv_lines if self.format == "tsv" else document_lines if translator.search.document else text_lines
            )
            return "".join(of_line(line, each) for line, each in zip(lines, found, strict=True))
        if not self.alignment:
            return "".join(json_lines(line, each, None) for line, each in zip(lines, found, strict=True))
        return "".join(json_lines(*each) for each in zip(lines, found, aligned(translator, found), strict=True))


def _found(
    translator: Translator, window: Window, *, scored: bool
) -> tuple[list[tuple[Translation, ...]], tuple[str, ...], int]:
    """The translations of a window, what is to be said of its lines, and how many subwords the translations have."""
    malloc_trim()
    first_line = window.lines[0].number
    found = translator.candidates(
        [line.text for line in window.lines],
        prefixes=window.prefixes,
        constraints=window.constraints,
        first_line=first_line,
        scored=scored,
    )
    warnings = [line.warning for line in window.lines if line.warning is not None]
    warnings += translator.cuts([best for best, *_ in found], first_line=first_line)
    return found, tuple(warnings), sum(len(translation.tokens) for each in found for translation in each)

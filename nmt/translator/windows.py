"""Translations of windows of lines, as lines of text, of tab-separated values or of JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from nmt.core.errors import InputError
from nmt.core.lines import Line
from nmt.core.memory import malloc_trim
from nmt.translator.translation import Translation
from nmt.translator.translator import Translator

OutputFormat = Literal["text", "tsv", "jsonl"]


@dataclass(frozen=True)
class Window:
    """Lines that are translated together, with the prefixes and constraints of their translations."""

    lines: Sequence[Line]
    prefixes: Sequence[str] | None = None
    constraints: Sequence[Sequence[str]] | None = None


@dataclass(frozen=True)
class WindowTranslation:
    """The translation of a window.

    Attributes:
        text: The lines to write.
        warnings: Warnings about its lines.
        subwords: The number of subwords in all translations.
    """

    text: str
    warnings: tuple[str, ...]
    subwords: int


@dataclass(frozen=True)
class OutputOptions:
    """The form of the output: its format, and with ``alignment`` each translation's alignment in ``jsonl``."""

    format: OutputFormat = "text"
    alignment: bool = False

    def check(self, n_best: int) -> None:
        """Raises InputError if one line would hold several translations."""
        if self.format == "text" and n_best > 1:
            raise InputError(
                "--format text: has one line for each translation; use tsv or jsonl for --n-best 2 and more"
            )

    def translate(self, translator: Translator, window: Window) -> WindowTranslation:
        """Translates a window of lines."""
        malloc_trim()
        candidates = translator.candidates(
            [line.text for line in window.lines],
            prefixes=window.prefixes,
            constraints=window.constraints,
            first_line=window.lines[0].number,
            scored=self.format != "text",
        )
        if self.format == "jsonl":
            from nmt.alignment.formats import json_line
            from nmt.translator.records import aligned, json_result

            alignments = aligned(translator, candidates) if self.alignment else [None] * len(candidates)
            texts = [
                json_line({"line": line.number, **json_result(line.text, of_line, their_alignments)}) + "\n"
                for line, of_line, their_alignments in zip(window.lines, candidates, alignments, strict=True)
            ]
        elif self.format == "tsv":  # a TAB in a paragraph or a tag would begin another cell
            texts = [
                f"{line.number}\t{rank}\t{translation.score:.6f}\t" + translation.text.replace("\t", " ") + "\n"
                for line, of_line in zip(window.lines, candidates, strict=True)
                for rank, translation in enumerate(of_line, 1)
            ]
        elif translator.search.document:  # with the ending of the source line; no line is lost
            texts = [
                f"{best.text}{line.ending}" or "\n" for line, (best, *_) in zip(window.lines, candidates, strict=True)
            ]
        else:
            texts = [f"{best.text}\n" for best, *_ in candidates]
        return WindowTranslation(
            "".join(texts), warnings_of(translator, window.lines, candidates), count_subwords(candidates)
        )


def warnings_of(
    translator: Translator, lines: Sequence[Line], candidates: Sequence[Sequence[Translation]]
) -> tuple[str, ...]:
    """Collects the warnings about lines and their translations."""
    of_lines = [line.warning for line in lines if line.warning is not None]
    return (*of_lines, *translator.cut_warnings([best for best, *_ in candidates], first_line=lines[0].number))


def count_subwords(candidates: Sequence[Sequence[Translation]]) -> int:
    """Counts the subwords in all translations."""
    return sum(len(one.tokens) for of_line in candidates for one in of_line)

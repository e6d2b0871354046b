"""Translations of windows of lines, as lines of text, of tab-separated values or of JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from nmt.core.errors import InputError
from nmt.core.lines import Line
from nmt.core.memory import malloc_trim
from nmt.translator.translation import Translation
from nmt.translator.translator import Translator

if TYPE_CHECKING:
    from nmt.alignment.formats import Alignment

OutputFormat = Literal["text", "tsv", "jsonl"]


@dataclass(frozen=True)
class Window:
    """Lines that are translated together, with what their translations begin with and contain."""

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
class RecordTranslations:
    """The translations of texts in records.

    Attributes:
        values: The value for each record: its translation, or in ``jsonl`` a list of objects, one for each translation.
        warnings, subwords: See ``WindowTranslation``.
    """

    values: tuple[Any, ...]
    warnings: tuple[str, ...]
    subwords: int


@dataclass(frozen=True)
class OutputOptions:
    """The form of the output: its format, and with ``alignment`` each translation's alignment in ``jsonl``."""

    format: OutputFormat = "text"
    alignment: bool = False

    def check(self, n_best: int) -> None:
        """Raises InputError where one line would hold several translations."""
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

            alignments = aligned(translator, candidates) if self.alignment else [None] * len(candidates)
            texts = [
                json_line({"line": line.number, **json_result(line.text, of_line, their_alignments)}) + "\n"
                for line, of_line, their_alignments in zip(window.lines, candidates, alignments, strict=True)
            ]
        elif self.format == "tsv":
            texts = [
                f"{line.number}\t{rank}\t{translation.score:.6f}\t{translation.text}\n"
                for line, of_line in zip(window.lines, candidates, strict=True)
                for rank, translation in enumerate(of_line, 1)
            ]
        elif translator.search.document:  # with the ending of the source line; no line is lost
            texts = [
                f"{best.text}{line.ending}" or "\n" for line, (best, *_) in zip(window.lines, candidates, strict=True)
            ]
        else:
            texts = [f"{best.text}\n" for best, *_ in candidates]
        return WindowTranslation("".join(texts), _warnings(translator, window.lines, candidates), _subwords(candidates))

    def translate_records(self, translator: Translator, lines: Sequence[Line]) -> RecordTranslations:
        """Translates texts of records."""
        malloc_trim()
        candidates = translator.candidates(
            [line.text for line in lines], first_line=lines[0].number, scored=self.format == "jsonl"
        )
        values: list[Any] = [best.text for best, *_ in candidates]
        if self.format == "jsonl":
            alignments = aligned(translator, candidates) if self.alignment else [None] * len(candidates)
            values = [
                json_result(line.text, of_line, their_alignments)["translations"]
                for line, of_line, their_alignments in zip(lines, candidates, alignments, strict=True)
            ]
        return RecordTranslations(tuple(values), _warnings(translator, lines, candidates), _subwords(candidates))


def _warnings(
    translator: Translator, lines: Sequence[Line], candidates: Sequence[Sequence[Translation]]
) -> tuple[str, ...]:
    """Warnings about lines and their translations."""
    of_lines = [line.warning for line in lines if line.warning is not None]
    return (*of_lines, *translator.cut_warnings([best for best, *_ in candidates], first_line=lines[0].number))


def _subwords(candidates: Sequence[Sequence[Translation]]) -> int:
    """The number of subwords in all translations."""
    return sum(len(one.tokens) for of_line in candidates for one in of_line)


def json_result(
    source: str, translations: Sequence[Translation], alignments: Sequence[Alignment | None] | None
) -> dict[str, Any]:
    """The JSON object of a text, without its number: all translations and, where given, their alignments."""
    objects: list[dict[str, Any]] = [
        {
            "text": translation.text,
            "score": round(translation.score, 6),
            "log_prob": round(translation.log_prob, 6),
            "tokens": translation.tokens,
        }
        for translation in translations
    ]
    if alignments is not None:
        from nmt.alignment.formats import json_tree

        for translation_object, alignment in zip(objects, alignments, strict=True):
            translation_object["alignment"] = None if alignment is None else json_tree(alignment)
    return {"source": source, "translations": objects}


def aligned(translator: Translator, candidates: Sequence[Sequence[Translation]]) -> list[list[Alignment | None]]:
    """The alignment of each translation of each line; None where a side has too many subwords for one."""
    from nmt.alignment.formats import side_by_side

    limit = translator.search.max_source_tokens
    fits = [[not one.cut and one.longest <= limit for one in of_line] for of_line in candidates]
    parts = [
        one.parts
        for of_line, flags in zip(candidates, fits, strict=True)
        for one, is_short in zip(of_line, flags, strict=True)
        if is_short
    ]
    pairs = [pair for of_translation in parts for pair in of_translation]
    pieces = iter(translator.align([source for source, _ in pairs], [target for _, target in pairs]))
    alignments = iter([side_by_side([next(pieces) for _ in of_translation]) for of_translation in parts])
    return [[next(alignments) if is_short else None for is_short in flags] for flags in fits]

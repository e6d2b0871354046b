"""Translations of windows of lines, as lines of text, of tab-separated values or of JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Literal

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
    """The form of the output: its format, with ``alignment`` each translation's alignment in ``jsonl``, and with
    ``confidence`` that of each translation, before text and after the columns of ``tsv``. One translation of each line
    is written if it was ``chosen`` among several. ``hint``: what can be done with the file is said at the end."""

    format: OutputFormat = "text"
    alignment: bool = False
    confidence: bool = False
    chosen: bool = False
    hint: bool = True

    def check(self, n_best: int) -> None:
        """Raises InputError if one line would hold several translations."""
        if self.format == "text" and n_best > 1 and not self.chosen:
            raise InputError("--format text: has one line for each text; use tsv or jsonl for --n-best 2 and more")

    def translate(self, translator: Translator, window: Window) -> WindowTranslation:
        """Translates a window of lines."""
        malloc_trim()
        sources = [line.text for line in window.lines]
        first_line, scored = window.lines[0].number, self.format != "text"
        candidates = translator.candidates(
            sources, prefixes=window.prefixes, constraints=window.constraints, first_line=first_line, scored=scored
        )
        if self.format == "jsonl":
            from nmt.alignment.formats import json_line

            objects = json_results(translator, sources, candidates, alignment=self.alignment)
            results = zip(window.lines, objects, strict=True)
            texts = [json_line({"line": line.number, **result}) + "\n" for line, result in results]
        elif self.format == "tsv":  # a TAB in a paragraph or a tag would begin another cell
            texts = [
                f"{line.number}\t{rank}\t{translation.score:.6f}\t" + translation.text.replace("\t", " ") + "\n"
                for line, of_line in zip(window.lines, candidates, strict=True)
                for rank, translation in enumerate(of_line, 1)
            ]
        else:  # a document has the endings of the source lines; no line is lost
            endings = [line.ending if translator.search.document else "\n" for line in window.lines]
            texts = [f"{best.text}{end}" or "\n" for (best, *_), end in zip(candidates, endings, strict=True)]
        if self.confidence:
            from nmt.translator.confidence import with_cells

            texts = with_cells(texts, candidates, self.format)
        return WindowTranslation("".join(texts), *warnings_and_subwords(translator, window.lines, candidates))


def warnings_and_subwords(
    translator: Translator, lines: Sequence[Line], candidates: Sequence[Sequence[Translation]]
) -> tuple[tuple[str, ...], int]:
    """Collects the warnings about lines and their translations, and counts the subwords in all translations."""
    of_lines = [line.warning for line in lines if line.warning is not None]
    cut = translator.cut_warnings([best for best, *_ in candidates], first_line=lines[0].number)
    return (*of_lines, *cut), sum(len(one.tokens) for of_line in candidates for one in of_line)


def json_results(
    translator: Translator, sources: Sequence[str], candidates: Sequence[Sequence[Translation]], *, alignment: bool
) -> list[dict[str, Any]]:
    """Builds the JSON object of each text, without its number: all translations and, with ``alignment``, the alignment
    of each, which is null if a side has too many subwords."""
    objects: list[list[dict[str, Any]]] = [
        [
            {"text": one.text, "score": round(one.score, 6), "log_prob": round(one.log_prob, 6), "tokens": one.tokens}
            for one in of_source
        ]
        for of_source in candidates
    ]
    if translator.estimator is not None:
        for tree, one in zip(chain(*objects), chain(*candidates), strict=True):
            tree["confidence"] = None if one.confidence is None else one.confidence.tree()
    if alignment:
        from nmt.alignment.formats import json_tree, side_by_side

        limit = translator.search.max_source_tokens
        both = list(zip(chain(*candidates), chain(*objects), strict=True))
        short = [(one.parts, tree) for one, tree in both if not one.cut and one.longest <= limit]
        pairs = [pair for parts, _ in short for pair in parts]
        of_parts = iter(translator.align([source for source, _ in pairs], [target for _, target in pairs]))
        for _, tree in both:
            tree["alignment"] = None
        for parts, tree in short:
            tree["alignment"] = json_tree(side_by_side([next(of_parts) for _ in parts]))
    return [{"source": source, "translations": each} for source, each in zip(sources, objects, strict=True)]

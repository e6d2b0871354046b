"""Translations as JSON objects, and translations of texts in records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nmt.core.lines import Line
from nmt.core.memory import malloc_trim
from nmt.translator.translation import Translation
from nmt.translator.translator import Translator
from nmt.translator.windows import OutputOptions, count_subwords, warnings_of

if TYPE_CHECKING:
    from nmt.alignment.formats import Alignment


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


def translate_records(translator: Translator, lines: Sequence[Line], options: OutputOptions) -> RecordTranslations:
    """Translates the texts of records, into the format of ``options``."""
    malloc_trim()
    candidates = translator.candidates(
        [line.text for line in lines], first_line=lines[0].number, scored=options.format == "jsonl"
    )
    values: list[Any] = [best.text for best, *_ in candidates]
    if options.format == "jsonl":
        alignments = aligned(translator, candidates) if options.alignment else [None] * len(candidates)
        values = [
            json_result(line.text, of_line, their_alignments)["translations"]
            for line, of_line, their_alignments in zip(lines, candidates, alignments, strict=True)
        ]
    return RecordTranslations(tuple(values), warnings_of(translator, lines, candidates), count_subwords(candidates))


def json_result(
    source: str, translations: Sequence[Translation], alignments: Sequence[Alignment | None] | None
) -> dict[str, Any]:
    """Builds the JSON object of a text, without its number: all translations and, if given, their alignments."""
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
    """Aligns each translation of each line; None if a side has too many subwords for an alignment."""
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

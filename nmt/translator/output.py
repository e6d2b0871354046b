"""Translations as lines of text, of tab-separated values or of JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from nmt.alignment.formats import Alignment, json_line, json_tree, side_by_side
from nmt.core.lines import Line
from nmt.translator.translation import Translation
from nmt.translator.translator import Translator

OutputFormat = Literal["text", "tsv", "jsonl"]


def text_lines(line: Line, found: Sequence[Translation]) -> str:
    """The best translation alone."""
    return f"{found[0].text}\n"


def document_lines(line: Line, found: Sequence[Translation]) -> str:
    """The best translation alone, with the ending of its source line; LF where there would be nothing else, for a line
    shall not be lost."""
    return f"{found[0].text}{line.ending}" or "\n"


def tsv_lines(line: Line, found: Sequence[Translation]) -> str:
    """A line for each translation: the number of the source line, the rank, both from 1, the score, the text."""
    return "".join(
        f"{line.number}\t{rank}\t{translation.score:.6f}\t{translation.text}\n"
        for rank, translation in enumerate(found, 1)
    )


def json_lines(line: Line, found: Sequence[Translation], alignments: Sequence[Alignment | None] | None) -> str:
    """One object with all translations of a line and, where they are given, their alignments, null for one without."""
    return json_line({"line": line.number, **json_result(line.text, found, alignments)}) + "\n"


def json_result(
    source: str, found: Sequence[Translation], alignments: Sequence[Alignment | None] | None
) -> dict[str, Any]:
    """What a JSON object says of a text, whatever its number."""
    translations: list[dict[str, Any]] = [
        {
            "text": translation.text,
            "score": round(translation.score, 6),
            "log_prob": round(translation.log_prob, 6),
            "tokens": translation.tokens,
        }
        for translation in found
    ]
    if alignments is not None:
        for tree, alignment in zip(translations, alignments, strict=True):
            tree["alignment"] = None if alignment is None else json_tree(alignment)
    return {"source": source, "translations": translations}


def aligned(translator: Translator, found: Sequence[Sequence[Translation]]) -> list[list[Alignment | None]]:
    """How each translation of each line is aligned; None where a side has too many subwords for that."""
    limit = translator.search.max_source_tokens
    parts = [one.parts for each in found for one in each if _can_be_aligned(one, limit)]
    pairs = [pair for each in parts for pair in each]
    pieces = iter(translator.align([source for source, _ in pairs], [target for _, target in pairs]))
    alignments = iter([side_by_side([next(pieces) for _ in each]) for each in parts])
    return [[next(alignments) if _can_be_aligned(one, limit) else None for one in each] for each in found]


def _can_be_aligned(translation: Translation, limit: int) -> bool:
    """Whether both sides of each part have at most ``limit`` subwords."""
    return not translation.cut and translation.longest <= limit

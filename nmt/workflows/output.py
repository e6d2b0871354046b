"""Translations as lines of text, of tab-separated values or of JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from nmt.alignment.formats import Alignment, json_line, json_tree
from nmt.core.lines import Line
from nmt.workflows.translation import Translation

OutputFormat = Literal["text", "tsv", "jsonl"]


def text_lines(line: Line, found: Sequence[Translation]) -> str:
    """The best translation alone."""
    return f"{found[0].text}\n"


def document_lines(line: Line, found: Sequence[Translation]) -> str:
    """The best translation alone, with the ending of its source line."""
    return f"{found[0].text}{line.ending}"


def tsv_lines(line: Line, found: Sequence[Translation]) -> str:
    """A line for each translation: the number of the source line, the rank, both from 1, the score, the text."""
    return "".join(
        f"{line.number}\t{rank}\t{translation.score:.6f}\t{translation.text}\n"
        for rank, translation in enumerate(found, 1)
    )


def json_lines(line: Line, found: Sequence[Translation], alignments: Sequence[Alignment | None] | None) -> str:
    """One object with all translations of a line and, where they are given, their alignments, null for one without."""
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
    return json_line({"line": line.number, "source": line.text, "translations": translations}) + "\n"

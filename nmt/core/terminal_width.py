"""Text in a terminal: the number of cells that it takes, and replacement of characters that cannot or must not be
shown."""

from __future__ import annotations

import unicodedata
from itertools import accumulate

from rich.cells import split_graphemes

_DIRECTIONS = "\u202a\u202b\u202c\u202d\u202e"


def drawable(text: str) -> str:
    """Text with U+FFFD for characters that fonts have no glyph for and XML forbids: control characters, line ends, lone
    surrogates, noncharacters."""
    return "".join(
        "\ufffd" if unicodedata.category(char) in ("Cc", "Cs", "Zl", "Zp") or char in "\ufffe\uffff" else char
        for char in text
    )


def printable(text: str) -> str:
    """Returns drawable text that does not change the direction of the text after it on a terminal."""
    return "".join("\ufffd" if char in _DIRECTIONS else char for char in drawable(text))


def clusters(text: str) -> list[str]:
    """Splits a text into its characters, each with its combining marks and the characters that a joiner adds to it."""
    return [text[start:end] for start, end, _ in split_graphemes(text)[0]]


def cut(text: str, cells: int) -> str:
    """Printable text of at most ``cells`` cells; a longer one ends in an ellipsis."""
    text = printable(text)
    spans, total = split_graphemes(text)
    if total <= cells:
        return text
    ends = accumulate(size for _, _, size in spans)
    return f"{next(text[:start] for (start, _, _), end in zip(spans, ends, strict=True) if end >= cells)}…"


def isolated(text: str) -> str:
    """Text between isolates, if a part of it runs from right to left, so that the text beside it keeps its direction
    (Unicode's bidirectional algorithm, UAX 9)."""
    is_right_to_left = any(unicodedata.bidirectional(char) in ("R", "AL", "AN") for char in text)
    return f"\N{FIRST STRONG ISOLATE}{text}\N{POP DIRECTIONAL ISOLATE}" if is_right_to_left else text

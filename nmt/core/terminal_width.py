"""Text in the cells of a terminal: how wide it is, and how to cut it.

A character of Chinese, Japanese or Korean takes two cells, a mark on another character none; what is not to be shown,
such as control characters, is replaced.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator

_JOINER = "\u200d"


def drawable(text: str) -> str:
    """With a replacement character for what fonts have no picture of, and XML no place: control characters, line ends,
    lone surrogates, what is no character."""
    return "".join("\N{REPLACEMENT CHARACTER}" if _has_no_picture(each) else each for each in text)


def printable(text: str) -> str:
    """The same also for marks of direction: what would steer the terminal."""
    return "".join("\N{REPLACEMENT CHARACTER}" if each in _DIRECTIONS else each for each in drawable(text))


_DIRECTIONS = "\u202a\u202b\u202c\u202d\u202e"


def _has_no_picture(character: str) -> bool:
    return unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp") or character in "\ufffe\uffff"


def clusters(text: str) -> Iterator[str]:
    """The characters of a text, each with the marks on it and with what is joined to it."""
    cluster = ""
    for each in text:
        if cluster and (_is_mark(each) or cluster.endswith(_JOINER)):
            cluster += each
            continue
        if cluster:
            yield cluster
        cluster = each
    if cluster:
        yield cluster


def width(text: str) -> int:
    """Cells that a text takes."""
    return sum(_width(each) for each in clusters(text))


def cut(text: str, cells: int) -> str:
    """A text of at most so many cells, printable; what was cut ends in an ellipsis."""
    text = printable(text)
    if width(text) <= cells:
        return text
    kept, used = "", 0
    for each in clusters(text):
        if used + _width(each) > cells - 1:
            break
        kept, used = kept + each, used + _width(each)
    return f"{kept}…"


def is_right_to_left(text: str) -> bool:
    """Whether some of it is written from right to left."""
    return any(unicodedata.bidirectional(each) in ("R", "AL", "AN") for each in text)


def isolated(text: str) -> str:
    """A text that does not change the direction of what stands beside it (Unicode's bidirectional algorithm, UAX 9);
    nothing is added to text without a part that runs from right to left."""
    return f"\N{FIRST STRONG ISOLATE}{text}\N{POP DIRECTIONAL ISOLATE}" if is_right_to_left(text) else text


def _is_mark(character: str) -> bool:
    return unicodedata.category(character) in ("Mn", "Me", "Mc", "Cf") or "\U0001f3fb" <= character <= "\U0001f3ff"


def _width(cluster: str) -> int:
    first = cluster[0]
    if _is_mark(first) and unicodedata.category(first) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(first) in "WF" or "\ufe0f" in cluster else 1

"""Differences of two sentences, word by word."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher


def marked(text: str, other: str) -> tuple[str, ...]:
    """Divides a text into parts, of which the second, the fourth and so on are the words that are not in a longest
    common subsequence with ``other``, as difflib finds it. All parts together are the text's words, with single spaces
    between them."""
    words = text.split()
    blocks = SequenceMatcher(None, words, other.split(), autojunk=False).get_matching_blocks()
    parts: list[str] = []
    end = 0
    for block in blocks:
        parts += [_joined(words[end : block.a]), _joined(words[block.a : block.a + block.size])]
        end = block.a + block.size
    return _spaced(parts)


def _joined(words: Sequence[str]) -> str:
    return " ".join(words)


def _spaced(parts: Sequence[str]) -> tuple[str, ...]:
    """Yields unmarked and marked parts alternately, beginning with an unmarked one; spaces between parts belong to the
    unmarked ones."""
    found = [""]
    for place, part in enumerate(parts):
        is_marked = place % 2 == 0
        if not part:
            continue
        if is_marked:
            found[-1] += " " if found[-1] else ""
            found += [part, ""]
        else:
            found[-1] += f" {part}" if len(found) > 1 or found[-1] else part
    return tuple(found if found[-1] or len(found) == 1 else found[:-1])

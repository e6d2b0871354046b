"""Differences of two sentences, word by word."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher


def marked(text: str, other: str) -> tuple[str, ...]:
    """A text in parts, of which the second, the fourth and so on are the words that ``other`` has not at their place:
    what is not in a longest common subsequence as difflib finds it. All parts together are the text's words, with one
    space between each two."""
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
    """Odd and even parts by turns, beginning with an unmarked one; spaces between parts go to the unmarked ones."""
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

"""Differences of two sentences, word by word."""

from __future__ import annotations

from difflib import SequenceMatcher


def marked(text: str, other: str) -> tuple[str, ...]:
    """Divides a text into parts, of which the second, the fourth and so on are the words that are not in a longest
    common subsequence with ``other``, as difflib finds it. All parts together are the text's words, with single spaces
    between them."""
    words = text.split()
    parts, end = [""], 0  # spaces between parts belong to the unmarked ones
    for start, _, size in SequenceMatcher(None, words, other.split(), autojunk=False).get_matching_blocks():
        missing, shared = " ".join(words[end:start]), " ".join(words[start : start + size])
        end = start + size
        if missing:
            parts[-1] += " " if parts[-1] else ""
            parts += [missing, ""]
        if shared:
            parts[-1] += f" {shared}" if len(parts) > 1 or parts[-1] else shared
    return tuple(parts if parts[-1] or len(parts) == 1 else parts[:-1])

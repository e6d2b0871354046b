"""Differences of two sentences, word by word."""

from __future__ import annotations

from difflib import SequenceMatcher
from itertools import groupby


def marked(text: str, other: str) -> tuple[str, ...]:
    """Divides a text into parts, of which the second, the fourth and so on are the words that are not in a longest
    common subsequence with ``other``, as difflib finds it. All parts together are the text's words, with single spaces
    between them."""
    words = text.split()
    matches = SequenceMatcher(None, words, other.split(), autojunk=False).get_matching_blocks()
    shared = {place for start, _, size in matches for place in range(start, start + size)}
    parts = [] if 0 in shared else [""]
    for is_shared, run in groupby(range(len(words)), shared.__contains__):
        places = list(run)
        part = " ".join(words[place] for place in places)
        # spaces between parts belong to the unmarked ones
        parts.append(f"{' ' * (places[0] > 0)}{part}{' ' * (places[-1] < len(words) - 1)}" if is_shared else part)
    return tuple(parts)

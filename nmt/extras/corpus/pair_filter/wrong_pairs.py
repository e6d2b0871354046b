"""Makes wrong pairs from the pairs of a corpus, as counter-examples to learn from.

partner                        the target of another pair
source cut, target cut         a third to two thirds of the words of one side are gone, at its beginning or at its end
source joined, target joined   the same side of another pair follows one side
source copied, target copied   both sides are the source, or both the target
swapped                        source and target are exchanged

Each side has a kind of its own, because in a corpus often only one of them is cut or copied.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

import numpy as np

from nmt.data.words import is_punctuation

Pair: TypeAlias = tuple[str, str]

SHARES = {"right": 0.0, "partner": 0.3, "source cut": 0.17, "target cut": 0.17, "source joined": 0.05,
          "target joined": 0.05, "source copied": 0.07, "target copied": 0.07, "swapped": 0.12}  # fmt: skip
"""Shares of the kinds among the pairs that are made."""
KINDS = tuple(SHARES)


def examples_of(pairs: Sequence[Pair], row: int, count: int, random: np.random.Generator) -> Iterator[tuple[int, Pair]]:
    """Yields the pair in this row and ``count`` wrong pairs made from it, each with its index in `KINDS`. A side may be
    blank."""
    yield 0, pairs[row]
    for kind in random.choice(len(KINDS), size=count, p=list(SHARES.values())).tolist():
        made = wrong_pair(pairs, row, KINDS[kind], random)
        yield kind if made != pairs[row] else 0, made


def wrong_pair(pairs: Sequence[Pair], row: int, kind: str, random: np.random.Generator) -> Pair:
    """Makes a wrong pair of this kind from the one in this row."""
    sides = list(pairs[row])
    side, other = int(kind.startswith("target")), int(random.integers(1, len(pairs)))
    another = pairs[(row + other) % len(pairs)]
    if kind == "partner":
        sides[1] = another[1]
    elif kind.endswith("cut"):
        sides[side] = _cut(sides[side], random)
    elif kind.endswith("joined"):
        sides[side] += f" {another[side]}"
    elif kind.endswith("copied"):
        sides[1 - side] = sides[side]
    else:
        sides.reverse()
    return sides[0], sides[1]


def _cut(text: str, random: np.random.Generator) -> str:
    """Returns one part of the words, or of the characters of a single word or a text without spaces; "" for a single
    character. If the part lacks the final punctuation, it is added half of the time, because a sentence with a proper
    end may also lack its half."""
    gap = " " if " " in text.strip() else ""
    words = text.split() if gap else list(text.strip())
    share, is_end, keeps_mark = random.random(3)
    left = min(max(1, round((1 + share) / 3 * len(words))), len(words) - 1)
    part = gap.join(words[-left:] if is_end < 0.5 else words[:left]) if left > 0 else ""
    mark = text.strip()[-1:]
    if part and keeps_mark < 0.5 and is_punctuation(mark) and not part.endswith(mark):
        part = part.rstrip(",;:") + mark
    return part

"""Random choices that are the same in every Python version.

``random.Random.choice`` and ``shuffle`` have changed between Python versions, ``random()`` has
not, so everything here is built on ``random()`` alone.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


class Sampler:
    """A seeded source of choices."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._uses: dict[str, int] = {}

    def chance(self, probability: float) -> bool:
        """True with the given probability."""
        return self._random.random() < probability

    def choice(self, items: Sequence[T]) -> T:
        """One item, all equally likely."""
        return items[int(self._random.random() * len(items))]

    def weighted(self, items: Sequence[tuple[T, float]]) -> T:
        """One item, with probability in proportion to its weight."""
        point = self._random.random() * sum(weight for _, weight in items)
        for item, weight in items:
            point -= weight
            if point < 0:
                return item
        return items[-1][0]

    def balanced(self, items: Sequence[T], names: Sequence[str]) -> T:
        """One item, preferring those used less: the least used of three random candidates.

        Uniform choices from overlapping classes would leave some words rare; this keeps every
        word of the lexicon in healthy use.
        """
        size = len(items)
        picks = [int(self._random.random() * size) for _ in range(3)]
        best = min(picks, key=lambda index: self._uses.get(names[index], 0))
        self._uses[names[best]] = self._uses.get(names[best], 0) + 1
        return items[best]

    def shuffled(self, items: Sequence[T]) -> list[T]:
        """A shuffled copy (Fisher-Yates)."""
        result = list(items)
        for last in range(len(result) - 1, 0, -1):
            other = int(self._random.random() * (last + 1))
            result[last], result[other] = result[other], result[last]
        return result

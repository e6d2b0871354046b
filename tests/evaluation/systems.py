"""A made-up test set and translations of it, of several qualities."""

from __future__ import annotations

import random

WORDS = "the a dog cat house, old red runs. sees park tree and over under Mary's 3.5 slowly".split()  # noqa: SIM905


def references(count: int, *, seed: int = 1) -> list[str]:
    """Sentences of 1 to 25 words."""
    draw = random.Random(seed)
    return [" ".join(draw.choices(WORDS, k=draw.randint(1, 25))) for _ in range(count)]


def translations(of: list[str], *, errors: float, seed: int) -> list[str]:
    """The references with about this share of the words left out or replaced."""
    draw = random.Random(seed)

    def changed(word: str) -> list[str]:
        if draw.random() >= errors:
            return [word]
        return draw.choice([[], [draw.choice(WORDS)]])

    return [" ".join(new for word in line.split() for new in changed(word)) for line in of]

"""Makes wrong pairs out of the pairs of a corpus, as counter-examples to learn from.

partner   the target of another pair
similar   the target of a pair whose target is as long and begins alike
cut       a third to two thirds of the words of one side are gone, at its beginning or at its end
joined    the same side of another pair follows one side
copied    both sides are the source, or both the target
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from nmt.data.tokenizer import MARK, Tokenizer
from nmt.data.words import is_punctuation

Tokens: TypeAlias = NDArray[np.int32]
TokenPair: TypeAlias = tuple[Tokens, Tokens]

SHARES = {"partner": 0.4, "similar": 0.2, "cut": 0.2, "joined": 0.1, "copied": 0.1}
WRONG = 3
"""Wrong pairs for each right one."""
NEIGHBOURS = (5, 50)
"""Places to a similar target among all, by length and tokens; the nearest may be translations too."""


class WrongPairs:
    """Batches of pairs at random, and wrong pairs made of them. Every side has tokens."""

    def __init__(self, pairs: Sequence[TokenPair], tokenizer: Tokenizer, random: np.random.Generator) -> None:
        self._pairs = pairs
        self._random = random
        pieces = tokenizer.pieces(range(tokenizer.size))
        self._begins_V = np.array([piece.startswith(MARK) for piece in pieces])
        self._is_mark_V = np.array([is_punctuation(piece.lstrip(MARK)) for piece in pieces])
        self._order = sorted(range(len(pairs)), key=lambda row: (len(pairs[row][1]), pairs[row][1].tolist()))
        self._rank = np.argsort(self._order)

    def batch(self, size: int) -> tuple[list[TokenPair], list[TokenPair]]:
        """Pairs of the corpus, and for each of them `WRONG` wrong ones."""
        rows = self._random.integers(len(self._pairs), size=size).tolist()
        kinds = self._random.choice(list(SHARES), size=WRONG * size, p=list(SHARES.values()))
        wrong = [self.of(row, kind) for row, kind in zip(rows * WRONG, kinds, strict=True)]
        return [self._pairs[row] for row in rows], wrong

    def of(self, row: int, kind: str) -> TokenPair:
        """A wrong pair made of this one."""
        sides = list(self._pairs[row])
        side, sign, other = self._random.integers([2, 2, len(self._pairs) - 1])
        another = self._pairs[(row + 1 + other) % len(self._pairs)]
        if kind == "partner":
            sides[1] = another[1]
        elif kind == "similar":
            place, distance = self._rank[row], int(self._random.integers(*NEIGHBOURS)) * (2 * sign - 1)
            place += distance if 0 <= place + distance < len(self._pairs) else -distance
            sides[1] = self._pairs[self._order[place]][1]
        elif kind == "cut":
            sides[side] = self._cut(sides[side])
        elif kind == "joined":
            sides[side] = np.concatenate([sides[side], another[side]])
        else:
            sides[1 - side] = sides[side]
        return sides[0], sides[1]

    def _cut(self, tokens: Tokens) -> Tokens:
        """One part of the tokens. Where it lacks the final punctuation, that is added half of the time: a sentence that
        ends well may lack its half too."""
        begin_W = np.flatnonzero(self._begins_V[tokens])
        if len(begin_W) < 2:  # a single word, or a text without spaces
            begin_W = np.arange(len(tokens))
        share, is_end, keeps_mark = self._random.random(3)
        place = begin_W[max(1, int((1 + share) / 3 * len(begin_W)))] if len(begin_W) > 1 else 0
        part = tokens[place:] if place and is_end < 0.5 else tokens[:place]
        if len(part) and keeps_mark < 0.5 and self._is_mark_V[tokens[-1]] and not self._is_mark_V[part[-1]]:
            part = np.append(part, tokens[-1])
        return part

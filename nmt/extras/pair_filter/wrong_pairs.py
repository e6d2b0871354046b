"""Makes wrong pairs out of the pairs of a corpus, as counter-examples to learn from.

partner   the target of another pair
cut       a third to two thirds of the words of one side are gone, at its beginning or at its end
joined    the same side of another pair follows one side
copied    both sides are the source, or both the target
swapped   source and target are exchanged
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from nmt.data.tokenizer import MARK, Tokenizer
from nmt.data.words import is_punctuation

Tokens: TypeAlias = NDArray[np.int32]
TokenPair: TypeAlias = tuple[Tokens, Tokens]

SHARES = {"partner": 0.4, "cut": 0.3, "joined": 0.1, "copied": 0.1, "swapped": 0.1}
KINDS = tuple(SHARES)
WRONG = 3
"""Wrong pairs for each right one."""


class WrongPairs:
    """Batches of pairs at random, and wrong pairs made of them. Every side has tokens."""

    def __init__(self, pairs: Sequence[TokenPair], tokenizer: Tokenizer, random: np.random.Generator) -> None:
        self._pairs = pairs
        self._random = random
        pieces = tokenizer.pieces(range(tokenizer.size))
        self._begins_V = np.array([piece.startswith(MARK) for piece in pieces])
        self._is_mark_V = np.array([is_punctuation(piece.lstrip(MARK)) for piece in pieces])

    def drawn(self, row: int) -> Iterator[tuple[int, TokenPair]]:
        """Wrong pairs of random kinds made of this one, each with the number of its kind in `KINDS`, from 1."""
        for kind in self._random.choice(len(KINDS), size=WRONG, p=list(SHARES.values())).tolist():
            yield kind + 1, self.of(row, KINDS[kind])

    def of(self, row: int, kind: str) -> TokenPair:
        """A wrong pair made of this one."""
        sides = list(self._pairs[row])
        side, other = self._random.integers([2, len(self._pairs) - 1])
        another = self._pairs[(row + 1 + other) % len(self._pairs)]
        if kind == "partner":
            sides[1] = another[1]
        elif kind == "cut":
            sides[side] = self._cut(sides[side])
        elif kind == "joined":
            sides[side] = np.concatenate([sides[side], another[side]])
        elif kind == "copied":
            sides[1 - side] = sides[side]
        else:
            sides.reverse()
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

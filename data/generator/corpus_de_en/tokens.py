"""Words with alignment anchors.

A derivation builds the German and the English side at the same time.  Words that translate each
other are given the same *anchor*, an arbitrary number; they may then be moved about freely, and
the gold alignment of a finished sentence is read off as the pairs of words that share an anchor.
No string is ever compared.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

_numbers = itertools.count()

PUNCTUATION = frozenset({",", ".", "?", "!"})


def anchor() -> int:
    """A new anchor, different from all others."""
    return next(_numbers)


@dataclass(frozen=True)
class Token:
    """One word, with the anchors it is surely and the ones it is possibly linked by.

    ``notes`` carries what the word adds to the record of its sentence (see ``grammar.Record``):
    its lemma and, for an adjective, its combination with the noun.
    """

    text: str
    sure: frozenset[int] = frozenset()
    possible: frozenset[int] = frozenset()
    notes: tuple[str, ...] = ()

    def joined(self, other: Token, text: str) -> Token:
        """Both words as one (in + dem -> im), with the anchors of both."""
        return Token(text, self.sure | other.sure, self.possible | other.possible, self.notes + other.notes)


def words(text: str | Iterable[str], *sure: int, maybe: Iterable[int] = (), notes: tuple[str, ...] = ()) -> list[Token]:
    """The words of ``text``, all with the same anchors and notes."""
    parts = text.split() if isinstance(text, str) else text
    return [Token(part, frozenset(sure), frozenset(maybe), notes) for part in parts]


COMMA = Token(",")


@dataclass(frozen=True)
class Link:
    """An alignment link between two zero-based word positions."""

    source: int
    target: int
    sure: bool

    def __str__(self) -> str:
        return f"{self.source}{'-' if self.sure else 'p'}{self.target}"


def finish(tokens: Sequence[Token], mark: str) -> list[Token]:
    """The sentence as it is written: punctuation attached, first letter a capital.

    Of two punctuation marks in a row only the later is kept, so that a clause may always ask for
    its closing comma.
    """
    result: list[Token] = []
    pending = ""
    for token in [*tokens, Token(mark)]:
        if token.text in PUNCTUATION:
            pending = token.text
            continue
        if pending and result:
            result[-1] = replace(result[-1], text=result[-1].text + pending)
        pending = ""
        result.append(token)
    result[-1] = replace(result[-1], text=result[-1].text + pending)
    first = result[0]
    result[0] = replace(first, text=first.text[0].upper() + first.text[1:])
    return result


def align(source: Sequence[Token], target: Sequence[Token]) -> list[Link]:
    """All links between two finished sentences, in reading order of the source."""
    links = []
    for i, left in enumerate(source):
        for j, right in enumerate(target):
            if left.sure & right.sure:
                links.append(Link(i, j, True))
            elif (left.sure | left.possible) & (right.sure | right.possible):
                links.append(Link(i, j, False))
    return links

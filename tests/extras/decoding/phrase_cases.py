"""Phrases that a translation must contain, and a plain search for them."""

from __future__ import annotations

import itertools

from nmt.search.hypothesis import WORD_END, Constraint, Phrase
from tests.search.plain_search import Tokens

FOLLOWING = (4, 1)
"""Tokens that may follow the end of a word."""


def single(*phrases: Phrase) -> tuple[Constraint, ...]:
    """Phrases without alternatives."""
    return tuple((phrase,) for phrase in phrases)


PHRASES = (single((4, 5), (1,)), (), single((5, 1)))
ALTERNATIVES: tuple[tuple[Constraint, ...], ...] = ((((4, 5), (1,)), ((1, 5), (4,))), (), (((5, 1, 1), (5, 4)),))


ENTANGLED: tuple[tuple[Constraint, ...], ...] = (
    single((4, 5), (1,)),
    single((4, 5), (4, 1)),  # a common first token
    single((4, 4, 5)),  # a phrase that overlaps itself
    single((4, 5), (5,)),  # a phrase inside another
    single((4, 5), (5, 4)),  # the end of one begins the other
    single((4, 4), (4,), (4, 4)),  # two equal ones
    single((4, 5, 1), (5, 1), (4,)),
    single((4,), (5,), (1,)),
)
CHOICES: tuple[tuple[Constraint, ...], ...] = (
    *ALTERNATIVES[::2],
    (((4, 5, 1), (4, 1)),),  # a common first token
    (((4,), (4, 5)), ((5,),)),  # one alternative begins another, and ends as another phrase
    (((4,), (5,)), ((4,),)),  # the first is best met by what the second does not need
    (((4, 4, 5), (1, 4)), ((4, 4, 5), (1, 4))),  # two equal ones
    (((4, 5), (1,)), ((5, 4), (4, 4, 4)), ((5,),)),
)
AT_ENDS: tuple[tuple[Constraint, ...], ...] = (
    (((4, 5, WORD_END),),),
    (((4, WORD_END),), ((4, 5, WORD_END),)),  # what goes on after the first is the second
    (((4, 4, WORD_END),), ((4, WORD_END),)),
    (((4, WORD_END), (1, 5, WORD_END)), ((4, 5, WORD_END),)),
    (((1, WORD_END),), ((4, 5),)),  # one of two asks for the end of a word
    (((1, WORD_END), (1, 5)), ((1, 4, WORD_END),)),
)


def contains(tokens: Tokens, phrases: tuple[Constraint, ...], used: frozenset[int] = frozenset()) -> bool:
    """Returns True if one alternative of each phrase occurs in the tokens, without overlaps, in any order."""
    if not phrases:
        return True
    alternatives, *others = phrases
    for each in alternatives:
        phrase = tuple(token for token in each if token != WORD_END)
        for at in range(len(tokens) - len(phrase) + 1):
            place = range(at, at + len(phrase))
            is_end = len(phrase) == len(each) or tokens[place.stop : place.stop + 1] in [(), *((t,) for t in FOLLOWING)]
            is_free = tokens[at : place.stop] == phrase and is_end and used.isdisjoint(place)
            if is_free and contains(tokens, tuple(others), used.union(place)):
                return True
    return False


def least_missing(tokens: Tokens, phrases: tuple[Constraint, ...]) -> int:
    """The length of the shortest continuation that completes the phrases, by trying all."""
    words = sorted({token for alternatives in phrases for phrase in alternatives for token in phrase} - {WORD_END})
    return next(
        size
        for size in itertools.count()
        if any(contains((*tokens, *more), phrases) for more in itertools.product(words, repeat=size))
    )

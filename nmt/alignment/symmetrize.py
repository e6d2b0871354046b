"""Symmetrization: a forward and a backward alignment are joined into one by a heuristic.

Koehn, Och and Marcu 2003 ("Statistical Phrase-Based Translation", section 4.5) and Koehn et al. 2005 ("Edinburgh System
Description for the 2005 IWSLT Speech Translation Evaluation"), in the form that Moses made the standard:

    intersection         links in both: precise
    union                links in either: complete
    grow-diag            intersection, then, from every link reached so far, neighbours (also diagonal) that are in the
                         union and have a word that no link reaches yet
    grow-diag-final      then every link of either direction that has a word without a link
    grow-diag-final-and  then only those whose two words are both without a link

Growth visits links in order of target index, then source index, round after round. The final step goes through the
forward links first, then the backward ones, each in that same order. What is added counts at once. The original takes
each direction as a function (a word has at most one link); here both may be any set of links, and for functions the
result is that of Moses' symal.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from typing import Literal, TypeAlias, get_args

from nmt.alignment import Link, Links
from nmt.core.errors import InputError

Heuristic: TypeAlias = Literal["intersection", "union", "grow-diag", "grow-diag-final", "grow-diag-final-and"]

HEURISTICS: tuple[str, ...] = get_args(Heuristic)

_NEIGHBOURS = ((0, -1), (-1, 0), (0, 1), (1, 0), (-1, -1), (1, -1), (-1, 1), (1, 1))
"""Steps in (source, target): the four sides first, then the corners, in the order of Moses' symal."""


def symmetrize(forward: Iterable[Link], backward: Iterable[Link], heuristic: Heuristic) -> Links:
    """Joins the links of two directions. Both hold (source, target) pairs, so the links of a reverse model must be
    swapped before.

    `forward` comes from the model that translates source to target, `backward` from its reverse; only the final step
    can tell them apart. Raises InputError for an unknown heuristic.

    >>> symmetrize([(0, 0), (1, 1)], [(0, 0), (1, 0)], "grow-diag")
    ((0, 0), (1, 0), (1, 1))
    """
    forward, backward = frozenset(forward), frozenset(backward)
    match heuristic:
        case "intersection":
            return tuple(sorted(forward & backward))
        case "union":
            return tuple(sorted(forward | backward))
        case "grow-diag" | "grow-diag-final" | "grow-diag-final-and":
            growth = _Growth(forward & backward)
            growth.grow(forward | backward)
            if heuristic != "grow-diag":
                for direction in (forward, backward):
                    growth.final(direction, both=heuristic == "grow-diag-final-and")
            return tuple(sorted(growth.links))
    raise InputError(f"unknown symmetrization {heuristic!r}: choose one of {', '.join(HEURISTICS)}")


def swapped(links: Iterable[Link]) -> Links:
    """Returns links of the reverse direction with source and target exchanged, sorted."""
    return tuple(sorted((source, target) for target, source in links))


class _Growth:
    """A set of links that grows, with the words that it reaches."""

    def __init__(self, links: frozenset[Link]) -> None:
        self.links = set(links)
        self.sources = {source for source, _ in links}
        self.targets = {target for _, target in links}

    def grow(self, union: frozenset[Link]) -> None:
        # Reached words stay reached, so a neighbour refused once is refused for ever and each link need be visited only
        # once. A link added behind the current one waits for the next round, one added ahead is met in this round.
        # Links beside none that could be added need no visit.
        near = {(source + x, target + y) for source, target in union - self.links for x, y in _NEIGHBOURS}
        queue = [(0, target, source) for source, target in self.links & near]
        heapq.heapify(queue)
        while queue:
            turn, target, source = heapq.heappop(queue)
            for source_step, target_step in _NEIGHBOURS:
                link = (source + source_step, target + target_step)
                if link in union and link not in self.links and not all(self._reached(link)):
                    self._add(link)
                    ahead = (link[1], link[0]) > (target, source)
                    heapq.heappush(queue, (turn if ahead else turn + 1, link[1], link[0]))

    def final(self, direction: frozenset[Link], *, both: bool) -> None:
        for link in sorted(direction - self.links, key=lambda link: (link[1], link[0])):
            reached = self._reached(link)
            if not (any(reached) if both else all(reached)):
                self._add(link)

    def _reached(self, link: Link) -> tuple[bool, bool]:
        return link[0] in self.sources, link[1] in self.targets

    def _add(self, link: Link) -> None:
        self.links.add(link)
        self.sources.add(link[0])
        self.targets.add(link[1])

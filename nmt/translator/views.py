"""What aligns sentence pairs, and how it is looked at.

An `Aligner` is all that is needed: a model, two of them, links from files. ``one_view("name", aligner)`` makes
`Views` of it, which `nmt.workflows.align.write_alignments` writes in any format, draws, judges and reports on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from nmt.alignment.directions import Join
from nmt.alignment.formats import Alignment
from nmt.alignment.views import Side, View


class Aligner(Protocol):
    """Aligns sentence pairs. It is asked for all pairs once, in order, some of them each time."""

    def align(self, sources: Sequence[str], targets: Sequence[str], *, first_line: int) -> list[Alignment]:
        """One alignment, source to target, for each pair; ``first_line`` is the first one's number, from 1."""


class Direction(Protocol):
    """Aligns sentence pairs one way by several views, which may share the work."""

    def by_views(
        self, views: Sequence[View], sources: Sequence[str], targets: Sequence[str], *, first_line: int
    ) -> Mapping[View, list[Alignment]]:
        """By each of different views what an `Aligner` gives."""


@dataclass(frozen=True)
class OneWay:
    """A direction that an aligner knows by itself, whatever the view is called."""

    aligner: Aligner

    def by_views(
        self, views: Sequence[View], sources: Sequence[str], targets: Sequence[str], *, first_line: int
    ) -> Mapping[View, list[Alignment]]:
        return dict.fromkeys(views, self.aligner.align(sources, targets, first_line=first_line))


@dataclass(frozen=True)
class Views:
    """One or several alignments of each pair."""

    shown: Sequence[View]
    """Different ones. The first is what is written where a pair can have but one."""
    directions: Mapping[Side, Direction]
    """The forward one, and maybe a backward one, which aligns target to source."""
    join: Join | None = None
    """Makes one alignment of those of two directions."""

    @property
    def names(self) -> list[str]:
        return [each.name for each in self.shown]

    def align(self, sources: Sequence[str], targets: Sequence[str], *, first_line: int) -> list[list[Alignment]]:
        """By each view what an `Aligner` gives."""
        alone: dict[View, list[Alignment]] = {}
        for side, direction in self.directions.items():
            asked = dict.fromkeys(replace(each, side=side) for each in self.shown if each.side in (None, side))
            texts = (sources, targets) if side == "forward" else (targets, sources)
            if asked:
                alone.update(direction.by_views(list(asked), *texts, first_line=first_line))
        return [self._of(each, alone) for each in self.shown]

    def _of(self, asked: View, alone: Mapping[View, list[Alignment]]) -> list[Alignment]:
        if asked.side == "backward":
            return [each.turned() for each in alone[asked]]
        forward = alone[replace(asked, side="forward")]
        if asked.side == "forward" or self.join is None:
            return forward
        backward = alone[replace(asked, side="backward")]
        return [self.join(one, other) for one, other in zip(forward, backward, strict=True)]


def one_view(name: str, aligner: Aligner) -> Views:
    """What an aligner gives, under a name."""
    return Views([View(name)], {"forward": OneWay(aligner)})

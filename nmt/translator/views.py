"""Several alignments of the same sentence pairs, by one direction or two.

A `PairAligner` may be a model, two models, or links from files. ``one_view("name", aligner)`` turns it into `Views`,
which `nmt.workflows.align.write_alignments` writes in any format, draws, scores and reports on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from nmt.alignment.directions import Join
from nmt.alignment.formats import Alignment
from nmt.alignment.views import Side, View


class PairAligner(Protocol):
    """Aligns sentence pairs, in order; each call gets the next ones."""

    def align(self, sources: Sequence[str], targets: Sequence[str], *, first_line: int) -> list[Alignment]:
        """Aligns each pair, source to target; ``first_line`` is the number of the first pair, from 1."""


class Direction(Protocol):
    """Aligns sentence pairs from source to target by several views, which may share the work."""

    def by_views(
        self, views: Sequence[View], sources: Sequence[str], targets: Sequence[str], *, first_line: int
    ) -> Mapping[View, list[Alignment]]:
        """Aligns each pair by each view; no view occurs twice."""


@dataclass(frozen=True)
class OneWay:
    """A direction whose aligner gives the same alignments by every view."""

    aligner: PairAligner

    def by_views(
        self, views: Sequence[View], sources: Sequence[str], targets: Sequence[str], *, first_line: int
    ) -> Mapping[View, list[Alignment]]:
        return dict.fromkeys(views, self.aligner.align(sources, targets, first_line=first_line))


@dataclass(frozen=True)
class Views:
    """One or several alignments of each pair."""

    shown: Sequence[View]
    """Distinct views. The first one is written if a format has a single alignment for a pair."""
    directions: Mapping[Side, Direction]
    """The forward direction, and optionally a backward one, which aligns target to source."""
    join: Join | None = None
    """Rule that joins the alignments of two directions; None with one direction."""

    @property
    def names(self) -> list[str]:
        return [view.name for view in self.shown]

    def align(self, sources: Sequence[str], targets: Sequence[str], *, first_line: int) -> list[list[Alignment]]:
        """Aligns all pairs by each view."""
        by_side: dict[View, list[Alignment]] = {}
        for side, direction in self.directions.items():
            views = dict.fromkeys(replace(view, side=side) for view in self.shown if view.side in (None, side))
            texts = (sources, targets) if side == "forward" else (targets, sources)
            if views:
                by_side.update(direction.by_views(list(views), *texts, first_line=first_line))
        return [self._joined(view, by_side) for view in self.shown]

    def _joined(self, view: View, by_side: Mapping[View, list[Alignment]]) -> list[Alignment]:
        if view.side == "backward":
            return [alignment.turned() for alignment in by_side[view]]
        forward = by_side[replace(view, side="forward")]
        if view.side == "forward" or self.join is None:
            return forward
        backward = by_side[replace(view, side="backward")]
        return [self.join(one, other) for one, other in zip(forward, backward, strict=True)]


def one_view(name: str, aligner: PairAligner) -> Views:
    """Creates views with one view of this name, whose alignments come from one aligner."""
    return Views([View(name)], {"forward": OneWay(aligner)})

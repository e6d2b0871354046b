"""Requests for alignments: the method, the heads that it uses, and the direction, each with a name.

    attention                the alignment of --method attention
    attention:layer3.*       by the mean of these heads
    each:layer3.*            by each of these heads, as a view of its own
    gradient                 the alignment of --method gradient; likewise the other methods
    backward:attention       the alignment of only the second of two models; forward: the first
    links, backward:links    links from files, of both directions joined or of one

`--view` takes these names, and the page shows the alignments of several requests side by side.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias, cast, get_args

from nmt import plugins
from nmt.alignment import METHODS, Magnitude
from nmt.core.errors import InputError

if TYPE_CHECKING:
    from nmt.alignment.directions import Join
    from nmt.alignment.formats import Alignment

Direction: TypeAlias = Literal["forward", "backward"]

LINKS = "links"
"""Method of links from files."""

BY_ATTENTION = ("attention", "shifted-attention")
"""Methods that use attention heads."""

_EACH = "each"


@dataclass(frozen=True)
class AlignmentRequest:
    """A method of alignment and its settings."""

    method: str = "attention"
    """A method of a model, or the name of another kind of aligner."""
    heads: str | None = None
    """Pattern over the names of heads; None means the heads of the configuration."""
    each: bool = False
    """Stands for one request for each head that matches the pattern."""
    direction: Direction | None = None
    """One of two directions; None means both, joined, or the only one."""
    symmetrization: Join | None = None
    """Rule that joins two directions."""
    magnitude: Magnitude = "relative"
    """Scale of a method by gradients."""

    @property
    def name(self) -> str:
        """The name that `parse_request` reads."""
        method = _EACH if self.each else self.method
        return ":".join(part for part in (self.direction, method, self.heads) if part is not None)


class PairAligner(Protocol):
    """Aligns sentence pairs, in order; each call gets the next ones."""

    def __call__(
        self, requests: Sequence[AlignmentRequest], sources: Sequence[str], targets: Sequence[str], *, first_line: int
    ) -> Mapping[AlignmentRequest, Sequence[Alignment]]:
        """Aligns each pair, source to target, for each of the requests, none of which occurs twice. ``first_line`` is
        the number of the first pair, from 1."""


def align_both(
    forward: PairAligner, backward: PairAligner, requests: Sequence[AlignmentRequest], sources: Sequence[str],
    targets: Sequence[str], *, first_line: int,
) -> dict[AlignmentRequest, Sequence[Alignment]]:  # fmt: skip
    """Aligns pairs by two aligners, the second of which aligns target to source, or joins the alignments of both."""
    aligned: dict[AlignmentRequest, Sequence[Alignment]] = {}
    texts_of_both = ((sources, targets), (targets, sources))
    for direction, align, texts in zip(get_args(Direction), (forward, backward), texts_of_both, strict=True):
        own = dict.fromkeys(one_way(each, direction) for each in requests if each.direction in (None, direction))
        if own:
            aligned |= align(list(own), *texts, first_line=first_line)
    found: dict[AlignmentRequest, Sequence[Alignment]] = {}
    for request in requests:
        if request.direction is None:
            assert request.symmetrization is not None
            both = (aligned[one_way(request, direction)] for direction in get_args(Direction))
            found[request] = [request.symmetrization(*pair) for pair in zip(*both, strict=True)]
        else:
            of_one = aligned[one_way(request, request.direction)]
            found[request] = [each.turned() for each in of_one] if request.direction == "backward" else of_one
    return found


def one_way(request: AlignmentRequest, direction: Direction) -> AlignmentRequest:
    """Returns the request to the aligner of one direction."""
    return replace(request, direction=direction, symmetrization=None)


def parse_request(text: str) -> AlignmentRequest:
    """Parses the name of a request to models. Raises InputError for any other text."""
    direction, rest = None, text.split(":")
    if rest[0] in get_args(Direction):
        direction, rest = cast(Direction, rest[0]), rest[1:]
    method, *heads = rest or [""]
    known = [*METHODS, *plugins.entries("methods", METHODS)]
    if method not in (*known, _EACH):
        methods = ", ".join(known)
        raise InputError(f"--view {text}: {method!r} is not a method; choose one of {methods}, or {_EACH}:HEADS")
    if len(heads) > 1 or heads == [""]:
        raise InputError(f"--view {text}: write METHOD or METHOD:HEADS, such as attention:layer3.*")
    if method == _EACH:
        if not heads:
            raise InputError(f"--view {text}: name heads, such as each:layer3.* or each:*")
        return AlignmentRequest("attention", heads[0], each=True, direction=direction)
    if heads and method not in BY_ATTENTION:
        why = f"heads are those of attention, which {method} does not look at; leave them out"
        raise InputError(f"--view {text}: {why}")
    return AlignmentRequest(method, heads[0] if heads else None, direction=direction)


def parse_link_request(text: str) -> AlignmentRequest:
    """Parses the name of a request for links from files. Raises InputError for any other text."""
    requests = (AlignmentRequest(LINKS, direction=direction) for direction in (None, *get_args(Direction)))
    by_name = {request.name: request for request in requests}
    if text not in by_name:
        raise InputError(f"--view {text}: of links from files choose one of {', '.join(by_name)}")
    return by_name[text]

"""Views: several alignments of the same pairs, side by side on a page, each with a name.

    attention                the alignment of --method attention
    attention:layer3.*       by the mean of these heads
    each:layer3.*            by each of these heads, as a view of its own
    gradient                 the alignment of --method gradient; likewise the other methods
    backward:attention       the alignment of only the second of two models; forward: the first
    links, backward:links    links from files, of both directions joined or of one

`--view` takes these names, and the page shows them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, cast, get_args

from nmt import plugins
from nmt.alignment import METHODS, Magnitude
from nmt.core.errors import InputError

Side: TypeAlias = Literal["forward", "backward"]

LINKS = "links"
"""Method of links from files."""

BY_ATTENTION = ("attention", "shifted-attention")
"""Methods that use attention heads."""

_EACH = "each"


@dataclass(frozen=True)
class View:
    """A method, the heads that it uses, and one of two directions."""

    method: str
    """A method of a model, or the name of another kind of aligner."""
    heads: str | None = None
    """Pattern over the names of heads; None means the heads of the configuration."""
    each: bool = False
    """Creates one view for each head that matches the pattern."""
    side: Side | None = None
    """One of two directions; None means both, joined."""
    magnitude: Magnitude = "relative"
    """Scale of a method by gradients."""

    @property
    def name(self) -> str:
        """The name that `parse_view` reads."""
        method = _EACH if self.each else self.method
        return ":".join(part for part in (self.side, method, self.heads) if part is not None)


def parse_view(text: str) -> View:
    """Parses a view of models. Raises InputError for any other text."""
    side, rest = None, text.split(":")
    if rest[0] in get_args(Side):
        side, rest = cast(Side, rest[0]), rest[1:]
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
        return View("attention", heads[0], each=True, side=side)
    if heads and method not in BY_ATTENTION:
        raise InputError(
            f"--view {text}: heads are those of attention, which {method} does not look at; leave them out"
        )
    return View(method, heads[0] if heads else None, side=side)


def parse_link_view(text: str) -> View:
    """Parses a view of links from files. Raises InputError for any other text."""
    views = {view.name: view for view in (View(LINKS), *(View(LINKS, side=side) for side in get_args(Side)))}
    if text not in views:
        raise InputError(f"--view {text}: of links from files choose one of {', '.join(views)}")
    return views[text]

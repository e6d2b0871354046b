"""What is looked at side by side, each view by its name.

    attention                what --method attention gives
    attention:layer3.*       by the mean of these heads
    each:layer3.*            each of these heads for itself
    gradient                 what --method gradient gives; likewise the other methods
    backward:attention       of two models, what the second finds alone; forward: the first
    links, backward:links    links from files, of both directions or of one alone

`--view` takes them, and so names them the page.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, cast, get_args

from nmt.alignment import Method
from nmt.core.errors import InputError

Side: TypeAlias = Literal["forward", "backward"]

LINKS = "links"
"""The method of links that are there already."""

BY_ATTENTION = ("attention", "shifted-attention")
"""Methods that look at heads."""

_EACH = "each"


@dataclass(frozen=True)
class View:
    """One way to align: a method, whose heads where it has any, and which of two directions."""

    method: str
    """One of a model, or what another kind of aligner calls its own."""
    heads: str | None = None
    """A pattern over the names of heads; None: those of the configuration."""
    each: bool = False
    """Each head that fits for itself, which makes several views of one."""
    side: Side | None = None
    """Of two directions the one that is asked alone; None: both, joined."""

    @property
    def name(self) -> str:
        """As it is written."""
        method = _EACH if self.each else self.method
        return ":".join(part for part in (self.side, method, self.heads) if part is not None)


def parse_view(text: str) -> View:
    """A view of models. Raises InputError for what is none."""
    side, rest = None, text.split(":")
    if rest[0] in get_args(Side):
        side, rest = cast(Side, rest[0]), rest[1:]
    method, *heads = rest or [""]
    if method not in (*get_args(Method), _EACH):
        methods = ", ".join(get_args(Method))
        raise InputError(f"--view {text}: {method!r} is no method; choose one of {methods}, or {_EACH}:HEADS")
    if len(heads) > 1 or heads == [""]:
        raise InputError(f"--view {text}: write METHOD or METHOD:HEADS, such as attention:layer3.*")
    if method == _EACH:
        if not heads:
            raise InputError(f"--view {text}: name heads, such as each:layer3.* or each:*")
        return View("attention", heads[0], each=True, side=side)
    if heads and method not in BY_ATTENTION:
        unlooked = f"heads are those of attention, which {method} does not look at"
        raise InputError(f"--view {text}: {unlooked}; leave them out")
    return View(method, heads[0] if heads else None, side=side)


def parse_link_view(text: str) -> View:
    """A view of links from files. Raises InputError for what is none."""
    views = (View(LINKS), *(View(LINKS, side=side) for side in get_args(Side)))
    for each in views:
        if text == each.name:
            return each
    raise InputError(f"--view {text}: of links from files choose one of {', '.join(each.name for each in views)}")

"""Choosing heads of attention by their names."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase


def matching(names: Sequence[str], pattern: str) -> list[int]:
    """The places of the names that match a shell pattern, such as ``layer3.*``. Raises ValueError, which says what
    names there are, where none does."""
    chosen = [place for place, name in enumerate(names) if fnmatchcase(name, pattern)]
    if not chosen:
        known = ", ".join(names) if len(names) <= 8 else f"{names[0]} to {names[-1]}"
        raise ValueError(f"{pattern}: fits no head of this model; it has {known}")
    return chosen

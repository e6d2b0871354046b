"""Choosing heads of attention by their names."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase


def matching(names: Sequence[str], pattern: str) -> list[int]:
    """The indices of the names that match a shell pattern, such as ``layer3.*``; raises ValueError where none does."""
    indices = [index for index, name in enumerate(names) if fnmatchcase(name, pattern)]
    if not indices:
        choices = ", ".join(names) if len(names) <= 8 else f"{names[0]} to {names[-1]}"
        raise ValueError(f"{pattern}: fits no head of this model; it has {choices}")
    return indices

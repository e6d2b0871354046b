"""Names in a model: its heads of attention, and the parts that its parameters belong to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase

PARTS = ("embedding", "encoder", "attention", "decoder", "output")
"""The parts of a model, in the order in which a sentence goes through them."""


def part_of(parameter: str) -> str:
    """Returns the part that a parameter belongs to; the self-attention of an encoder is part of the encoder."""
    first, *rest = parameter.split(".")
    if "embedding" in rest or first == "embedding":
        return "embedding"
    return "attention" if "attention" in rest and first != "encoder" else first


def count(parameters: Mapping[str, int]) -> dict[str, int]:
    """Computes the size of each part of the model from the sizes of its parameters."""
    counts = dict.fromkeys(PARTS, 0)
    for name, numbers in parameters.items():
        part = part_of(name)
        counts[part] = counts.get(part, 0) + numbers
    return {part: numbers for part, numbers in counts.items() if numbers}


def matching(names: Sequence[str], pattern: str) -> list[int]:
    """Returns the indices of the names that match a shell pattern, such as ``layer3.*``; raises ValueError if none
    does."""
    indices = [index for index, name in enumerate(names) if fnmatchcase(name, pattern)]
    if not indices:
        choices = ", ".join(names) if len(names) <= 8 else f"{names[0]} to {names[-1]}"
        raise ValueError(f"{pattern}: fits no head of this model; it has {choices}")
    return indices

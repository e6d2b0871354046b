"""The parts that people see in a model, by the names of its parameters."""

from __future__ import annotations

from collections.abc import Mapping

PARTS = ("embedding", "encoder", "attention", "decoder", "output")
"""In the order in which a sentence goes through them."""


def part_of(parameter: str) -> str:
    """The part that a parameter belongs to; the self-attention of an encoder is part of the encoder."""
    first, *rest = parameter.split(".")
    if "embedding" in rest or first == "embedding":
        return "embedding"
    return "attention" if "attention" in rest and first != "encoder" else first


def count(parameters: Mapping[str, int]) -> dict[str, int]:
    """The size of each part of the model, from the sizes of its parameters."""
    counts = dict.fromkeys(PARTS, 0)
    for name, numbers in parameters.items():
        part = part_of(name)
        counts[part] = counts.get(part, 0) + numbers
    return {part: numbers for part, numbers in counts.items() if numbers}

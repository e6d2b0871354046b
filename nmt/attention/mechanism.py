"""What a file of ``scores`` or ``weights`` must define.

A mechanism is one frozen record: its fields are what a configuration may set, its ``kind`` is its name there, its
methods are its formula over parameters that it is handed. Parameters are only declared here (``Parameter``); the
``Attention`` module makes and owns them. So the file that holds the formula can be read, and every configuration
checked, without torch being imported.

Shapes: B batch, H heads, T target positions (queries), S source positions (keys), Q width of a query, K width of a
key, A width inside a score.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from nmt.core.structure import Structure

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class Parameter:
    """A parameter that a mechanism wants: its shape and how it starts."""

    shape: tuple[int, ...]
    init: Literal["xavier", "zeros", "ones"] = "xavier"


@dataclass(frozen=True)
class Sizes:
    """Widths that a mechanism is built for."""

    query: int
    key: int


class Mechanism(Structure, ABC):
    """One named part of attention, with its formula's name, source and parameters."""

    formula: ClassVar[str]
    """The formula as the table in docs/attention.md shows it."""
    source: ClassVar[str]
    """The paper, as author and year."""

    kind: str

    def parameters(self, sizes: Sizes) -> Mapping[str, Parameter]:
        """The parameters it needs, by name."""
        return {}


@dataclass(frozen=True)
class Projections:
    """The widths A to which a score wants its query and its keys projected first, W q and U k; None: as they are.

    ``Attention`` does it, because it knows when: the keys once for each sentence, the queries of a loop over target
    steps with a weight gradient that is formed once after the loop.
    """

    query: int | None = None
    key: int | None = None


class Score(Mechanism):
    """How well each key answers each query."""

    @abstractmethod
    def projections(self, sizes: Sizes) -> Projections:
        """What is to be done to query and keys before ``__call__``; no biases."""

    @abstractmethod
    def __call__(self, query_BHTA: Tensor, keys_BHSA: Tensor, parameters: Mapping[str, Tensor]) -> Tensor:
        """The scores, (B, H, T, S), from a projected query and projected keys; the caller masks padding."""


class Weighting(Mechanism):
    """How scores become weights."""

    @abstractmethod
    def __call__(self, scores_BHTS: Tensor, parameters: Mapping[str, Tensor]) -> Tensor:
        """Weights that sum to 1 over S, from float32 scores; where those are -inf, at padding, weights are 0."""

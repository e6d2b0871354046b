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
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple

from nmt.config.structure import Structure

if TYPE_CHECKING:
    from torch import Tensor

    from nmt.attention.reinforce import SampledPositions


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
    joint: bool = False
    """Whether W and U are the two halves of one matrix over [query; key]."""

    @classmethod
    def to_one_width(cls, sizes: Sizes) -> Projections:
        """For a score that compares query and key themselves: as they are if equally wide, else U k, U (Q, K)."""
        return cls() if sizes.query == sizes.key else cls(key=sizes.query)


class Score(Mechanism):
    """How well each key answers each query."""

    reads_keys: ClassVar[bool] = True
    """Whether more of the keys counts than how many there are."""

    @abstractmethod
    def projections(self, sizes: Sizes) -> Projections:
        """What is to be done to query and keys before ``__call__``; no biases."""

    def precompute_keys(self, keys_BHSA: Tensor) -> Tensor:
        """The projected keys as ``__call__`` wants them, computed once for each sentence; same shape."""
        return keys_BHSA

    @abstractmethod
    def __call__(self, query_BHTA: Tensor, keys_BHSA: Tensor, parameters: Mapping[str, Tensor]) -> Tensor:
        """The scores, (B, H, T, S), from a projected query and prepared keys; the caller masks padding.

        A score of -inf forbids a position, as the caller does with padding; it may do so at the sentence's end alone.
        """


@dataclass(frozen=True)
class AttentionContext:
    """What a weighting may know beside the scores: who asks, from where, and when."""

    query_BTQ: Tensor
    """Not projected; float32."""
    position_BT: Tensor
    """The target position of each query, from 0."""
    is_training: bool
    update: int
    """Updates of training so far, for what is annealed."""


class AttentionWeights(NamedTuple):
    """What a weighting yields."""

    weights_BHTS: Tensor
    """H is the weighting's ``heads``."""
    choice: SampledPositions | None = None
    """How a position was drawn, where the weighting learns from a reward."""


class Normalizer(Mechanism):
    """How scores become weights."""

    chooses: ClassVar[bool] = False
    """Whether it looks at one position, or at windows round it, instead of weighing all."""

    @property
    def heads(self) -> int:
        """How many sets of weights it makes of one set of scores; their contexts are fused, tanh(W [c_1; ...; c_H])."""
        return 1

    @property
    def marginalizes(self) -> bool:
        """Whether training sums the likelihood over every source position instead of attending to a mixture."""
        return False

    @abstractmethod
    def __call__(
        self, scores_BHTS: Tensor, context: AttentionContext, parameters: Mapping[str, Tensor]
    ) -> AttentionWeights:
        """Weights that sum to 1 over S, from float32 scores; where those are -inf, at the end, weights are 0."""

    @staticmethod
    def allowed(scores_BHTS: Tensor) -> Tensor:
        """How many positions, the first ones, may be looked at: (B, T, 1), at least 1."""
        allowed_BT1: Tensor = scores_BHTS[:, 0].isfinite().sum(dim=-1, keepdim=True)
        return allowed_BT1

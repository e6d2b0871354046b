"""Base classes of the mechanisms in ``scores`` and ``weights``.

A mechanism is one frozen record: its fields are the settings that a configuration may change, its ``kind`` is its name
there, its methods compute its formula from the parameters that they receive. Parameters are only declared here
(``Parameter``); the ``Attention`` module makes and owns them. So the file with the formula can be read, and every
configuration checked, without importing torch.

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
    """A parameter of a mechanism: its shape and its initialisation."""

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
    """The formula that the table in docs/attention.md shows."""
    source: ClassVar[str]
    """The paper, as author and year."""

    kind: str

    def parameters(self, sizes: Sizes) -> Mapping[str, Parameter]:
        """Returns the parameters that the mechanism needs, by name."""
        return {}


@dataclass(frozen=True)
class Projections:
    """The widths A of the projections W q and U k that a score reads; None means that the vectors are not projected.

    ``Attention`` projects the keys once for each sentence.
    """

    query: int | None = None
    key: int | None = None
    joint: bool = False
    """Makes W and U the two halves of one matrix over [query; key]."""

    @classmethod
    def to_one_width(cls, sizes: Sizes) -> Projections:
        """Returns the projections of a score that compares query and key directly: none if they are equally wide, else
        U k with U (Q, K)."""
        return cls() if sizes.query == sizes.key else cls(key=sizes.query)


class Score(Mechanism):
    """Measures the match of each key with each query."""

    reads_keys: ClassVar[bool] = True
    """Declares that the score reads the keys; otherwise it depends on their number only."""

    @abstractmethod
    def projections(self, sizes: Sizes) -> Projections:
        """Returns the projections, without biases, that are applied to query and keys before ``__call__``."""

    def precompute_keys(self, keys_BHSA: Tensor) -> Tensor:
        """Prepares the projected keys for ``__call__``, once for each sentence; their shape stays the same."""
        return keys_BHSA

    @abstractmethod
    def __call__(self, query_BHTA: Tensor, keys_BHSA: Tensor, parameters: Mapping[str, Tensor]) -> Tensor:
        """Computes the scores, (B, H, T, S), from a projected query and prepared keys; the caller masks padding.

        A score of -inf forbids a position, which is also how the caller masks padding. Only positions at the end of the
        sentence may be forbidden.
        """


@dataclass(frozen=True)
class AttentionContext:
    """Inputs of a normalizer beside the scores."""

    query_BTQ: Tensor
    """The queries, not projected, in float32."""
    position_BT: Tensor
    """The target position of each query, from 0."""
    is_training: bool
    update: int
    """Number of updates of training so far, which annealed settings depend on."""


class AttentionWeights(NamedTuple):
    """Result of a normalizer."""

    weights_BHTS: Tensor
    """The weights; H is the number of heads of the normalizer."""
    sampled: SampledPositions | None = None
    """The drawn positions, if the normalizer learns from a reward; else None."""


class Normalizer(Mechanism):
    """Turns scores into weights."""

    chooses: ClassVar[bool] = False
    """Declares that all weight is on one position, or on windows round it."""

    @property
    def heads(self) -> int:
        """Number of sets of weights that one set of scores gives; their contexts are fused: tanh(W [c_1; ...; c_H])."""
        return 1

    @property
    def marginalizes(self) -> bool:
        """Returns True if training sums the likelihood over every source position instead of attending to a mixture."""
        return False

    @abstractmethod
    def __call__(
        self, scores_BHTS: Tensor, context: AttentionContext, parameters: Mapping[str, Tensor]
    ) -> AttentionWeights:
        """Computes weights that sum to 1 over S from scores in float32; where a score is -inf, at the end of a
        sentence, the weight is 0."""

    @staticmethod
    def allowed(scores_BHTS: Tensor) -> Tensor:
        """Counts the leading positions that a query may attend to, (B, T, 1), at least 1."""
        allowed_BT1: Tensor = scores_BHTS[:, 0].isfinite().sum(dim=-1, keepdim=True)
        return allowed_BT1

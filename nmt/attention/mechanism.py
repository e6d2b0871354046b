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
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple, TypeAlias

from nmt.config.structure import Structure

if TYPE_CHECKING:
    from torch import Tensor

    from nmt.attention.reinforce import SampledPositions


Parameters: TypeAlias = "Mapping[str, Tensor]"
"""The parameters of a mechanism by name, as its formula reads them."""


@dataclass(frozen=True)
class Parameter:
    """A parameter of a mechanism: its shape and its initialisation."""

    shape: tuple[int, ...]
    init: Literal["xavier", "zeros", "ones"] = "xavier"
    is_half: bool = False
    """True: it and the other half, side by side, start as one matrix."""


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

    def parameters(self, sizes: Sizes) -> dict[str, Parameter]:
        """The parameters it needs, by name."""
        return {}


class Score(Mechanism):
    """Measures the match of each key with each query.

    Parameters of the names ``query_weight_AQ`` and ``key_weight_AK`` are matrices of the query and of the key. Here are
    those of a score that compares query and key themselves: U (Q, K), with k' = U k, where their widths differ.
    """

    reads_keys: ClassVar[bool] = True
    """Declares that the score reads the keys; otherwise it depends on their number only."""

    def parameters(self, sizes: Sizes) -> dict[str, Parameter]:
        """U, only where the widths differ."""
        return {} if sizes.query == sizes.key else {"key_weight_AK": Parameter((sizes.query, sizes.key))}

    def precompute_keys(self, keys_BHSK: Tensor, parameters: Parameters) -> Tensor:
        """The keys as ``__call__`` reads them, computed once for each sentence; here U k, or k."""
        weight_AK = parameters.get("key_weight_AK")
        return keys_BHSK if weight_AK is None else linear(keys_BHSK, weight_AK)

    @abstractmethod
    def __call__(self, query_BHTQ: Tensor, keys_BHSA: Tensor, parameters: Parameters) -> Tensor:
        """The scores, (B, H, T, S), from a query and precomputed keys; the caller masks padding.

        A score of -inf forbids a position, which is also how the caller masks padding. Only positions at the end of the
        sentence may be forbidden.
        """


def linear(x: Tensor, weight: Tensor) -> Tensor:
    """W x, for each of many vectors x."""
    from torch.nn import functional

    return functional.linear(x, weight)


@dataclass(frozen=True)
class AttentionContext:
    """Inputs of a weighting beside the scores."""

    query_BTQ: Tensor
    """The queries, not projected, in float32."""
    position_BT: Tensor
    """The target position of each query, from 0."""
    is_training: bool
    update: int
    """Number of updates of training so far, which annealed settings depend on."""


class AttentionWeights(NamedTuple):
    """Result of a weighting."""

    weights_BHTS: Tensor
    """H is the number of heads of the weighting."""
    sampled: SampledPositions | None = None
    """The drawn positions, where the weighting learns from a reward."""


class Weighting(Mechanism):
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
    def __call__(self, scores_BHTS: Tensor, context: AttentionContext, parameters: Parameters) -> AttentionWeights:
        """Weights that sum to 1 over S, from float32 scores; where those are -inf, at the end, weights are 0."""

    @staticmethod
    def allowed(scores_BHTS: Tensor) -> Tensor:
        """Counts the leading positions that a query may attend to, (B, T, 1), at least 1."""
        allowed_BT1: Tensor = scores_BHTS[:, 0].isfinite().sum(dim=-1, keepdim=True)
        return allowed_BT1

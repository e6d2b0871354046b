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
    is_stateful: ClassVar[bool] = False
    """Declares that a step reads what the steps before have left; see ``StatefulScore``."""

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


class StatefulScore(Score):
    """A score that reads a state of its own, which each step hands on to the next: the last weights, their sum, ...

    The state is one tensor with a row for each query; X stands for its other dimensions. The decoder carries it as it
    carries its own state, and computes the steps one after the other.
    """

    is_stateful: ClassVar[bool] = True

    @abstractmethod
    def initial_state(self, keys_BHSA: Tensor) -> Tensor:
        """The state before the first step, (B, X), in float32, from precomputed keys."""

    @abstractmethod
    def with_state(self, query_BHTQ: Tensor, keys_BHSA: Tensor, parameters: Parameters, state_BTX: Tensor) -> Tensor:
        """The scores, as ``__call__`` gives them, where each query has a state."""

    @abstractmethod
    def next_state(
        self, state_BTX: Tensor, weights_BTS: Tensor, query_BTQ: Tensor, keys_BHSA: Tensor, parameters: Parameters
    ) -> Tensor:
        """The state after a step, (B, T, X), from its weights, which are 0 at padding; all but the keys in float32."""

    def __call__(self, query_BHTQ: Tensor, keys_BHSA: Tensor, parameters: Parameters) -> Tensor:
        """The scores of the first step."""
        state_BTX = for_each_query(self.initial_state(keys_BHSA), query_BHTQ.shape[2])
        return self.with_state(query_BHTQ, keys_BHSA, parameters, state_BTX)


def for_each_query(state_BX: Tensor, queries: int) -> Tensor:
    """Repeats the state of a sentence for its queries, (B, T, X)."""
    return state_BX.unsqueeze(1).expand(-1, queries, *state_BX.shape[1:])


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
    state_BTX: Tensor | None = None
    """The state of a ``StatefulWeighting`` for each query; None before the first step."""


class AttentionWeights(NamedTuple):
    """Result of a weighting."""

    weights_BHTS: Tensor
    """H is the number of heads of the weighting."""
    sampled: SampledPositions | None = None
    """The drawn positions, where the weighting learns from a reward."""
    state_BTX: Tensor | None = None
    """The state after the step, of a ``StatefulWeighting``."""


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


class StatefulWeighting(Weighting):
    """A weighting whose weights depend on those of the step before; see ``StatefulScore`` for the state."""

    is_stateful: ClassVar[bool] = True

    def initial_state(self, is_pad_BS: Tensor) -> Tensor:
        """The state before the first step, (B, X), in float32; here weights (B, S) that are all on the first word."""
        return (is_pad_BS.new_ones(is_pad_BS.shape).cumsum(dim=-1) == 1).float()

    def state(self, scores_BHTS: Tensor, context: AttentionContext) -> Tensor:
        """The state of each query, (B, T, X)."""
        if context.state_BTX is not None:
            return context.state_BTX
        return for_each_query(self.initial_state(scores_BHTS[:, 0, 0].isinf()), scores_BHTS.shape[2])

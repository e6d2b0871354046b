"""Attention: a score for each pair of query and key, weights, and the context they give. Padding is masked
here, not in the scores or the weightings.

Shapes as in ``mechanism``; V is the width of a value, N = B x beams the number of rows; the rows of a sentence are
neighbours.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from nmt.attention.config import AttentionConfig
from nmt.attention.mechanism import AttentionContext, Parameter, Score, Sizes, StatefulScore, StatefulWeighting
from nmt.attention.reinforce import HardAttention, SampledPositions
from nmt.core.record import BatchRecord
from nmt.nn.dropout import Dropout
from nmt.nn.recompute import recomputed


@dataclass(frozen=True)
class AttentionMemory(BatchRecord):
    """Keys and values of a batch of source sentences; the keys are projected once per sentence."""

    is_pad_BS: Tensor
    keys_BHSA: Tensor
    values_BSV: Tensor
    unread_BTS: Tensor | None = None
    """True where a target position may not see a source position; None: each sees all. See ``training.wait``."""

    def extended(self, present: AttentionMemory) -> AttentionMemory:
        """Appends the keys and values of further positions."""
        return AttentionMemory(
            torch.cat([self.is_pad_BS, present.is_pad_BS], dim=1),
            torch.cat([self.keys_BHSA, present.keys_BHSA], dim=2),
            torch.cat([self.values_BSV, present.values_BSV], dim=1),
        )


@dataclass(frozen=True)
class AttentionState(BatchRecord):
    """What a score and a weighting hand on from step to step; None for one that has no state. X: any dimensions."""

    score_NX: Tensor | None
    weighting_NX: Tensor | None


class AttentionOutput(NamedTuple):
    """Result of attention for N rows and T positions."""

    context_NTV: Tensor
    weights_NHTS: Tensor
    """float32; they sum to 1 over S and are exactly 0 at padding. H is the number of heads of the weighting."""
    sampled: SampledPositions | None
    """The positions drawn in training by a weighting that learns from a reward."""
    state: BatchRecord | None = None
    """The state after the last position; None without one."""


class Attention(nn.Module):
    """context = sum over s of weight_s value_s, with weights = weighting(score(query, key)).

    Score and weighting are chosen by the configuration; with ``key_size`` the score reads P key in place of each key.
    A weighting with several heads gives several sets of weights, whose contexts are fused: tanh(W [c_1; ...; c_H]).
    """

    def __init__(
        self, config: AttentionConfig, *, query_size: int, key_size: int, value_size: int, dropout: float = 0.0,
        causal: bool = False,
    ) -> None:  # fmt: skip
        """``dropout`` is the rate for the weights. If ``causal``, a query at position t sees keys up to position t
        only."""
        super().__init__()
        assert isinstance(config.score, Score)
        sizes = Sizes(query=query_size, key=config.key_size or key_size)
        self.score = config.score
        self.weighting = config.weights
        self.dropout = Dropout(dropout)
        self.causal = causal
        self.learns_from_rewards = isinstance(config.weights, HardAttention) and not config.weights.marginalizes
        self.update = 0
        """Number of updates of training so far, which mechanisms with an annealed setting read."""
        self.key_projection_KD = None if config.key_size is None else matrix(config.key_size, key_size)
        self.score_parameters = _initialised(config.score.parameters(sizes))
        # W and U by themselves, as in checkpoints
        self.query_weight_AQ, self.key_weight_AK = (
            self.score_parameters.pop(name) if name in self.score_parameters else None
            for name in ("query_weight_AQ", "key_weight_AK")
        )
        self.weighting_parameters = _initialised(config.weights.parameters(sizes))
        heads = config.weights.heads
        self.fusion_VF = matrix(value_size, heads * value_size) if heads > 1 else None

    @property
    def marginalizes(self) -> bool:
        """See ``Weighting.marginalizes``."""
        return self.weighting.marginalizes

    @property
    def is_stateful(self) -> bool:
        """Returns True if a position depends on the positions before it, so that they are computed one by one."""
        return self.score.is_stateful or self.weighting.is_stateful

    def memory(self, keys_BSK: Tensor, values_BSV: Tensor, is_pad_BS: Tensor) -> AttentionMemory:
        """Builds the memory of a batch of sentences; encoder states serve as keys and as values."""
        if self.key_projection_KD is not None:
            keys_BSK = F.linear(keys_BSK, self.key_projection_KD)
        # U k does not depend on the target, so it is computed once for a sentence
        keys_BHSA = self.score.precompute_keys(keys_BSK.unsqueeze(1), self._parameters_of_score(keys_BSK.dtype))
        return AttentionMemory(is_pad_BS, keys_BHSA, values_BSV)

    def start(self, memory: AttentionMemory) -> AttentionState | None:
        """Computes the state before the first position, one row for each sentence."""
        if not self.is_stateful:
            return None
        score, weighting = self.score, self.weighting
        return AttentionState(
            score.initial_state(memory.keys_BHSA) if isinstance(score, StatefulScore) else None,
            weighting.initial_state(memory.is_pad_BS) if isinstance(weighting, StatefulWeighting) else None,
        )

    def forward(
        self, query_NTQ: Tensor, position_NT: Tensor, memory: AttentionMemory, state: AttentionState | None = None
    ) -> AttentionOutput:
        """Attends from queries (N, T, Q) at target positions (N, T).

        N is B or a multiple of it. The rows of a sentence share its memory: they are treated as further target
        positions. With a ``state``, T is 1.
        """
        # a search has several rows for a sentence, training has one
        batch, (rows, time, _) = memory.is_pad_BS.shape[0], query_NTQ.shape
        query_BTQ, position_BT = query_NTQ.reshape(batch, -1, query_NTQ.shape[2]), position_NT.reshape(batch, -1)
        # e = score(q, k), for every pair of a query and a key
        keys_BHSA, parameters = memory.keys_BHSA, self._parameters_of_score(memory.keys_BHSA.dtype)
        inputs = (query_BTQ.unsqueeze(1).to(keys_BHSA.dtype), keys_BHSA, parameters)
        if state is not None and isinstance(self.score, StatefulScore):
            scores_BHTS = recomputed(self.score.with_state)(*inputs, _by_sentence(state.score_NX, batch))
        else:
            scores_BHTS = recomputed(self.score)(*inputs)
        # -inf where a query may not look, so that the weight there is exactly 0
        scores_BHTS = scores_BHTS.float().masked_fill(self._is_hidden(position_BT, memory), -torch.inf)
        # alpha = weighting(e), in float32 whatever the products run in: sums over long sentences need it
        context = AttentionContext(query_BTQ.float(), position_BT, self.training, self.update)
        if state is not None and state.weighting_NX is not None:
            context = replace(context, state_BTX=_by_sentence(state.weighting_NX, batch))
        with torch.autocast(query_NTQ.device.type, enabled=False):
            parameters = {name: value.float() for name, value in self.weighting_parameters.items()}
            weights_BHTS, sampled, weighting_BTX = self.weighting(scores_BHTS, context, parameters)
            if state is not None:
                state = self._next_state(state, weights_BHTS, weighting_BTX, context, keys_BHSA)
        # c = sum over s of alpha v; dropout is on the weights, as in Vaswani et al. 2017
        context_BTV = self._context(self.dropout(weights_BHTS.to(memory.values_BSV.dtype)), memory.values_BSV)
        weights_NHTS = unfold_beams(weights_BHTS, rows, time)
        return AttentionOutput(context_BTV.reshape(rows, time, -1), weights_NHTS, sampled, state)

    def _next_state(
        self, state: AttentionState, weights_BHTS: Tensor, weighting_BTX: Tensor | None, context: AttentionContext,
        keys_BHSA: Tensor,
    ) -> AttentionState:  # fmt: skip
        """Computes the state after a step; a row of ``state`` is one of T queries of a sentence here."""
        score_BTX = None
        if isinstance(self.score, StatefulScore):
            parameters = {name: value.float() for name, value in self.score_parameters.items()}
            before_BTX = _by_sentence(state.score_NX, keys_BHSA.shape[0])
            # several heads have one state, which their mean enters
            weights_BTS = weights_BHTS.mean(dim=1)
            score_BTX = self.score.next_state(before_BTX, weights_BTS, context.query_BTQ, keys_BHSA, parameters)
        return AttentionState(*(None if each is None else each.flatten(0, 1) for each in (score_BTX, weighting_BTX)))

    def _parameters_of_score(self, dtype: torch.dtype) -> dict[str, Any]:
        """W and U, None where it has none, and the others. Autocast casts the matrices, once for all steps."""
        others = {name: value.to(dtype) for name, value in self.score_parameters.items()}
        return {"query_weight_AQ": self.query_weight_AQ, "key_weight_AK": self.key_weight_AK, **others}

    def _is_hidden(self, position_BT: Tensor, memory: AttentionMemory) -> Tensor:
        """Returns the attention mask, True where a query may not attend to a key; broadcasts to (B, H, T, S)."""
        is_hidden = memory.is_pad_BS[:, None, None, :]
        if memory.unread_BTS is not None:
            is_hidden = is_hidden | unread(memory.unread_BTS, position_BT)
        if not self.causal:
            return is_hidden
        # a key is later than the query if its position is larger
        source_S = torch.arange(is_hidden.shape[-1], device=is_hidden.device)
        return is_hidden | (source_S > position_BT[:, None, :, None])

    def _context(self, weights_BHTS: Tensor, values_BSV: Tensor) -> Tensor:
        """Computes the sum of the values by their weights, (B, T, V)."""
        if self.fusion_VF is None:
            return weights_BHTS[:, 0] @ values_BSV
        # several heads: one context each, joined by a layer: tanh(W [c_1; ...; c_H])
        contexts_BHTV = weights_BHTS @ values_BSV[:, None]
        return F.linear(contexts_BHTV.transpose(1, 2).flatten(2), self.fusion_VF).tanh()


class NoAttention(nn.Module):
    """Contexts of width 0 and weights of no heads, for a decoder without attention."""

    context_size = 0
    update = 0
    marginalizes = False
    is_stateful = False

    def memory(self, keys_BSK: Tensor, values_BSV: Tensor, is_pad_BS: Tensor) -> AttentionMemory:
        """Builds the memory of a batch of sentences, with keys of width 0."""
        return AttentionMemory(is_pad_BS, keys_BSK[:, None, :, :0], values_BSV)

    def start(self, memory: AttentionMemory) -> None:
        """See ``Attention.start``."""

    def forward(
        self, query_NTQ: Tensor, position_NT: Tensor, memory: AttentionMemory, state: None = None
    ) -> AttentionOutput:
        """See ``Attention.forward``."""
        rows, time, _ = query_NTQ.shape
        weights_NHTS = torch.empty(rows, 0, time, memory.is_pad_BS.shape[1], device=query_NTQ.device)
        return AttentionOutput(query_NTQ.new_empty(rows, time, 0), weights_NHTS, None)


def _by_sentence(state_NX: Tensor | None, batch: int) -> Tensor:
    """The states of rows, as those of further positions of their sentence: (N, X) to (B, K, X)."""
    assert state_NX is not None
    if state_NX.shape[0] == batch:  # for an export, which cannot tell that K is 1
        return state_NX.unsqueeze(1)
    return state_NX.view(batch, -1, *state_NX.shape[1:])


def unread(unread_BTS: Tensor, position_BT: Tensor) -> Tensor:
    """Selects the rows of a mask at target positions, (B, 1, T, S)."""
    return unread_BTS.gather(1, position_BT[:, :, None].expand(-1, -1, unread_BTS.shape[2]))[:, None]


def unfold_beams(weights_BHTS: Tensor, rows: int, time: int) -> Tensor:
    """Weights of a sentence's beams, from further target positions to further rows: (B, H, KT, S) to (N, H, T, S)."""
    batch, heads, _, positions = weights_BHTS.shape
    if rows == batch:
        return weights_BHTS
    weights_BHKTS = weights_BHTS.view(batch, heads, rows // batch, time, positions)
    return weights_BHKTS.transpose(1, 2).reshape(rows, heads, time, positions)


def matrix(outputs: int, inputs: int, gain: float = 1.0) -> nn.Parameter:
    """A weight (outputs, inputs), initialised by Glorot & Bengio 2010, times ``gain``."""
    weight = nn.Parameter(torch.empty(outputs, inputs))
    nn.init.xavier_uniform_(weight, gain)
    return weight


def _initialised(declared: dict[str, Parameter]) -> nn.ParameterDict:
    parameters = nn.ParameterDict()
    if halves := {name: parameter.shape for name, parameter in declared.items() if parameter.is_half}:
        # W [q; k] = W_1 q + W_2 k: Glorot's width is that of the whole matrix
        rows, columns = next(iter(halves.values()))[0], [shape[1] for shape in halves.values()]
        parts = torch.split(matrix(rows, sum(columns)).data, columns, dim=1)
        parameters.update({name: nn.Parameter(part.clone()) for name, part in zip(halves, parts, strict=True)})
    for name, parameter in declared.items():
        if parameter.is_half:
            continue
        values = torch.ones(parameter.shape) if parameter.init == "ones" else torch.zeros(parameter.shape)
        if parameter.init == "xavier":
            # a vector is initialised as a matrix of one row
            nn.init.xavier_uniform_(values if values.dim() > 1 else values[None])
        parameters[name] = nn.Parameter(values)
    return parameters

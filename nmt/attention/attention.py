"""Attention: score, weights, context. The one place where padding is masked.

Shapes as in ``mechanism``; V is the width of a value, N = B x beams rows, the rows of a sentence side by side.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn

from nmt.attention.config import AttentionConfig
from nmt.attention.mechanism import Parameter, Sizes
from nmt.core.record import BatchRecord
from nmt.layers.deferred import DeferredLinear

CELLS = 1 << 25
"""The most numbers, B x T x S x A, that a score may hold at once: 64 MiB in bfloat16."""


@dataclass(frozen=True)
class AttentionMemory(BatchRecord):
    """What attention keeps of a batch of source sentences, made once: keys after all that no query changes."""

    keys_BHSA: Tensor
    values_BSV: Tensor
    is_pad_BS: Tensor


class Attended(NamedTuple):
    """What a query gets."""

    context_BTV: Tensor
    weights_BHTS: Tensor
    """float32; sums to 1 over S and is exactly 0 at padding."""


class Attention(nn.Module):
    """One head of attention, from whichever score and weighting the configuration names."""

    def __init__(self, config: AttentionConfig, *, query_size: int, key_size: int) -> None:
        super().__init__()
        sizes = Sizes(query=query_size, key=key_size)
        self.score = config.score
        self.weighting = config.weights
        projections = config.score.projections(sizes)
        self.query_projection = _linear(query_size, projections.query)
        self.key_projection = _linear(key_size, projections.key)
        self.score_parameters = _make(config.score.parameters(sizes))
        self.weighting_parameters = _make(config.weights.parameters(sizes))

    def memory(self, states_BSV: Tensor, is_pad_BS: Tensor) -> AttentionMemory:
        """The memory of encoder states, which serve as keys and as values."""
        keys_BSA = states_BSV if self.key_projection is None else self.key_projection(states_BSV)
        return AttentionMemory(keys_BSA.unsqueeze(1), states_BSV, is_pad_BS)

    def loop(self, memory: AttentionMemory) -> AttentionLoop:
        """Attention to one memory from many steps; make one for each loop."""
        return AttentionLoop(self, memory)

    def forward(self, query_NTQ: Tensor, memory: AttentionMemory) -> Attended:
        """Attends from T positions at once; in parts where a score would need more than ``CELLS`` numbers at once."""
        attend = self.loop(memory)
        time = query_NTQ.shape[1]
        part = max(1, CELLS // max(1, query_NTQ.shape[0] * memory.keys_BHSA[0].numel()))
        if part >= time:
            return attend(query_NTQ)
        parts = [attend(query_NTQ[:, start : start + part]) for start in range(0, time, part)]
        return Attended(
            torch.cat([each.context_BTV for each in parts], dim=1),
            torch.cat([each.weights_BHTS for each in parts], dim=2),
        )


class AttentionLoop:
    """Attention inside a loop over target steps: what all steps share is prepared once."""

    def __init__(self, attention: Attention, memory: AttentionMemory) -> None:
        self._score = attention.score
        self._weighting = attention.weighting
        self._memory = memory
        dtype = memory.keys_BHSA.dtype
        self._score_parameters = {name: each.to(dtype) for name, each in attention.score_parameters.items()}
        self._weighting_parameters = dict(attention.weighting_parameters.items())
        projection = attention.query_projection
        self._project_query = None if projection is None else DeferredLinear(projection.weight)
        self._is_pad_B11S = memory.is_pad_BS[:, None, None, :]

    def __call__(self, query_NTQ: Tensor) -> Attended:
        """The contexts of queries (N, T, Q), where N is B or a multiple of it: a beam's rows stand side by side and
        share their sentence's memory as if they were further target positions."""
        memory = self._memory
        rows, time, _ = query_NTQ.shape
        if self._project_query is not None:
            query_NTQ = self._project_query(query_NTQ)
        query_BHTA = query_NTQ.reshape(memory.is_pad_BS.shape[0], 1, -1, query_NTQ.shape[-1])
        scores_BHTS = self._score(query_BHTA.to(memory.keys_BHSA.dtype), memory.keys_BHSA, self._score_parameters)
        scores_BHTS = scores_BHTS.float().masked_fill(self._is_pad_B11S, -torch.inf)
        weights_BHTS = self._weighting(scores_BHTS, self._weighting_parameters)
        context_BTV = weights_BHTS[:, 0].to(memory.values_BSV.dtype) @ memory.values_BSV
        return Attended(context_BTV.reshape(rows, time, -1), weights_BHTS.reshape(rows, 1, time, -1))


def _linear(inputs: int, outputs: int | None) -> nn.Linear | None:
    if outputs is None:
        return None
    linear = nn.Linear(inputs, outputs, bias=False)
    nn.init.xavier_uniform_(linear.weight)
    return linear


def _make(wanted: Mapping[str, Parameter]) -> nn.ParameterDict:
    made = nn.ParameterDict()
    for name, parameter in wanted.items():
        values = torch.ones(parameter.shape) if parameter.init == "ones" else torch.zeros(parameter.shape)
        if parameter.init == "xavier":
            # a vector is the one row of a matrix
            nn.init.xavier_uniform_(values if values.dim() > 1 else values[None])
        made[name] = nn.Parameter(values)
    return made

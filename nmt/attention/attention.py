"""Attention: score, weights, context. The one place where padding is masked.

Shapes as in ``mechanism``; V is the width of a value, N = B x beams rows, the rows of a sentence side by side.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from nmt.attention.config import AttentionConfig
from nmt.attention.mechanism import Asked, Parameter, Projections, Score, Sizes
from nmt.attention.reinforce import Choice
from nmt.attention.weights.softmax import Softmax
from nmt.core.record import BatchRecord
from nmt.nn import native
from nmt.nn.deferred import DeferredLinear, DeferredMixture
from nmt.nn.dropout import Dropout
from nmt.nn.quantized import Int8Weight
from nmt.nn.recompute import recomputed

CELLS = 1 << 25
"""The most numbers, B x T x S x A, that a score may hold at once: 64 MiB in bfloat16."""


@dataclass(frozen=True)
class AttentionMemory(BatchRecord):
    """What attention keeps of a batch of source sentences, made once: keys after all that no query changes."""

    keys_BHSA: Tensor
    values_BSV: Tensor
    is_pad_BS: Tensor


class RaisedMemory(AttentionMemory):
    """One for soft attention by v . tanh(query + key) where no gradients are recorded: ``native.raised(keys)`` are in
    the place of the keys, for a kernel that makes score, weights and context in one pass."""


class Attended(NamedTuple):
    """What a query gets."""

    context_BTV: Tensor
    weights_BHTS: Tensor
    """float32; sums to 1 over S and is exactly 0 at padding. H is the weighting's number of heads."""
    choice: Choice | None
    """How positions were drawn, where the weighting learns from a reward and is in training."""


class Attention(nn.Module):
    """Attention from whichever score and weighting the configuration names."""

    def __init__(
        self,
        config: AttentionConfig,
        *,
        query_size: int,
        key_size: int,
        value_size: int,
        dropout: float = 0.0,
        causal: bool = False,
    ) -> None:
        """``dropout`` is the weights'. ``causal``: a query at position t sees keys up to t alone."""
        super().__init__()
        assert isinstance(config.score, Score)
        sizes = Sizes(query=query_size, key=key_size)
        self.score = config.score
        self.weighting = config.weights
        self.dropout = Dropout(dropout)
        self.causal = causal
        self.update = 0
        """Updates of training so far: what mechanisms anneal by."""
        projections = config.score.projections(sizes)
        query_weight, key_weight = _weights(projections, sizes)
        self.query_weight_AQ = query_weight
        self.key_weight_AK = key_weight
        self.score_parameters = _make(config.score.parameters(sizes))
        self.weighting_parameters = _make(config.weights.parameters(sizes))
        heads = config.weights.heads
        self.fusion_VF = matrix(value_size, heads * value_size) if heads > 1 else None

    def memory(self, keys_BSK: Tensor, values_BSV: Tensor, is_pad_BS: Tensor) -> AttentionMemory:
        """The memory of a batch of sentences; encoder states serve as keys and as values."""
        keys_BSA = keys_BSK if self.key_weight_AK is None else F.linear(keys_BSK, self.key_weight_AK)
        has_kernel = self.glances and native.kernels(keys_BSA) is not None and keys_BSA.dtype == values_BSV.dtype
        if has_kernel and bool(keys_BSA.abs().amax() <= native.RAISABLE):
            # 16 bits are as good beside weights of 8, and a search reads all of it at each step
            dtype = torch.bfloat16 if isinstance(self.key_weight_AK, Int8Weight) else keys_BSA.dtype
            return RaisedMemory(native.raised(keys_BSA).unsqueeze(1).to(dtype), values_BSV.to(dtype), is_pad_BS)
        return AttentionMemory(self.score.prepared(keys_BSA.unsqueeze(1)), values_BSV, is_pad_BS)

    @property
    def glances(self) -> bool:
        """Whether there is a kernel for what is done with each query, if not recorded."""
        is_one = self.fusion_VF is None and not self.causal and not (self.training and self.dropout.threshold > 0)
        return is_one and self.score.inside_tanh and isinstance(self.weighting, Softmax)

    def loop(self, memory: AttentionMemory) -> Callable[[Tensor, Tensor], Attended]:
        """Attention to one memory from many steps; make one for each loop. See ``AttentionLoop.__call__``."""
        return Glances(self, memory) if isinstance(memory, RaisedMemory) else AttentionLoop(self, memory)

    def forward(self, query_NTQ: Tensor, position_NT: Tensor, memory: AttentionMemory) -> Attended:
        """Attends from T positions at once; in parts where a score would need more than ``CELLS`` numbers at once."""
        attend = self.loop(memory)
        time = query_NTQ.shape[1]
        part = max(1, CELLS // max(1, query_NTQ.shape[0] * memory.keys_BHSA[0].numel()))
        if part >= time or isinstance(memory, RaisedMemory):
            return attend(query_NTQ, position_NT)
        parts = [
            attend(query_NTQ[:, start : start + part], position_NT[:, start : start + part])
            for start in range(0, time, part)
        ]
        return Attended(
            torch.cat([each.context_BTV for each in parts], dim=1),
            torch.cat([each.weights_BHTS for each in parts], dim=2),
            Choice.joined([each.choice for each in parts]),
        )


class AttentionLoop:
    """Attention inside a loop over target steps: what all steps share is prepared once."""

    def __init__(self, attention: Attention, memory: AttentionMemory) -> None:
        self._attention = attention
        self._memory = memory
        dtype = memory.keys_BHSA.dtype
        score_parameters = {name: each.to(dtype) for name, each in attention.score_parameters.items()}
        self._score = attention.score.over(memory.keys_BHSA, score_parameters)
        self._mix = DeferredMixture(memory.values_BSV)
        self._weighting_parameters = {name: each.float() for name, each in attention.weighting_parameters.items()}
        project, fuse = attention.query_weight_AQ, attention.fusion_VF
        self._project_query = None if project is None else DeferredLinear(project)
        self._fuse = None if fuse is None else DeferredLinear(fuse)
        self._is_pad_B11S = memory.is_pad_BS[:, None, None, :]

    def __call__(self, query_NTQ: Tensor, position_NT: Tensor) -> Attended:
        """What queries (N, T, Q) at target positions (N, T) get, where N is B or a multiple of it: a beam's rows stand
        side by side and share their sentence's memory as if they were further target positions."""
        memory, attention = self._memory, self._attention
        rows, time, _ = query_NTQ.shape
        batch = memory.is_pad_BS.shape[0]
        projected_NTA = query_NTQ if self._project_query is None else self._project_query(query_NTQ)
        query_BHTA = projected_NTA.reshape(batch, 1, -1, projected_NTA.shape[-1])
        scores_BHTS = recomputed(self._score, query_BHTA.to(memory.keys_BHSA.dtype))
        position_BT = position_NT.reshape(batch, -1)
        is_hidden = self._is_pad_B11S
        if attention.causal:
            source_S = torch.arange(memory.is_pad_BS.shape[1], device=position_BT.device)
            is_hidden = is_hidden | (source_S > position_BT[:, None, :, None])
        scores_BHTS = scores_BHTS.float().masked_fill(is_hidden, -torch.inf)
        query_BTQ = query_NTQ.reshape(batch, -1, query_NTQ.shape[-1]).float()
        asked = Asked(query_BTQ, position_BT, attention.training, attention.update)
        with torch.autocast(query_NTQ.device.type, enabled=False):
            weights_BHTS, choice = attention.weighting(scores_BHTS, asked, self._weighting_parameters)
        assert choice is None or rows == batch, "positions are drawn in training alone, where there are no beams"
        return Attended(
            self._context(weights_BHTS).reshape(rows, time, -1), _rows(weights_BHTS, rows // batch, time), choice
        )

    def _context(self, weights_BHTS: Tensor) -> Tensor:
        values_BSV = self._memory.values_BSV
        weights_BHTS = self._attention.dropout(weights_BHTS.to(values_BSV.dtype))
        if self._fuse is None:
            return self._mix(weights_BHTS[:, 0])
        contexts_BHTV = self._mix(weights_BHTS.flatten(1, 2)).view(*weights_BHTS.shape[:3], -1)
        return self._fuse(contexts_BHTV.transpose(1, 2).flatten(2)).tanh()


class Glances:
    """The same as ``AttentionLoop`` to a ``RaisedMemory``."""

    def __init__(self, attention: Attention, memory: RaisedMemory) -> None:
        assert attention.query_weight_AQ is not None
        self._memory = memory
        self._project_query = DeferredLinear(attention.query_weight_AQ)
        self._v_A = attention.score_parameters["v_A"]

    def __call__(self, query_NTQ: Tensor, position_NT: Tensor) -> Attended:
        """See ``AttentionLoop``."""
        memory = self._memory
        query_NTA = self._project_query(query_NTQ).contiguous()
        rows, time, width = query_NTA.shape
        context_MV, weights_MS = native.expected(query_NTA).glance(
            query_NTA.view(-1, width),
            memory.keys_BHSA[:, 0].contiguous(),
            self._v_A.to(query_NTA.dtype).contiguous(),
            memory.values_BSV.contiguous(),
            memory.is_pad_BS.contiguous(),
        )
        return Attended(context_MV.view(rows, time, -1), weights_MS.view(rows, 1, time, -1), None)


def _rows(weights_BHTS: Tensor, beams: int, time: int) -> Tensor:
    """Weights of a sentence's K beams, from further target positions to further rows: (B, H, KT, S) to (N, H, T, S)."""
    if beams == 1:
        return weights_BHTS
    batch, heads, _, positions = weights_BHTS.shape
    weights_BKHTS = weights_BHTS.view(batch, heads, beams, time, positions).transpose(1, 2)
    return weights_BKHTS.reshape(batch * beams, heads, time, positions)


def matrix(outputs: int, inputs: int) -> nn.Parameter:
    """A weight (outputs, inputs), initialised by Glorot & Bengio 2010."""
    weight = nn.Parameter(torch.empty(outputs, inputs))
    nn.init.xavier_uniform_(weight)
    return weight


def _weights(projections: Projections, sizes: Sizes) -> tuple[nn.Parameter | None, nn.Parameter | None]:
    """W of the query and U of the key. As halves of one matrix they are still two tensors: only how they start is that
    of one."""
    query, key = projections.query, projections.key
    if projections.joint:
        assert query is not None, "one matrix has both halves"
        assert query == key, "one matrix has one height"
        whole = matrix(query, sizes.query + sizes.key).data
        return nn.Parameter(whole[:, : sizes.query].clone()), nn.Parameter(whole[:, sizes.query :].clone())
    return (
        None if query is None else matrix(query, sizes.query),
        None if key is None else matrix(key, sizes.key),
    )


def _make(wanted: Mapping[str, Parameter]) -> nn.ParameterDict:
    made = nn.ParameterDict()
    for name, parameter in wanted.items():
        values = torch.ones(parameter.shape) if parameter.init == "ones" else torch.zeros(parameter.shape)
        if parameter.init == "xavier":
            # a vector is the one row of a matrix
            nn.init.xavier_uniform_(values if values.dim() > 1 else values[None])
        made[name] = nn.Parameter(values)
    return made

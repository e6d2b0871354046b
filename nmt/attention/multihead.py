"""Multi-head attention (Vaswani et al. 2017, section 3.2.2), with any score and weighting inside a head.

head_h = attend(q W_h, k U_h, v V_h), out = [head_1; ...; head_H] W. The paper's heads, dot products under softmax, are
computed together; with any other mechanism each head is an ``Attention`` of its own.

Shapes as in ``attention``; Q width of all heads together, A width of the query, key and value of one head.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from nmt.attention.attention import Attention, AttentionMemory, AttentionOutput, matrix, unfold_beams, unread
from nmt.attention.config import AttentionConfig
from nmt.attention.mechanism import Score
from nmt.attention.reinforce import SampledPositions
from nmt.attention.scores.dot import Dot
from nmt.attention.scores.scaled_dot import ScaledDot
from nmt.attention.weights.softmax import Softmax
from nmt.core.record import BatchRecord
from nmt.nn.dropout import Dropout
from nmt.nn.feed_forward import BRANCH
from nmt.nn.positions import RotaryAngles, apply_rotary
from nmt.ops import attend


@dataclass(frozen=True)
class KeyValues(BatchRecord):
    """Projected keys and values of every head."""

    keys_BHSA: Tensor
    values_BHSA: Tensor

    def extended(self, present: KeyValues, position_NT: Tensor) -> tuple[KeyValues, Tensor | None]:
        """Appends the keys and values of further positions. Returns them with a padding mask (B, S), True at unused
        entries, or None if all entries are in use."""
        keys_BHSA = torch.cat([self.keys_BHSA, present.keys_BHSA], dim=2)
        return KeyValues(keys_BHSA, torch.cat([self.values_BHSA, present.values_BHSA], dim=2)), None


@dataclass(frozen=True)
class HeadsMemory(KeyValues):
    """The memory of ``DotProductHeads``."""

    is_pad_BS: Tensor | None
    """Padding mask, True at padding; None if there is no padding."""
    unread_BTS: Tensor | None = None
    """See ``AttentionMemory``."""


@dataclass(frozen=True)
class PerHeadMemory(BatchRecord):
    """The memory of ``IndependentHeads``: one memory for each head."""

    heads: tuple[AttentionMemory, ...]


class MultiHeadOutput(NamedTuple):
    """Result of attention by all heads."""

    context_NTQ: Tensor
    weights: Callable[[], Tensor]
    """Computes the weights (N, H, T, S) before dropout, in float32 or wider."""
    sampled: tuple[SampledPositions, ...]
    """One for each head whose weighting learns from a reward."""


class Projection(NamedTuple):
    """A linear map of an input of width X."""

    weight_QX: Tensor
    bias_Q: Tensor | None


class MultiHead(nn.Module):
    """Attention heads over one query, key and value; the width of a head is the width of the query divided by H."""

    def __init__(
        self, config: AttentionConfig, *, heads: int, query_size: int, key_size: int, dropout: float,
        causal: bool = False, rotary: bool = False, bias: bool = False,
    ) -> None:  # fmt: skip
        """If ``causal``, a query at position t sees keys up to position t only. If ``rotary``, queries and keys are
        rotated by their positions. If ``bias``, every projection has a bias. ``dropout`` is the rate for the
        weights."""
        super().__init__()
        self.heads = heads
        self.rotary = rotary
        self.query_weight_QQ = matrix(query_size, query_size)
        assert isinstance(config.score, Score)
        self.key_weight_QK = matrix(query_size, key_size) if config.score.reads_keys else None
        self.value_weight_QK = matrix(query_size, key_size)
        self.out_weight_QQ = matrix(query_size, query_size, BRANCH)
        self.query_bias_Q, self.value_bias_Q, self.out_bias_Q = (_bias(query_size, bias) for _ in range(3))
        self.key_bias_Q = _bias(query_size, bias and self.key_weight_QK is not None)
        width = query_size // heads
        self.core: DotProductHeads | IndependentHeads
        if isinstance(config.score, (Dot, ScaledDot)) and isinstance(config.weights, Softmax):
            scale = 1.0 / math.sqrt(width) if isinstance(config.score, ScaledDot) else 1.0
            self.core = DotProductHeads(scale / config.weights.temperature, dropout, causal=causal)
        else:
            self.core = IndependentHeads(config, heads=heads, width=width, dropout=dropout, causal=causal)

    def memory(self, states_BSK: Tensor, is_pad_BS: Tensor) -> BatchRecord:
        """Builds the memory of a batch of sentences for ``forward``."""
        return self.core.memory(self._key_values(self._project(states_BSK, self._key_value_projections())), is_pad_BS)

    def forward(self, query_NTQ: Tensor, position_NT: Tensor, memory: BatchRecord) -> MultiHeadOutput:
        """Attends from queries (N, T, Q) at target positions (N, T) to a memory.

        N is B or a multiple of it; the rows of a sentence are neighbours.
        """
        (query_NHTA,) = self._project(query_NTQ, [Projection(self.query_weight_QQ, self.query_bias_Q)])
        return self._join_heads(self.core(query_NHTA, position_NT, memory))

    def attend_to_self(
        self, x_NTQ: Tensor, position_NT: Tensor, is_pad_NT: Tensor | None, past: KeyValues | None = None
    ) -> tuple[MultiHeadOutput, KeyValues]:
        """Self-attention of T positions to themselves and to the ``past``; returns the keys and values of both."""
        query_NHTA, *others = self._project(x_NTQ, self.self_projections())
        present = self._key_values(others)
        if self.rotary:
            angles = RotaryAngles.of(position_NT, query_NHTA)
            query_NHTA = apply_rotary(query_NHTA, angles)
            present = KeyValues(apply_rotary(present.keys_BHSA, angles), present.values_BHSA)
        if past is not None:
            present, is_pad_NT = past.extended(present, position_NT)
        attended = self.core(query_NHTA, position_NT.expand(x_NTQ.shape[:2]), self.core.memory(present, is_pad_NT))
        return self._join_heads(attended), present

    def no_past(self, rows: int, like: Tensor) -> KeyValues:
        """Creates the empty past of the first position, with the dtype and device of ``like``."""
        empty_NH0A = like.new_empty(rows, self.heads, 0, self.query_weight_QQ.shape[0] // self.heads)
        return KeyValues(empty_NH0A, empty_NH0A)

    def self_projections(self) -> list[Projection]:
        """Returns the projections of self-attention: of queries, of keys if the score reads them, and of values."""
        return [Projection(self.query_weight_QQ, self.query_bias_Q), *self._key_value_projections()]

    def _key_value_projections(self) -> list[Projection]:
        values = Projection(self.value_weight_QK, self.value_bias_Q)
        return [values] if self.key_weight_QK is None else [Projection(self.key_weight_QK, self.key_bias_Q), values]

    def _key_values(self, projected: list[Tensor]) -> KeyValues:
        """Pairs keys with values; if the score reads no keys, the values take their place."""
        return KeyValues(projected[0], projected[-1])

    def _project(self, x_NTX: Tensor, projections: list[Projection]) -> list[Tensor]:
        """Computes all projections in one product and splits each into heads, (N, H, T, A)."""
        rows, time, _ = x_NTX.shape
        # P projections of one input as one product, because several small ones take longer
        parts_NTPHA = F.linear(x_NTX, *joined(projections)).view(rows, time, len(projections), self.heads, -1)
        parts = [part_NTHA.transpose(1, 2) for part_NTHA in parts_NTPHA.unbind(dim=2)]
        # contiguous on a CPU, because that is faster than products over strides
        return [part_NHTA.contiguous() for part_NHTA in parts] if x_NTX.device.type == "cpu" else parts

    def _join_heads(self, attended: MultiHeadOutput) -> MultiHeadOutput:
        return attended._replace(context_NTQ=F.linear(attended.context_NTQ, self.out_weight_QQ, self.out_bias_Q))


def joined(projections: list[Projection]) -> Projection:
    """Concatenates projections of the same input into one whose outputs are side by side; all have a bias, or none
    has."""
    if len(projections) == 1:
        return projections[0]
    biases = [projection.bias_Q for projection in projections if projection.bias_Q is not None]
    return Projection(
        torch.cat([projection.weight_QX for projection in projections]), torch.cat(biases) if biases else None
    )


def _bias(size: int, is_there: bool) -> nn.Parameter | None:
    return nn.Parameter(torch.zeros(size)) if is_there else None


class DotProductHeads(nn.Module):
    """softmax(scale q . k) v for all heads together."""

    def __init__(self, scale: float, dropout: float, *, causal: bool) -> None:
        super().__init__()
        self.scale = scale
        self.causal = causal
        self.dropout = Dropout(dropout)

    def memory(self, projected: KeyValues, is_pad_BS: Tensor | None) -> HeadsMemory:
        """Builds the memory from unchanged keys and values."""
        return HeadsMemory(projected.keys_BHSA, projected.values_BHSA, is_pad_BS)

    def forward(self, query_NHTA: Tensor, position_NT: Tensor, memory: HeadsMemory) -> MultiHeadOutput:
        """Contexts of all heads side by side, (N, T, Q)."""
        rows, heads, time, width = query_NHTA.shape
        batch, _, positions, _ = memory.keys_BHSA.shape
        beams = rows // batch
        # the beams of a sentence are treated as further target positions
        query_BHTA = query_NHTA.view(batch, beams, heads, time, width).transpose(1, 2).reshape(batch, heads, -1, width)
        is_hidden = self._is_hidden(time, positions, memory.is_pad_BS, query_NHTA.device)
        if memory.unread_BTS is not None:
            unread_B1TS = unread(memory.unread_BTS, position_NT)
            is_hidden = unread_B1TS if is_hidden is None else is_hidden | unread_B1TS
        dropout_mask = self.dropout.mask(
            (batch, heads, beams * time, positions), memory.values_BHSA.dtype, query_NHTA.device
        )
        context_BHTA, weights = attend(
            query_BHTA, memory.keys_BHSA, memory.values_BHSA, is_hidden, self.scale, dropout_mask
        )
        context_BHKTA = context_BHTA.view(batch, heads, beams, time, width)
        context_NTQ = context_BHKTA.permute(0, 2, 3, 1, 4).reshape(rows, time, heads * width)
        return MultiHeadOutput(context_NTQ, lambda: unfold_beams(weights(), rows, time), ())

    def _is_hidden(self, time: int, positions: int, is_pad_BS: Tensor | None, device: torch.device) -> Tensor | None:
        """Returns the attention mask, True where a query may not attend to a key; broadcasts to (B, H, T, S). None
        means that queries see all keys."""
        is_hidden = None if is_pad_BS is None else is_pad_BS[:, None, None]
        if not self.causal or time == 1:  # a single position sees its whole past
            return is_hidden
        # with a past, the first of T queries stands at position S - T
        is_later_TS = torch.ones(time, positions, dtype=torch.bool, device=device).triu(1 + positions - time)
        return is_later_TS if is_hidden is None else is_hidden | is_later_TS


class IndependentHeads(nn.Module):
    """Heads that are attention of their own, of any score and weighting."""

    def __init__(self, config: AttentionConfig, *, heads: int, width: int, dropout: float, causal: bool) -> None:
        super().__init__()
        self.each = nn.ModuleList(
            Attention(config, query_size=width, key_size=width, value_size=width, dropout=dropout, causal=causal)
            for _ in range(heads)
        )

    def memory(self, projected: KeyValues, is_pad_BS: Tensor | None) -> PerHeadMemory:
        """Builds the memory of each head."""
        keys_BHSA, values_BHSA = projected.keys_BHSA, projected.values_BHSA
        if is_pad_BS is None:
            shape = (keys_BHSA.shape[0], keys_BHSA.shape[2])
            is_pad_BS = torch.zeros(shape, dtype=torch.bool, device=keys_BHSA.device)
        heads = [
            head.memory(keys_BSA, values_BSA, is_pad_BS)  # type: ignore[operator]
            for head, keys_BSA, values_BSA in zip(self.each, keys_BHSA.unbind(1), values_BHSA.unbind(1), strict=True)
        ]
        return PerHeadMemory(tuple(heads))

    def forward(self, query_NHTA: Tensor, position_NT: Tensor, memory: PerHeadMemory) -> MultiHeadOutput:
        """Contexts of all heads side by side, (N, T, Q)."""
        attended: list[AttentionOutput] = [
            head(query_NTA, position_NT, own)
            for head, query_NTA, own in zip(self.each, query_NHTA.unbind(1), memory.heads, strict=True)
        ]
        return MultiHeadOutput(
            torch.cat([head.context_NTV for head in attended], dim=-1),
            lambda: torch.cat([head.weights_NHTS for head in attended], dim=1),
            tuple(head.sampled for head in attended if head.sampled is not None),
        )

"""Multi-head attention (Vaswani et al. 2017, section 3.2.2), with any score and weighting inside a head.

head_h = attend(q W_h, k U_h, v V_h), out = [head_1; ...; head_H] W. A head of dot products under softmax, which is the
paper's, is computed for all heads together; of any other mechanism each head is an ``Attention`` of its own.

Shapes as in ``attention``; A width of a head's query, key and value, G = B x H.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from nmt.attention import sequences
from nmt.attention.attention import Attention, AttentionMemory, matrix
from nmt.attention.config import AttentionConfig
from nmt.attention.mechanism import Score
from nmt.attention.reinforce import Choice
from nmt.attention.scores.dot import Dot
from nmt.attention.scores.scaled_dot import ScaledDot
from nmt.attention.weights.softmax import Softmax
from nmt.core.record import BatchRecord
from nmt.nn import native
from nmt.nn.dropout import Dropout, random_bytes
from nmt.nn.native import Told
from nmt.nn.positions import rotated


@dataclass(frozen=True)
class Projected(BatchRecord):
    """Keys and values of every head, before what the score prepares."""

    keys_BHSA: Tensor
    values_BHSA: Tensor


@dataclass(frozen=True)
class TogetherMemory(BatchRecord):
    """What heads of dot products keep of a batch of sentences."""

    keys_BHSA: Tensor
    values_BHSA: Tensor
    is_pad_BS: Tensor | None
    """None: there is no padding."""


@dataclass(frozen=True)
class JointMemory(BatchRecord):
    """The same for ``sequences``: keys and values of all heads side by side, (B, S, 2 x H x A)."""

    joint_BSY: Tensor
    is_pad_BS: Tensor | None

    def apart(self, heads: int, width: int) -> TogetherMemory:
        """As other ways to attend want it; a view."""
        parts_BSPHA = self.joint_BSY.view(*self.joint_BSY.shape[:2], -1, heads, width)
        return TogetherMemory(
            parts_BSPHA[:, :, -2].transpose(1, 2), parts_BSPHA[:, :, -1].transpose(1, 2), self.is_pad_BS
        )


@dataclass(frozen=True)
class ApartMemory(BatchRecord):
    """What each head keeps, an ``Attention`` of its own."""

    heads: tuple[AttentionMemory, ...]


class HeadsAttended(NamedTuple):
    """What queries get of all heads."""

    context_BTQ: Tensor
    weights: Callable[[], Tensor]
    """Forms the weights (B, H, T, S), for whom they are asked of: float32, before dropout; in training those of the
    heads that ``hand_out`` has named, or of none (H = 0)."""
    choices: tuple[Choice, ...]
    """One for each head whose weighting learns from a reward."""


def longest_by_kernels(drops: bool) -> int:
    """Up to how many positions training attends by the kernels, as ``scripts/benchmark_attention.py`` measured it
    with 4 heads of 32 in float32 on a CPU with AVX-512: they took 0.57 of the products' time at 8 and 16 positions and
    0.40 at 128, where the fused kernel takes as long; with dropout, for which that one is slow, 0.65 to 0.70 and 0.42
    at 256."""
    return 256 if drops else 128


class MultiHead(nn.Module):
    """Heads over one query, key and value; each has the H-th part of the query's width."""

    def __init__(
        self,
        config: AttentionConfig,
        *,
        heads: int,
        query_size: int,
        key_size: int,
        dropout: float,
        causal: bool = False,
        rotary: bool = False,
    ) -> None:
        """``causal``: a query at position t sees keys up to t alone. ``rotary``: queries and keys are turned by their
        positions. ``dropout`` is the weights'."""
        super().__init__()
        self.heads = heads
        self.rotary = rotary
        self.query_weight_QQ = matrix(query_size, query_size)
        assert isinstance(config.score, Score)
        self.key_weight_QK = matrix(query_size, key_size) if config.score.reads_keys else None
        self.value_weight_QK = matrix(query_size, key_size)
        self.out_weight_QQ = matrix(query_size, query_size)
        width = query_size // heads
        self.core: Together | Apart
        if isinstance(config.score, (Dot, ScaledDot)) and isinstance(config.weights, Softmax):
            scale = 1.0 / math.sqrt(width) if isinstance(config.score, ScaledDot) else 1.0
            self.core = Together(scale, dropout, causal=causal)
        else:
            self.core = Apart(config, heads=heads, width=width, dropout=dropout, causal=causal)

    def hand_out(self, heads: Sequence[int]) -> list[int]:
        """Has training hand out the weights of these heads, from 0, too; returns of which it does, in order: of no
        others, or where each head has weights at no cost, of all."""
        return self.core.hand_out(heads)

    def memory(self, states_BSK: Tensor, is_pad_BS: Tensor | None) -> BatchRecord:
        """The memory of a batch of sentences, for ``forward``."""
        weights = _there(self.key_weight_QK, self.value_weight_QK)
        product_BSP = self._product(states_BSK, weights)
        if self._by_kernels(product_BSP, product_BSP.shape[1]):
            return JointMemory(product_BSP, is_pad_BS)
        found = self._split(product_BSP, len(weights))
        return self.core.memory(Projected(found[0], found[-1]), is_pad_BS)

    def forward(self, query_NTQ: Tensor, position_NT: Tensor, memory: BatchRecord) -> HeadsAttended:
        """What queries (N, T, Q) at target positions (N, T) get of a memory; N is B or a multiple of it, a sentence's
        rows side by side."""
        product_NTQ = self._product(query_NTQ, [self.query_weight_QQ])
        if isinstance(memory, JointMemory):
            assert isinstance(self.core, Together)
            width = product_NTQ.shape[2] // self.heads
            if self.training and len(product_NTQ) == len(memory):
                return self._joined(self.core.whole(product_NTQ, position_NT, memory, self.heads, width))
            memory = memory.apart(self.heads, width)
        (query_NHTA,) = self._split(product_NTQ, 1)
        return self._joined(self.core(query_NHTA, position_NT, memory))

    def itself(self, x_BTQ: Tensor, position_BT: Tensor, is_pad_BT: Tensor | None) -> HeadsAttended:
        """Self-attention of whole sequences; ``position_BT`` may have one row for all."""
        weights = self.of_itself()
        product_BTP = self._product(x_BTQ, weights)
        if not self.rotary and self._by_kernels(product_BTP, x_BTQ.shape[1]):
            assert isinstance(self.core, Together)
            width = product_BTP.shape[2] // 3 // self.heads
            memory = JointMemory(product_BTP, is_pad_BT)
            return self._joined(self.core.whole(product_BTP, position_BT, memory, self.heads, width))
        query_BHTA, *others = self._split(product_BTP, len(weights))
        keys_BHTA, values_BHTA = others[0], others[-1]
        if self.rotary:
            query_BHTA, keys_BHTA = rotated(query_BHTA, position_BT), rotated(keys_BHTA, position_BT)
        kept = self.core.memory(Projected(keys_BHTA, values_BHTA), is_pad_BT)
        return self._joined(self.core(query_BHTA, position_BT.expand(x_BTQ.shape[:2]), kept))

    def step(self, x_N1Q: Tensor, position_N: Tensor, past: Projected) -> tuple[HeadsAttended, Projected]:
        """One step of causal self-attention: ``itself`` at the last position, given what it kept of those before."""
        position_N1 = position_N[:, None]
        weights = self.of_itself()
        query_NH1A, *others = self._split(self._product(x_N1Q, weights), len(weights))
        keys_NH1A, values_NH1A = others[0], others[-1]
        if self.rotary:
            query_NH1A, keys_NH1A = rotated(query_NH1A, position_N1), rotated(keys_NH1A, position_N1)
        kept = Projected(
            torch.cat([past.keys_BHSA, keys_NH1A], dim=2),
            torch.cat([past.values_BHSA, values_NH1A], dim=2),
        )
        return self._joined(self.core(query_NH1A, position_N1, self.core.memory(kept, None))), kept

    def nothing(self, rows: int, like: Tensor) -> Projected:
        """What is kept before the first ``step``, in the type of ``like``."""
        empty_NH0A = like.new_empty(rows, self.heads, 0, self.query_weight_QQ.shape[0] // self.heads)
        return Projected(empty_NH0A, empty_NH0A)

    def of_itself(self) -> list[Tensor]:
        """The weights that self-attention projects with: of queries, of keys where the score reads them, of values."""
        return _there(self.query_weight_QQ, self.key_weight_QK, self.value_weight_QK)

    def _by_kernels(self, product_BSP: Tensor, positions: int) -> bool:
        """Whether training attends by ``sequences``."""
        if not (self.training and torch.is_grad_enabled() and isinstance(self.core, Together)):
            return False
        drops = self.core.dropout.threshold > 0
        return positions <= longest_by_kernels(drops) and sequences.has_kernels(product_BSP)

    def _product(self, x_BTX: Tensor, weights: list[Tensor]) -> Tensor:
        """The products with all weights in one, side by side."""
        return F.linear(x_BTX, weights[0] if len(weights) == 1 else torch.cat(weights))

    def _split(self, product_BTP: Tensor, count: int) -> list[Tensor]:
        """Each of them as (B, H, T, A); contiguous, because that is faster than products over strides."""
        batch, time, _ = product_BTP.shape
        if time == 1:
            return list(product_BTP.view(batch, count, self.heads, 1, -1).unbind(dim=1))
        x_BTPHA = product_BTP.view(batch, time, count, self.heads, -1)
        return [part_BTHA.transpose(1, 2).contiguous() for part_BTHA in x_BTPHA.unbind(dim=2)]

    def _joined(self, attended: HeadsAttended) -> HeadsAttended:
        return attended._replace(context_BTQ=F.linear(attended.context_BTQ, self.out_weight_QQ))


def _there(*weights: Tensor | None) -> list[Tensor]:
    return [each for each in weights if each is not None]


def fused_from(device: str, dtype: torch.dtype) -> int:
    """The number of source positions from which on the fused kernel is faster, forward and backward, as
    ``scripts/benchmark_attention.py`` measured it with 4 heads of 32 on a CPU with AVX512-BF16: in bfloat16 it took 14
    times as long as the products at 16 positions, twice as long at 128 and as long at 256; in float32 as long at 16 and
    two thirds at 64. On a GPU it spares the memory of the weights at any length."""
    if device == "cuda":
        return 1
    return 24 if dtype == torch.float32 else 256


def fuses_steps(device: str, dtype: torch.dtype) -> bool:
    """Whether the fused kernel is faster for one query of each sentence. On the same CPU, with 400 sentences of 15
    positions and with one of 12, it took 866 and 8 microseconds in float32, the products 3,596 and 18; in bfloat16
    1,866 and 10, the products 672 and 21."""
    return device == "cuda" or dtype == torch.float32


class Together(nn.Module):
    """softmax(scale x q . k) over all heads at once: by torch's fused kernel where that is faster (see ``fused_from``
    for training and ``fuses_steps`` for a search), else in matrix products. Their softmax runs over the first dimension
    of (S, G, T), because on a CPU it is ten times as slow over rows as short as a sentence.
    """

    def __init__(self, scale: float, dropout: float, *, causal: bool) -> None:
        super().__init__()
        self.scale = scale
        self.causal = causal
        self.dropout = Dropout(dropout)
        self.handed_out: tuple[int, ...] = ()
        """Heads whose weights training hands out too."""

    def hand_out(self, heads: Sequence[int]) -> list[int]:
        """See ``MultiHead.hand_out``."""
        self.handed_out = tuple(heads)
        return list(heads)

    def memory(self, projected: Projected, is_pad_BS: Tensor | None) -> TogetherMemory:
        """Keys and values as they are."""
        return TogetherMemory(projected.keys_BHSA, projected.values_BHSA, is_pad_BS)

    def forward(self, query_NHTA: Tensor, position_NT: Tensor, memory: BatchRecord) -> HeadsAttended:
        """Contexts of all heads side by side, (N, T, H x A)."""
        assert isinstance(memory, TogetherMemory)
        rows, heads, time, _ = query_NHTA.shape
        batch, _, positions, _ = memory.keys_BHSA.shape
        device = query_NHTA.device.type
        weights: Callable[[], Tensor]
        if not self.training and time == 1:
            weights = partial(self._looked_at, query_NHTA, position_NT, memory)
            kernels = native.kernels(query_NHTA)
            if kernels is not None and memory.keys_BHSA.stride() == memory.values_BHSA.stride():
                context_NQ = kernels.attend(
                    query_NHTA[:, :, 0], memory.keys_BHSA, memory.values_BHSA, memory.is_pad_BS, self.scale
                )
                return HeadsAttended(context_NQ[:, None], weights, ())
            if rows == batch and fuses_steps(device, query_NHTA.dtype):
                return self._fused(query_NHTA, memory)._replace(weights=weights)
        is_fast = fused_from(device, query_NHTA.dtype) <= positions
        drops = self.dropout.threshold > 0 and device == "cpu"  # for which a CPU has no fused kernel
        if self.training and time > 1 and is_fast and not drops:
            attended = self._fused(query_NHTA, memory)
            if not self.handed_out:
                return attended
            return attended._replace(weights=partial(self._handed_out, query_NHTA, position_NT, memory))
        query_GTA = _beams_to_time(query_NHTA, batch).flatten(0, 1)

        scores_SGT = self._scores(query_GTA, position_NT, memory)
        values_GSA = memory.values_BHSA.flatten(0, 1)
        weights = _no_weights(query_NHTA, positions)
        if self.training:
            weights_SGT = self.dropout(scores_SGT.softmax(dim=0))
            if self.handed_out:
                scores_SBHT = scores_SGT.view(positions, batch, heads, -1)
                weights = partial(self._weights, self._chosen(scores_SBHT, 2))
        else:
            wide_SGT = self._softmax(scores_SGT)
            weights_SGT = wide_SGT.to(values_GSA.dtype)
            weights = partial(_weights_of, wide_SGT, batch, rows)
        context_GTA = weights_SGT.permute(1, 2, 0) @ values_GSA
        context_NHTA = _time_to_beams(context_GTA.view(batch, heads, *context_GTA.shape[1:]), rows)
        return HeadsAttended(context_NHTA.transpose(1, 2).flatten(2), weights, ())

    def whole(
        self, queries_BTX: Tensor, position_BT: Tensor, memory: JointMemory, heads: int, width: int
    ) -> HeadsAttended:
        """The same in training by ``sequences``."""
        batch, time, positions = *queries_BTX.shape[:2], memory.joint_BSY.shape[1]
        drawn_SBHT = None
        if self.dropout.threshold:  # in the order in which ``forward`` draws, so that it is the same training
            drawn_SBHT = random_bytes((positions, batch, heads, time), queries_BTX.device)
        told = Told(heads, width, self.scale, self.causal, self.dropout.threshold)
        context_BTQ = sequences.attended(queries_BTX, memory.joint_BSY, memory.is_pad_BS, drawn_SBHT, told)
        if not self.handed_out:
            return HeadsAttended(context_BTQ, partial(context_BTQ.new_empty, (batch, 0, time, positions)), ())
        query_BHTA = queries_BTX[:, :, : heads * width].reshape(*queries_BTX.shape[:2], heads, width).transpose(1, 2)
        weights = partial(self._handed_out, query_BHTA, position_BT, memory.apart(heads, width))
        return HeadsAttended(context_BTQ, weights, ())

    def _looked_at(self, query_NHTA: Tensor, position_NT: Tensor, memory: TogetherMemory) -> Tensor:
        """The weights by matrix products, (N, H, T, S)."""
        batch = memory.keys_BHSA.shape[0]
        scores_SGT = self._scores(_beams_to_time(query_NHTA, batch).flatten(0, 1), position_NT, memory)
        return _weights_of(self._softmax(scores_SGT), batch, query_NHTA.shape[0])

    def _scores(self, query_GTA: Tensor, position_NT: Tensor, memory: TogetherMemory) -> Tensor:
        """(S, G, T)."""
        hidden = self._hidden(position_NT, memory, query_GTA.dtype)
        scores_GST = torch.baddbmm(hidden, memory.keys_BHSA.flatten(0, 1), query_GTA.mT, alpha=self.scale)
        return scores_GST.transpose(0, 1).contiguous()

    def _handed_out(self, query_BHTA: Tensor, position_BT: Tensor, memory: TogetherMemory) -> Tensor:
        """The weights of the heads to hand out, (B, H, T, S), by matrix products for these alone."""
        keys_BHSA = self._chosen(memory.keys_BHSA, 1)
        own = TogetherMemory(keys_BHSA, keys_BHSA, memory.is_pad_BS)  # values have no say in weights
        scores_SGT = self._scores(self._chosen(query_BHTA, 1).flatten(0, 1), position_BT, own)
        return self._weights(scores_SGT.view(scores_SGT.shape[0], *keys_BHSA.shape[:2], -1))

    def _chosen(self, x: Tensor, dimension: int) -> Tensor:
        """The heads to hand out; not by a list of numbers, which a GPU would have to wait for."""
        return torch.stack([x.select(dimension, head) for head in self.handed_out], dim=dimension)

    def _weights(self, scores_SBHT: Tensor) -> Tensor:
        return self._softmax(scores_SBHT).permute(1, 2, 3, 0)

    def _softmax(self, scores: Tensor) -> Tensor:
        """Over the first dimension, as search and alignment want it."""
        return scores.softmax(dim=0, dtype=torch.promote_types(scores.dtype, torch.float32))

    def _fused(self, query_BHTA: Tensor, memory: TogetherMemory) -> HeadsAttended:
        """The same by ``scaled_dot_product_attention``, which hands out no weights. One query sees all that is there:
        the keys of steps to come are not."""
        mask = None if memory.is_pad_BS is None else ~memory.is_pad_BS[:, None, None]
        is_causal = self.causal and query_BHTA.shape[2] > 1
        if is_causal:
            assert mask is None, "padding stands at the end, ahead of every word"
        context_BHTA = F.scaled_dot_product_attention(
            query_BHTA,
            memory.keys_BHSA,
            memory.values_BHSA,
            attn_mask=mask,
            dropout_p=self.dropout.threshold / 256 if self.training else 0.0,
            is_causal=is_causal,
            scale=self.scale,
        )
        no_weights = _no_weights(query_BHTA, memory.keys_BHSA.shape[2])
        return HeadsAttended(context_BHTA.transpose(1, 2).flatten(2), no_weights, ())

    def _hidden(self, position_NT: Tensor, memory: TogetherMemory, dtype: torch.dtype) -> Tensor:
        """-inf where a query may not look, else 0: (G, S, 1), (1, S, T) or (G, S, T)."""
        batch, heads, positions, _ = memory.keys_BHSA.shape
        hidden = torch.zeros(1, 1, 1, dtype=dtype, device=position_NT.device)
        if memory.is_pad_BS is not None:
            hidden_BS = torch.zeros(memory.is_pad_BS.shape, dtype=dtype, device=position_NT.device)
            hidden_BS = hidden_BS.masked_fill(memory.is_pad_BS, -torch.inf)
            hidden = hidden_BS[:, None].expand(batch, heads, positions).flatten(0, 1)[:, :, None]
        if self.causal and position_NT.shape[1] > 1:
            is_ahead_ST = torch.ones(positions, positions, dtype=torch.bool, device=position_NT.device).tril(-1)
            hidden = hidden + torch.zeros_like(is_ahead_ST, dtype=dtype).masked_fill(is_ahead_ST, -torch.inf)
        return hidden


class Apart(nn.Module):
    """Heads that are attention of their own, of any score and weighting."""

    def __init__(self, config: AttentionConfig, *, heads: int, width: int, dropout: float, causal: bool) -> None:
        super().__init__()
        self.each = nn.ModuleList(
            Attention(config, query_size=width, key_size=width, value_size=width, dropout=dropout, causal=causal)
            for _ in range(heads)
        )
        self.heads = heads * config.weights.heads

    def hand_out(self, heads: Sequence[int]) -> list[int]:
        """See ``MultiHead.hand_out``."""
        return list(range(self.heads))

    def memory(self, projected: Projected, is_pad_BS: Tensor | None) -> ApartMemory:
        """What each head keeps of its keys and values."""
        keys_BHSA, values_BHSA = projected.keys_BHSA, projected.values_BHSA
        if is_pad_BS is None:
            shape = (keys_BHSA.shape[0], keys_BHSA.shape[2])
            is_pad_BS = torch.zeros(shape, dtype=torch.bool, device=keys_BHSA.device)
        return ApartMemory(
            tuple(
                head.memory(keys_BSA, values_BSA, is_pad_BS)  # type: ignore[operator]
                for head, keys_BSA, values_BSA in zip(
                    self.each, keys_BHSA.unbind(1), values_BHSA.unbind(1), strict=True
                )
            )
        )

    def forward(self, query_NHTA: Tensor, position_NT: Tensor, memory: BatchRecord) -> HeadsAttended:
        """Contexts of all heads side by side, (N, T, H x A)."""
        assert isinstance(memory, ApartMemory)
        attended = [
            head(query_NTA, position_NT, kept)
            for head, query_NTA, kept in zip(self.each, query_NHTA.unbind(1), memory.heads, strict=True)
        ]
        return HeadsAttended(
            torch.cat([each.context_BTV for each in attended], dim=-1),
            lambda: torch.cat([each.weights_BHTS for each in attended], dim=1),
            tuple(each.choice for each in attended if each.choice is not None),
        )


def _no_weights(query_BHTA: Tensor, positions: int) -> Callable[[], Tensor]:
    rows, _, time, _ = query_BHTA.shape
    return partial(query_BHTA.new_empty, (rows, 0, time, positions))


def _weights_of(weights_SGT: Tensor, batch: int, rows: int) -> Tensor:
    """(N, H, T, S) in float32, of B sentences with N rows."""
    positions, group, time = weights_SGT.shape
    weights_BHTS = weights_SGT.permute(1, 2, 0).float().view(batch, group // batch, time, positions)
    return _time_to_beams(weights_BHTS, rows)


def _beams_to_time(x_NHTA: Tensor, batch: int) -> Tensor:
    """A sentence's K beams as if they were further target positions: (N, H, T, A) to (B, H, KT, A)."""
    rows, heads, time, width = x_NHTA.shape
    if rows == batch:
        return x_NHTA
    return x_NHTA.view(batch, rows // batch, heads, time, width).transpose(1, 2).reshape(batch, heads, -1, width)


def _time_to_beams(x_BHTA: Tensor, rows: int) -> Tensor:
    """The way back: (B, H, KT, A) to (N, H, T, A)."""
    batch, heads, time, width = x_BHTA.shape
    if rows == batch:
        return x_BHTA
    beams = rows // batch
    x_BHKTA = x_BHTA.view(batch, heads, beams, time // beams, width)
    return x_BHKTA.transpose(1, 2).reshape(rows, heads, -1, width)

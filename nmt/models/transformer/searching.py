"""The Transformer decoder's steps in a search.

They give the numbers that its modules give a position at a time. But a step of few rows is some hundred small
operations, and to call modules, to look parameters up and to join them takes longer than the operations: for one
sentence alone nearly two thirds of the time. So all that steps share is looked up and joined once, and what a block
adds to the residual stream is added to it in place.

Shapes as in ``seq2seq``; D width of a state, A of a head's part of it; P parts are kept of a step: keys and values, or
values alone where the score reads no keys.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from nmt.attention.multihead import HeadsAttended, MultiHead, Projected, Together
from nmt.core.record import BatchRecord, shared
from nmt.models.seq2seq import DecoderStep
from nmt.models.transformer.block import Entrance, Residual
from nmt.nn import native
from nmt.nn.embedding import Embedding
from nmt.nn.feed_forward import FeedForward
from nmt.nn.positions import Angles, Unchanged, turned
from nmt.nn.precision import compute_dtype
from nmt.nn.product import Product


@dataclass(frozen=True)
class SearchState(BatchRecord, ABC):
    """What goes from step to step of a search, all of whose rows have as many steps behind them."""

    @property
    @abstractmethod
    def time(self) -> int:
        """How many steps are behind."""

    @abstractmethod
    def pasts(self) -> list[_Past]:
        """What each layer looks back at, bottom first."""

    @abstractmethod
    def after(self, pasts: Sequence[_Past]) -> SearchState:
        """The state after a step, which its ``pasts`` have kept."""


@dataclass(frozen=True)
class CopiedState(SearchState):
    """Keys and values of each row, which each step and each change of rows copies."""

    kept_NPHTA: tuple[Tensor, ...]
    """Of all steps so far, of each layer."""

    @property
    def time(self) -> int:
        """See ``SearchState``."""
        return self.kept_NPHTA[0].shape[3]

    def pasts(self) -> list[_Past]:
        """See ``SearchState``."""
        return [_Copied(kept) for kept in self.kept_NPHTA]

    def after(self, pasts: Sequence[_Past]) -> SearchState:
        """See ``SearchState``."""
        return CopiedState(tuple(past.kept for past in pasts))


@dataclass(frozen=True)
class TrailState(SearchState):
    """The same where a kernel follows each row's trail: what a step has projected stays where it is."""

    trail_NT: Tensor
    """Which row of a step each row was."""
    kept_NX: tuple[tuple[Tensor, ...], ...] = shared()
    """Of each layer, what each step has projected: keys and values are the end of it."""

    @property
    def time(self) -> int:
        """See ``SearchState``."""
        return self.trail_NT.shape[1]

    def pasts(self) -> list[_Past]:
        """See ``SearchState``."""
        now_N1 = torch.arange(len(self.trail_NT))[:, None]
        trail_NT = torch.cat([self.trail_NT, now_N1], dim=1)
        return [_Trail(trail_NT, kept) for kept in self.kept_NX]

    def after(self, pasts: Sequence[_Past]) -> SearchState:
        """See ``SearchState``."""
        first = pasts[0]
        assert isinstance(first, _Trail)
        return TrailState(first.trail_NT, tuple(past.kept for past in pasts))


class _Past(ABC):
    """What a layer looks back at in a step."""

    kept: Any
    """What a state keeps of it."""

    @abstractmethod
    def look(self, core: nn.Module, query_NH1A: Tensor, now_NX: Tensor, at: _Time) -> Tensor:
        """What the heads get of all steps and the one that is now, (N, H x A); keeps that. ``now_NX`` ends with its
        keys and values."""


class _Copied(_Past):
    def __init__(self, kept_NPHTA: Tensor) -> None:
        self.kept = kept_NPHTA

    def look(self, core: nn.Module, query_NH1A: Tensor, now_NX: Tensor, at: _Time) -> Tensor:
        rows, parts, heads, _, width = self.kept.shape
        now_NPH1A = now_NX[:, -parts * heads * width :].view(rows, parts, heads, 1, width)
        self.kept = torch.cat([self.kept, now_NPH1A], dim=3)
        memory: BatchRecord = core.memory(Projected(self.kept[:, 0], self.kept[:, -1]), None)  # type: ignore[operator]
        return _attended(core, query_NH1A, at, memory).context_BTQ.view(rows, -1)


class _Trail(_Past):
    def __init__(self, trail_NT: Tensor, kept_NX: tuple[Tensor, ...]) -> None:
        self.trail_NT = trail_NT
        self.kept = kept_NX

    def look(self, core: nn.Module, query_NH1A: Tensor, now_NX: Tensor, at: _Time) -> Tensor:
        assert isinstance(core, Together)
        self.kept = (*self.kept, now_NX)
        query_NHA = query_NH1A[:, :, 0]
        return native.expected(query_NHA).attend_behind(query_NHA, self.kept, self.trail_NT, core.scale)


class SearchSteps:
    """Makes steps of a decoder whose weights no longer change."""

    def __init__(
        self, embedding: Embedding, entrance: Entrance, layers: nn.ModuleList, norm: nn.Module, readout: nn.Module
    ) -> None:
        self._enter = _Enter(embedding, entrance)
        self._layers = [_Layer(layer) for layer in layers]
        self._has_trails = all(layer.has_trail() for layer in self._layers)
        self._norm = _norm(norm)
        self._read = Product.of(readout) if isinstance(readout, nn.Linear) else None

    def start(self, rows: int, like: Tensor) -> SearchState:
        """The state before the first step, in the type of ``like``."""
        if self._has_trails and native.kernels(like) is not None:
            return TrailState(like.new_empty(rows, 0, dtype=torch.int64), ((),) * len(self._layers))
        return CopiedState(tuple(layer.nothing(rows, like) for layer in self._layers))

    def __call__(
        self, token_N: Tensor, memories: tuple[BatchRecord, ...], state: SearchState
    ) -> DecoderStep[SearchState]:
        """One step over the layers' memories; see ``Decoder.step``."""
        time = state.time
        at = _Time(token_N.new_full((len(token_N), 1), time))
        x_ND = self._enter(token_N, time)
        pasts, seen = state.pasts(), list[Callable[[], Tensor]]()
        for layer, memory, past in zip(self._layers, memories, pasts, strict=True):
            x_ND, weights = layer(x_ND, at, memory, past)
            seen.append(weights)
        x_ND = self._norm(x_ND)
        return DecoderStep(
            x_ND if self._read is None else self._read(x_ND),
            lambda: torch.cat([weights() for weights in seen], dim=1)[:, :, 0],
            state.after(pasts),
        )


class _Time:
    """Where a step is in its sentence."""

    def __init__(self, position_N1: Tensor) -> None:
        self.position_N1 = position_N1
        self._angles: Angles | None = None

    def turned(self, x_NHTA: Tensor) -> Tensor:
        """Rotary positions: all layers turn by the same angles."""
        if self._angles is None:
            self._angles = Angles.of(self.position_N1[:1], x_NHTA)
        return turned(x_NHTA, self._angles)


class _Enter:
    """``Entrance``, of one position; its vectors are formed for many steps at once."""

    def __init__(self, embedding: Embedding, entrance: Entrance) -> None:
        self._table_VE = embedding.weight_VD.detach()
        self._scale = entrance.scale
        self._widen = None if entrance.widen is None else Product.of(entrance.widen)
        self._positions = None if isinstance(entrance.positions, Unchanged) else entrance.positions
        self._vectors_TD: Tensor | None = None

    def __call__(self, token_N: Tensor, time: int) -> Tensor:
        x_ND = self._table_VE.index_select(0, token_N)
        x_ND = x_ND.to(compute_dtype(x_ND)).mul_(self._scale)
        if self._widen is not None:
            x_ND = self._widen(x_ND)
        return x_ND if self._positions is None else x_ND.add_(self._vectors(time, x_ND)[time])

    def _vectors(self, time: int, like_ND: Tensor) -> Tensor:
        if self._vectors_TD is None or time >= len(self._vectors_TD):
            assert self._positions is not None
            count = max(2 * time, 64)
            zeros_1TD = like_ND.new_zeros(1, count, like_ND.shape[1])
            vectors_1TD: Tensor = self._positions(zeros_1TD, torch.arange(count, device=like_ND.device)[None])
            self._vectors_TD = vectors_1TD[0]
        return self._vectors_TD


class _Layer:
    """``DecoderLayer``, of one position."""

    def __init__(self, layer: nn.Module) -> None:
        self._itself = _Self(layer.self_attention)  # type: ignore[arg-type]
        self._source = _Source(layer.attention)  # type: ignore[arg-type]
        self._inside = _Inside(layer.feed_forward)  # type: ignore[arg-type]
        residuals = (layer.self_attention_residual, layer.attention_residual, layer.feed_forward_residual)
        first: Residual = residuals[0]  # type: ignore[assignment]
        self._is_first = first.is_first
        self._norms = [_norm(each.norm) for each in residuals]  # type: ignore[arg-type]

    def nothing(self, rows: int, like: Tensor) -> Tensor:
        """What is kept before the first step."""
        return self._itself.nothing(rows, like)

    def has_trail(self) -> bool:
        """Whether the kernel attends as the layer does to itself."""
        return self._itself.has_trail()

    def __call__(
        self, x_ND: Tensor, at: _Time, memory: BatchRecord, past: _Past
    ) -> tuple[Tensor, Callable[[], Tensor]]:
        """The next states, in place of ``x_ND``, and what forms the weights (N, H, 1, S); ``past`` keeps this step."""
        of_itself, of_source, of_inside = self._norms
        is_first = self._is_first
        x_ND = self._itself(x_ND, of_itself(x_ND) if is_first else x_ND, at, past)
        x_ND = x_ND if is_first else of_itself(x_ND)
        x_ND, weights = self._source(x_ND, of_source(x_ND) if is_first else x_ND, at, memory)
        x_ND = x_ND if is_first else of_source(x_ND)
        x_ND = self._inside(x_ND, of_inside(x_ND) if is_first else x_ND)
        return x_ND if is_first else of_inside(x_ND), weights


class _Self:
    """Self-attention to all steps so far."""

    def __init__(self, attention: MultiHead) -> None:
        weights = attention.of_itself()
        self._parts, self._heads = len(weights), attention.heads
        self._width = attention.query_weight_QQ.shape[0] // attention.heads
        self._rotary = attention.rotary
        self._core = attention.core
        self._project = Product(torch.cat(weights))
        self._out = Product(attention.out_weight_QQ)

    def nothing(self, rows: int, like: Tensor) -> Tensor:
        return like.new_empty(rows, self._parts - 1, self._heads, 0, self._width)

    def has_trail(self) -> bool:
        return isinstance(self._core, Together)

    def __call__(self, x_ND: Tensor, read_ND: Tensor, at: _Time, past: _Past) -> Tensor:
        rows = len(x_ND)
        now_NX = self._project(read_ND)
        parts_NXH1A = now_NX.view(rows, self._parts, self._heads, 1, self._width)
        query_NH1A = parts_NXH1A[:, 0]
        if self._rotary:
            both_NXH1A = at.turned(parts_NXH1A[:, :2])
            query_NH1A, now_NX = both_NXH1A[:, 0], torch.cat([both_NXH1A[:, 1:], parts_NXH1A[:, 2:]], dim=1).flatten(1)
        return self._out.onto(x_ND, past.look(self._core, query_NH1A, now_NX, at))


class _Source:
    """Attention to the source."""

    def __init__(self, attention: MultiHead) -> None:
        self._heads = attention.heads
        self._core = attention.core
        self._project = Product(attention.query_weight_QQ)
        self._out = Product(attention.out_weight_QQ)

    def __call__(
        self, x_ND: Tensor, read_ND: Tensor, at: _Time, memory: BatchRecord
    ) -> tuple[Tensor, Callable[[], Tensor]]:
        query_NH1A = self._project(read_ND).view(len(x_ND), self._heads, 1, -1)
        attended = _attended(self._core, query_NH1A, at, memory)
        return self._out.onto(x_ND, attended.context_BTQ.view(len(x_ND), -1)), attended.weights


class _Inside:
    """The feed-forward block."""

    def __init__(self, block: FeedForward) -> None:
        self._rise = Product.of(block.rise)
        self._activated = block.activated
        self._fall = Product.of(block.fall)

    def __call__(self, x_ND: Tensor, read_ND: Tensor) -> Tensor:
        return self._fall.onto(x_ND, self._activated(self._rise(read_ND)))


def _attended(core: nn.Module, query_NH1A: Tensor, at: _Time, memory: BatchRecord) -> HeadsAttended:
    attended: HeadsAttended = core.forward(query_NH1A, at.position_N1, memory)
    return attended


def _norm(norm: nn.Module) -> Callable[[Tensor], Tensor]:
    if not isinstance(norm, nn.LayerNorm):
        return _unchanged
    return partial(
        F.layer_norm, normalized_shape=norm.normalized_shape, weight=norm.weight, bias=norm.bias, eps=norm.eps
    )


def _unchanged(x_ND: Tensor) -> Tensor:
    return x_ND

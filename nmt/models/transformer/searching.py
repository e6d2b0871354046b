"""The Transformer decoder's steps in a search.

They give the numbers that its modules give a position at a time. But a step of few rows is some hundred small
operations, and to call modules, to look parameters up and to join them takes longer than the operations: for one
sentence alone nearly two thirds of the time. So all that steps share is looked up and joined once, and what a block
adds to the residual stream is added to it in place.

Shapes as in ``seq2seq``; D width of a state, A of a head's part of it; P parts are kept of a step: keys and values, or
values alone where the score reads no keys.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from nmt.attention.multihead import HeadsAttended, MultiHead, Projected
from nmt.core.record import BatchRecord
from nmt.layers.embedding import Embedding
from nmt.layers.feed_forward import FeedForward
from nmt.layers.positions import Angles, Unchanged, turned
from nmt.layers.precision import compute_dtype
from nmt.layers.product import Product
from nmt.models.seq2seq import DecoderStep
from nmt.models.transformer.block import Entrance, Residual


@dataclass(frozen=True)
class SearchState(BatchRecord):
    """What goes from step to step of a search, all of whose rows have as many steps behind them."""

    kept_NPHTA: tuple[Tensor, ...]
    """Of all steps so far, of each layer, bottom first."""


class SearchSteps:
    """Makes steps of a decoder whose weights no longer change."""

    def __init__(
        self, embedding: Embedding, entrance: Entrance, layers: nn.ModuleList, norm: nn.Module, readout: nn.Module
    ) -> None:
        self._enter = _Enter(embedding, entrance)
        self._layers = [_Layer(layer) for layer in layers]
        self._norm = _norm(norm)
        self._read = Product.of(readout) if isinstance(readout, nn.Linear) else None

    def start(self, rows: int, like: Tensor) -> SearchState:
        """The state before the first step, in the type of ``like``."""
        return SearchState(tuple(layer.nothing(rows, like) for layer in self._layers))

    def __call__(
        self, token_N: Tensor, memories: tuple[BatchRecord, ...], state: SearchState
    ) -> DecoderStep[SearchState]:
        """One step over the layers' memories; see ``Decoder.step``."""
        time = state.kept_NPHTA[0].shape[3]
        at = _Time(token_N.new_full((len(token_N), 1), time))
        x_ND = self._enter(token_N, time)
        seen: list[Callable[[], Tensor]] = []
        kept: list[Tensor] = []
        for layer, memory, past in zip(self._layers, memories, state.kept_NPHTA, strict=True):
            x_ND, now, weights = layer(x_ND, at, memory, past)
            kept.append(now)
            seen.append(weights)
        x_ND = self._norm(x_ND)
        return DecoderStep(
            x_ND if self._read is None else self._read(x_ND),
            lambda: torch.cat([weights() for weights in seen], dim=1)[:, :, 0],
            SearchState(tuple(kept)),
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

    def __call__(
        self, x_ND: Tensor, at: _Time, memory: BatchRecord, past_NPHTA: Tensor
    ) -> tuple[Tensor, Tensor, Callable[[], Tensor]]:
        """The next states, in place of ``x_ND``, what is kept, and what forms the weights (N, H, 1, S)."""
        of_itself, of_source, of_inside = self._norms
        is_first = self._is_first
        x_ND, kept = self._itself(x_ND, of_itself(x_ND) if is_first else x_ND, at, past_NPHTA)
        x_ND = x_ND if is_first else of_itself(x_ND)
        x_ND, weights = self._source(x_ND, of_source(x_ND) if is_first else x_ND, at, memory)
        x_ND = x_ND if is_first else of_source(x_ND)
        x_ND = self._inside(x_ND, of_inside(x_ND) if is_first else x_ND)
        return x_ND if is_first else of_inside(x_ND), kept, weights


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

    def __call__(self, x_ND: Tensor, read_ND: Tensor, at: _Time, past_NPHTA: Tensor) -> tuple[Tensor, Tensor]:
        rows = len(x_ND)
        parts_NXH1A = self._project(read_ND).view(rows, self._parts, self._heads, 1, self._width)
        if self._rotary:
            both_NXH1A = at.turned(parts_NXH1A[:, :2])
            query_NH1A, now_NPH1A = both_NXH1A[:, 0], torch.cat([both_NXH1A[:, 1:], parts_NXH1A[:, 2:]], dim=1)
        else:
            query_NH1A, now_NPH1A = parts_NXH1A[:, 0], parts_NXH1A[:, 1:]
        kept_NPHTA = torch.cat([past_NPHTA, now_NPH1A], dim=3)
        memory = self._core.memory(Projected(kept_NPHTA[:, 0], kept_NPHTA[:, -1]), None)
        context_ND = _attended(self._core, query_NH1A, at, memory).context_BTQ.view(rows, -1)
        return self._out.onto(x_ND, context_ND), kept_NPHTA


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

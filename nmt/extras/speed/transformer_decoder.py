"""Steps of the Transformer decoder in a search on a CPU with kernels.

A step of few rows consists of about a hundred small operations; calling modules, looking up parameters and joining them
takes longer than the operations. So everything that steps share is looked up and joined once, and the output of a block
is added to the residual stream in place. The keys and values of a step are never copied: a search keeps, for each row,
the row of each earlier step that it comes from.

Shapes as in ``seq2seq``; D width of a state, A of a head's part of it; X numbers that a step projects of a row.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from nmt.attention.multihead import DotProductHeads, HeadsMemory, MultiHead, joined
from nmt.core.record import BatchRecord, shared
from nmt.extras.speed import native
from nmt.extras.speed.product import Product
from nmt.models.seq2seq import Decoded, Decoder, DecoderStep, Encoded, NextToken
from nmt.models.transformer.block import EmbeddingLayer
from nmt.models.transformer.decoder import DecoderLayer, TransformerDecoder, TransformerMemory, TransformerState
from nmt.nn.embedding import Embedding
from nmt.nn.positions import NoPosition, RotaryAngles, apply_rotary
from nmt.nn.precision import compute_dtype


@dataclass(frozen=True)
class BackpointerState(BatchRecord):
    """The steps so far, whose number is the same for all rows."""

    backpointer_NT: Tensor
    """The row of each earlier step that a row comes from."""
    layers: tuple[tuple[Tensor, ...], ...] = shared()
    """The projections (N, X) of each layer and step; keys and values are at the end of a row."""


class FastTransformerDecoder(Decoder[TransformerMemory, "BackpointerState | TransformerState"]):
    """A trained decoder whose steps run by kernels; if gradients are recorded, the steps of the plain decoder run."""

    def __init__(self, decoder: TransformerDecoder) -> None:
        super().__init__()
        self.plain = decoder
        self.readout_size, self.head_names = decoder.readout_size, decoder.head_names
        self.embedding = decoder.embedding
        self._enter = _EmbedStep(decoder.embedding, decoder.entrance)
        self._layers = [_LayerStep(layer) for layer in decoder.layers]  # type: ignore[arg-type]
        self._norm = _norm(decoder.norm)
        self._readout = Product.of(decoder.readout) if isinstance(decoder.readout, nn.Linear) else None

    @staticmethod
    def supports(decoder: TransformerDecoder, dtype: torch.dtype) -> bool:
        """Returns True if there are kernels, and heads are dot products under softmax."""
        has_kernels = native.kernels_for(dtype, decoder.embedding.weight_VD.device)
        heads = [module.core for module in decoder.modules() if isinstance(module, MultiHead)]
        return has_kernels is not None and all(isinstance(core, DotProductHeads) for core in heads)

    def memory(self, encoded: Encoded) -> TransformerMemory:
        """See ``Decoder.memory``."""
        return self.plain.memory(encoded)

    def teacher_forced(self, input_BT: Tensor, memory: TransformerMemory) -> Decoded:
        """See ``Decoder.teacher_forced``."""
        return self.plain.teacher_forced(input_BT, memory)

    def free_running(self, first_B: Tensor, memory: TransformerMemory, steps: int, next_token: NextToken) -> Decoded:
        """See ``Decoder.free_running``."""
        return self.plain.free_running(first_B, memory, steps, next_token)

    def start(self, memory: TransformerMemory) -> BackpointerState | TransformerState:
        """See ``Decoder.start``."""
        if torch.is_grad_enabled():
            return self.plain.start(memory)
        none_N0 = memory.empty_B0.new_empty(memory.empty_B0.shape[0], 0, dtype=torch.int64)
        return BackpointerState(none_N0, ((),) * len(self._layers))

    def step(
        self, token_N: Tensor, memory: TransformerMemory, state: BackpointerState | TransformerState
    ) -> DecoderStep[BackpointerState | TransformerState]:
        """See ``Decoder.step``."""
        if isinstance(state, TransformerState):
            return self.plain.step(token_N, memory, state)  # type: ignore[return-value]
        rows, time = state.backpointer_NT.shape
        backpointer_NT = torch.cat([state.backpointer_NT, torch.arange(rows)[:, None]], dim=1)
        position_11, width = token_N.new_full((1, 1), time), self._layers[0].width
        x_ND = self._enter(token_N, time)
        angles = RotaryAngles.of(position_11, x_ND.new_empty(width)) if self._layers[0].rotary else None
        layers, weights = list[tuple[Tensor, ...]](), list[Callable[[], Tensor]]()
        for layer, source, past in zip(self._layers, memory.layers, state.layers, strict=True):
            assert isinstance(source, HeadsMemory)
            x_ND, kept, form_weights = layer(x_ND, angles, source, past, backpointer_NT)
            layers.append(kept)
            weights.append(form_weights)
        x_ND = self._norm(x_ND)
        return DecoderStep(
            x_ND if self._readout is None else self._readout(x_ND),
            lambda: torch.cat([form() for form in weights], dim=1)[:, :, 0],
            BackpointerState(backpointer_NT, tuple(layers)),
        )


class _EmbedStep:
    """``EmbeddingLayer`` for one position; the vectors of many positions are formed at once."""

    def __init__(self, embedding: Embedding, entrance: EmbeddingLayer) -> None:
        self._table_VE = embedding.weight_VD.detach()
        self._scale = entrance.scale
        self._widen = None if entrance.widen is None else Product.of(entrance.widen)
        self._positions = None if isinstance(entrance.positions, NoPosition) else entrance.positions
        self._vectors_TD: Tensor | None = None

    def __call__(self, token_N: Tensor, time: int) -> Tensor:
        x_ND = self._table_VE.index_select(0, token_N)
        x_ND = x_ND.to(compute_dtype(x_ND)).mul_(self._scale)
        if self._widen is not None:
            x_ND = self._widen(x_ND)
        if self._positions is None:
            return x_ND
        if self._vectors_TD is None or time >= len(self._vectors_TD):
            count = max(2 * time, 64)
            zeros_1TD = x_ND.new_zeros(1, count, x_ND.shape[1])
            vectors_1TD: Tensor = self._positions(zeros_1TD, torch.arange(count, device=x_ND.device)[None])
            self._vectors_TD = vectors_1TD[0]
        return x_ND.add_(self._vectors_TD[time])


class _LayerStep:
    """``DecoderLayer`` for one position."""

    def __init__(self, layer: DecoderLayer) -> None:
        itself, source, inside = layer.self_attention, layer.attention, layer.feed_forward
        assert isinstance(itself.core, DotProductHeads)
        assert isinstance(source.core, DotProductHeads)
        self.rotary = itself.rotary
        self._heads = itself.heads
        self.width = itself.query_weight_QQ.shape[0] // itself.heads
        self._scale = itself.core.scale
        self._project_self = Product(*joined(itself.self_projections()))
        self._out_self = Product(itself.out_weight_QQ, itself.out_bias_Q)
        self._project_source = Product(source.query_weight_QQ, source.query_bias_Q)
        self._out_source = Product(source.out_weight_QQ, source.out_bias_Q)
        self._source: DotProductHeads = source.core
        self._rise, self._activated, self._fall = Product.of(inside.rise), inside.activated, Product.of(inside.fall)
        residuals = (layer.self_attention_residual, layer.attention_residual, layer.feed_forward_residual)
        norms, none = [_norm(residual.norm) for residual in residuals], _norm(nn.Identity())
        self._norms = [(norm, none) if residuals[0].is_pre_norm else (none, norm) for norm in norms]

    def __call__(
        self,
        x_ND: Tensor,
        angles: RotaryAngles | None,
        memory: HeadsMemory,
        past: tuple[Tensor, ...],
        backpointer_NT: Tensor,
    ) -> tuple[Tensor, tuple[Tensor, ...], Callable[[], Tensor]]:
        """Computes the next states, which overwrite ``x_ND``, the ``past`` with this step, and the weights on
        demand."""
        # of each of the three residual blocks, the normalization of what it reads, and of its sum
        (before_self, after_self), (before_source, after_source), (before_inside, after_inside) = self._norms
        # attention to the steps so far
        present_NX = self._project_self(before_self(x_ND))
        parts_N3H1A = present_NX.view(len(x_ND), 3, self._heads, 1, self.width)
        query_NH1A = parts_N3H1A[:, 0]
        if angles is not None:
            both_N2H1A = apply_rotary(parts_N3H1A[:, :2], angles)
            query_NH1A = both_N2H1A[:, 0]
            present_NX = torch.cat([both_N2H1A[:, 1:], parts_N3H1A[:, 2:]], dim=1).flatten(1)
        kept = (*past, present_NX)
        kernels = native.kernels(present_NX)
        assert kernels is not None
        context_NQ = kernels.attend_to_steps(query_NH1A[:, :, 0], kept, backpointer_NT, self._scale)
        x_ND = after_self(self._out_self.onto(x_ND, context_NQ))
        # attention to the source
        query_NHA = self._project_source(before_source(x_ND)).view(len(x_ND), self._heads, -1)
        scale = self._source.scale
        context_NQ = kernels.attend(query_NHA, memory.keys_BHSA, memory.values_BHSA, memory.is_pad_BS, scale)
        x_ND = after_source(self._out_source.onto(x_ND, context_NQ))

        def weights() -> Tensor:
            position_N1 = torch.zeros(len(query_NHA), 1, dtype=torch.int64)  # dot products do not read it
            weights_NH1S: Tensor = self._source(query_NHA[:, :, None], position_N1, memory).weights()
            return weights_NH1S

        x_ND = self._fall.onto(x_ND, self._activated(self._rise(before_inside(x_ND))))
        return after_inside(x_ND), kept, weights


def _norm(norm: nn.Module) -> Callable[[Tensor], Tensor]:
    if not isinstance(norm, nn.LayerNorm):
        return lambda x_ND: x_ND
    shape, weight, bias, eps = norm.normalized_shape, norm.weight, norm.bias, norm.eps
    return lambda x_ND: torch.layer_norm(x_ND, shape, weight, bias, eps)

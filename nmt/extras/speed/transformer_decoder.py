"""Steps of the Transformer decoder in a search on a CPU with kernels.

A step of few rows consists of about a hundred small operations; calling modules, looking up parameters and joining them
takes longer than the operations. So everything that steps share is looked up and joined once, and the output of a block
is added to the residual stream in place. The keys and values of a step are never copied: a search keeps, for each row,
the row of each earlier step that it comes from.

Shapes as in ``seq2seq``; D width of a state, A of a head's part of it; X numbers that a step projects of a row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import torch
from torch import Tensor

from nmt.attention.multihead import DotProductHeads, HeadsMemory, MultiHead, joined
from nmt.core.record import BatchRecord, shared
from nmt.extras.speed import native
from nmt.extras.speed.int8 import Int8Weight
from nmt.extras.speed.product import PackedWeight
from nmt.models.seq2seq import Decoded, Decoder, DecoderStep, Encoded, NextToken
from nmt.models.transformer.block import EmbeddingLayer, Residual
from nmt.models.transformer.decoder import DecoderLayer, TransformerDecoder, TransformerMemory, TransformerState
from nmt.models.transformer.encoder import EncoderLayer, TransformerEncoder
from nmt.nn.embedding import Embedding
from nmt.nn.positions import NoPosition, RotaryAngles
from nmt.nn.precision import compute_dtype

ACTIVATIONS = ("relu", "silu", "gelu", "swiglu")
"""Activations in the order of `activate` in ``kernels.cpp``."""

Steps: TypeAlias = tuple[Tensor, ...]
"""What each step projects of its rows in a layer, (N, 3 x D)."""


@dataclass(frozen=True)
class BackpointerState(BatchRecord):
    """The steps so far, whose number is the same for all rows."""

    backpointer_NT: Tensor
    """The row of each earlier step that a row comes from."""
    layers: tuple[Steps, ...] = shared()


class FastTransformerDecoder(Decoder[TransformerMemory, "BackpointerState | TransformerState"]):
    """A trained decoder whose steps run by kernels; if gradients are recorded, the steps of the plain decoder run."""

    def __init__(self, decoder: TransformerDecoder) -> None:
        super().__init__()
        self.plain = decoder
        self.readout_size, self.head_names = decoder.readout_size, decoder.head_names
        self.embedding = decoder.embedding
        self._enter = _EmbedStep(decoder.embedding, decoder.entrance)
        layers: list[DecoderLayer] = list(decoder.layers)  # type: ignore[arg-type]
        self._sources = [layer.attention.core for layer in layers]
        self._fields_LP, self._kept = fields(layers)
        itself, source, inside = layers[0].self_attention, layers[0].attention, layers[0].feed_forward
        self._rotary = itself.rotary
        scales: list[float] = [itself.core.scale, source.core.scale]  # type: ignore[list-item]
        self._constants = (*scales, layers[0].attention_residual.norm.eps, ACTIVATIONS.index(inside.activation))

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
        return BackpointerState(none_N0, ((),) * len(self._sources))

    def step(
        self, token_N: Tensor, memory: TransformerMemory, state: BackpointerState | TransformerState
    ) -> DecoderStep[BackpointerState | TransformerState]:
        """See ``Decoder.step``."""
        if isinstance(state, TransformerState):
            return self.plain.step(token_N, memory, state)  # type: ignore[return-value]
        rows, time = state.backpointer_NT.shape
        backpointer_NT = torch.cat([state.backpointer_NT, torch.arange(rows)[:, None]], dim=1)
        x_ND = self._enter(token_N, time)
        sources: tuple[HeadsMemory, ...] = memory.layers  # type: ignore[assignment]
        angles = None
        if self._rotary:
            angles = RotaryAngles.of(token_N.new_full((1, 1), time), torch.empty(sources[0].keys_BHSA.shape[3]))
        kernels = native.kernels(x_ND)
        assert kernels is not None
        present_LNX, queries_LNHA = kernels.decoder_step(
            x_ND, self._fields_LP, sources, state.layers, backpointer_NT, angles, self._constants
        )
        layers = tuple((*past, present_NX) for past, present_NX in zip(state.layers, present_LNX, strict=True))

        def weights() -> Tensor:
            position_N1 = torch.zeros(rows, 1, dtype=torch.int64)  # dot products do not read it
            heads = zip(self._sources, queries_LNHA[:, :, :, None], sources, strict=True)
            weights_NHS = [
                core(query_NH1A, position_N1, source).weights()[:, :, 0] for core, query_NH1A, source in heads
            ]
            return torch.cat(weights_NHS, dim=1)

        readout_ND = self.plain.readout(self.plain.norm(x_ND))
        return DecoderStep(readout_ND, weights, BackpointerState(backpointer_NT, layers))


class _EmbedStep:
    """``EmbeddingLayer`` for one position; the vectors of many positions are formed at once."""

    def __init__(self, embedding: Embedding, entrance: EmbeddingLayer) -> None:
        self._table_VE = embedding.weight_VD.detach()
        self._scale = entrance.scale
        self._widen = entrance.widen
        self._positions = None if isinstance(entrance.positions, NoPosition) else entrance.positions
        self._vectors_TD: Tensor | None = None

    def __call__(self, token_N: Tensor, time: int) -> Tensor:
        x_ND = self._table_VE.index_select(0, token_N)
        x_ND = x_ND.to(compute_dtype(x_ND)).mul_(self._scale)
        if self._widen is not None:
            x_ND = self._widen(x_ND)
        if self._positions is None:
            return x_ND
        vectors_TD = self._vectors_TD  # another thread may put shorter ones in their place
        if vectors_TD is None or time >= len(vectors_TD):
            count = max(2 * time, 64)
            zeros_1TD = x_ND.new_zeros(1, count, x_ND.shape[1])
            self._vectors_TD = vectors_TD = self._positions(zeros_1TD, torch.arange(count, device=x_ND.device)[None])[0]
        return x_ND.add_(vectors_TD[time])


def supports(coder: TransformerDecoder | TransformerEncoder, dtype: torch.dtype) -> bool:
    """Returns True if there are kernels for the type of the weights, and heads are dot products under softmax."""
    kernels, first = native.kernels_for(dtype, coder.embedding.weight_VD.device), coder.layers[0]
    assert isinstance(first, DecoderLayer | EncoderLayer)
    heads = [module for module in coder.modules() if isinstance(module, MultiHead)]
    weight_QQ = heads[0].out_weight_QQ
    # pairs of numbers in bfloat16 are multiplied together
    is_even = not (len(weight_QQ) % 2 or first.feed_forward.fall.in_features % 2)
    if kernels is None or not all(isinstance(each.core, DotProductHeads) for each in heads):
        return False
    return kernels.has_integers if isinstance(weight_QQ, Int8Weight) else is_even or dtype == torch.float32


def fields(layers: Sequence[DecoderLayer | EncoderLayer]) -> tuple[Tensor, list[Tensor | int]]:
    """Returns the fields of the ``TransformerLayer`` of ``kernels.cpp`` for each layer, (L, P), and the tensors among
    them, which must be kept as long as they are used."""
    found = list(map(_fields, layers))
    numbers = [[n.data_ptr() if isinstance(n, Tensor) else n for n in of_layer] for of_layer in found]
    return torch.tensor(numbers), [field for of_layer in found for field in of_layer]


def _fields(layer: DecoderLayer | EncoderLayer) -> list[Tensor | int]:
    nothing: list[Tensor | int] = [0] * 6
    inside = layer.feed_forward
    residuals: tuple[Residual | None, ...]
    if isinstance(layer, EncoderLayer):
        itself, sources = layer.attention, nothing * 2
        residuals = (layer.attention_residual, None, layer.feed_forward_residual)
    else:
        itself, source = layer.self_attention, layer.attention
        residuals = (layer.self_attention_residual, layer.attention_residual, layer.feed_forward_residual)
        sources = [
            *_linear(source.query_weight_QQ, source.query_bias_Q),
            *_linear(source.out_weight_QQ, source.out_bias_Q),
        ]
    norms: list[Tensor | int] = []
    for residual in residuals:
        norms += (0, 0) if residual is None else (residual.norm.weight, residual.norm.bias)
    # of each of the three residual blocks, the normalization of what it reads, and of its sum
    both = [*norms, *nothing] if layer.feed_forward_residual.is_pre_norm else [*nothing, *norms]
    projections = _linear(*joined(itself.self_projections())) + _linear(itself.out_weight_QQ, itself.out_bias_Q)
    inner = _linear(inside.rise.weight, inside.rise.bias) + _linear(inside.fall.weight, inside.fall.bias)
    return [*projections, *sources, *inner, *both]


def _linear(weight_OI: Tensor, bias_O: Tensor | None) -> list[Tensor | int]:
    """Returns the fields of a ``Linear`` of ``kernels.cpp``."""
    assert isinstance(weight_OI, Int8Weight | PackedWeight)
    packed = weight_OI.packed
    return [*packed.pointers, 0 if bias_O is None else bias_O, packed.inputs, packed.outputs]

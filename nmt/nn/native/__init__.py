"""What a search and training do between their matrix products, in C++: for a CPU on which there is a compiler.

PyTorch has an operation for each of the steps here (the largest entry of a row, a division, a rounding), and each is a
pass over memory and a call of several microseconds. Where the kernels are not there its operations compute the same,
but for rounding; so the kernels have no options, only callers.

Shapes as where they are called; N rows, M of a memory, of which N is a multiple, the rows of a sentence side by side.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple, TypeAlias

import torch
from torch import Tensor
from torch.nn import functional as F

from nmt.nn.native.compiled import compiled, multiplies_tiles

_POINTER, _COUNT, _FLAG, _FACTOR = ctypes.c_void_p, ctypes.c_int64, ctypes.c_int, ctypes.c_float
_SIGNATURES = {
    "attend": [_POINTER, *[_COUNT] * 2, *[_POINTER] * 2, *[_COUNT] * 3, *[_POINTER] * 2, *[_COUNT] * 5, _FACTOR],
    "attend_behind": [_POINTER, _COUNT, _POINTER, _COUNT, *[_POINTER] * 2, *[_COUNT] * 4, _FACTOR],
    "attend_all": [*[_POINTER] * 6, *[_COUNT] * 8, _FACTOR, _FLAG],
    "attend_all_back": [*[_POINTER] * 9, *[_COUNT] * 8, _FACTOR, _FLAG],
    "quantize": [*[_POINTER] * 3, *[_COUNT] * 2],
    "product": [*[_POINTER] * 6, _FLAG, *[_COUNT] * 3],
    "best_outputs": [*[_POINTER] * 8, *[_COUNT] * 4],
    "dequantize": [*[_POINTER] * 5, _FLAG, *[_COUNT] * 2],
    "lstm": [*[_POINTER] * 4, *[_COUNT] * 2],
    "lstm_step": [*[_POINTER] * 5, _COUNT, *[_POINTER] * 4, *[_COUNT] * 2],
    "lstm_back": [*[_POINTER] * 6, *[_COUNT] * 2],
    "additive": [*[_POINTER] * 4, *[_COUNT] * 4],
    "additive_to_query": [*[_POINTER] * 5, *[_COUNT] * 4],
    "additive_to_memory": [*[_POINTER] * 6, *[_COUNT] * 4],
    "glance": [*[_POINTER] * 7, *[_COUNT] * 5],
    "glance_narrow": [*[_POINTER] * 7, *[_COUNT] * 5],
    "listed": [*[_POINTER] * 6, *[_COUNT] * 5],
    "listed_bytes": [*[_POINTER] * 8, *[_COUNT] * 5],
    "log_normalizer": [*[_POINTER] * 2, *[_COUNT] * 2],
    "argmax": [*[_POINTER] * 2, *[_COUNT] * 2],
    "largest_together": [*[_POINTER] * 4, *[_COUNT] * 4],
}


FEW_THREADS = 4

TILED_ROWS, TILED_INPUTS = 128, 512
"""So many rows and inputs, or more, are faster by tiles of bytes; measured on a Xeon with AMX."""

BLOCK, QUAD = 64, 4
"""As in ``kernels.cpp``."""


RAISABLE = 34.0
"""Beside a key of this size a query that is too large to be raised by itself, 43, has a tanh of 1 whatever it is."""


def raised(keys: Tensor) -> Tensor:
    """e^2k, as ``Kernels.glance`` reads keys, of which none is larger than ``RAISABLE``."""
    return (2.0 * keys.float()).clamp_(-87.0, 88.0).exp_().to(keys.dtype)


def shift(values_OI: Tensor) -> Tensor:
    """What the sum of each output starts at, because rows are raised by 128 to be without a sign: (O,)."""
    return (-128 * values_OI.sum(dim=1, dtype=torch.int32)).to(torch.int32)


class Packed(NamedTuple):
    """A weight of 8-bit integers as ``Kernels.product`` reads it."""

    values: Tensor
    inputs: int
    shift: Tensor
    """See ``shift``; filled up with zeros."""

    @staticmethod
    def of(values_OI: Tensor) -> Packed:
        """Blocks of outputs, in them quads of inputs, in them the quad of each output, filled up with zeros."""
        outputs, inputs = values_OI.shape
        blocks, quads = -(-outputs // BLOCK), -(-inputs // QUAD)
        filled = F.pad(values_OI, (0, quads * QUAD - inputs, 0, blocks * BLOCK - outputs))
        packed = filled.view(blocks, BLOCK, quads, QUAD).transpose(1, 2).contiguous()
        return Packed(packed, inputs, shift(filled))


class LstmWeights:
    """The weights of the parts of an LSTM's input and of its state, and its bias, as ``Kernels.lstm_step`` reads them:
    ``BLOCK`` outputs of each of its gates side by side, filled up with zeros."""

    def __init__(self, parts: Sequence[tuple[Tensor, Tensor]], bias_G: Tensor) -> None:
        """Of each part the 8-bit values (G, I) and their scales (G,)."""
        assert {each.shape[0] for part in parts for each in part} == {bias_G.shape[0]}
        self.width = bias_G.shape[0] // 4
        self.inputs = [values_GI.shape[1] for values_GI, _ in parts]
        packed = [Packed.of(self._arranged(values_GI)) for values_GI, _ in parts]
        columns = (
            [each.values for each in packed],
            [each.shift for each in packed],
            [self._arranged(scale_G.float()) for _, scale_G in parts],
        )
        bias_X = self._arranged(bias_G.float())
        self._kept = *columns, bias_X  # of which there are but pointers below
        count = len(parts)
        self.pointers = (
            (_COUNT * count)(*self.inputs),
            *((_POINTER * count)(*(each.data_ptr() for each in column)) for column in columns),
            count,
            bias_X.data_ptr(),
        )

    def _arranged(self, of_gates: Tensor) -> Tensor:
        """What has the outputs as dimension 0, in the order of the kernel."""
        gates = of_gates.view(4, self.width, -1)
        filled = F.pad(gates, (0, 0, 0, -self.width % BLOCK))
        return filled.view(4, -1, BLOCK, gates.shape[2]).transpose(0, 1).reshape(-1, *of_gates.shape[1:])


class BestOutputs(NamedTuple):
    """The K largest of each row's outputs; of those that are equal the first come first. What is not there for lack of
    outputs above -inf is -inf, at 0."""

    values_NK: Tensor
    """In float32, largest first."""
    place_NK: Tensor
    log_normalizer_N: Tensor | None
    """log sum exp of all of a row's outputs, in float32; None where it was not asked for."""


_Given: TypeAlias = "tuple[Tensor | None, Tensor | None]"


@dataclass(frozen=True)
class Told:
    """What ``Kernels.attend_all`` is told of heads and of dropout."""

    heads: int
    width: int
    scale: float
    causal: bool
    """A query sees the positions up to its own."""
    threshold: int
    """Random bytes below it drop a weight; what is left is scaled as in ``Dropout``."""

    def counts(self, queries_BTX: Tensor, memory_BSY: Tensor) -> tuple[int | float, ...]:
        """The numbers for the kernels."""
        batch, time, query_row = queries_BTX.shape
        positions, memory_row = memory_BSY.shape[1:]
        together, is_one = self.heads * self.width, memory_BSY is queries_BTX
        assert queries_BTX.dtype == memory_BSY.dtype
        assert queries_BTX.is_contiguous()
        assert memory_BSY.is_contiguous()
        assert len(memory_BSY) == batch
        assert query_row == (3 if is_one else 1) * together
        assert memory_row == (3 if is_one else 2) * together
        assert not self.causal or time == positions
        sizes = (batch, self.heads, time, positions, self.width, query_row, memory_row)
        return *sizes, self.threshold, self.scale, self.causal

    def places(self, queries_BTX: Tensor, memory_BSY: Tensor) -> tuple[int, int, int]:
        """Where queries, keys and values begin."""
        each = self.heads * self.width * queries_BTX.element_size()
        end = memory_BSY.data_ptr() + memory_BSY.shape[2] * memory_BSY.element_size()
        return queries_BTX.data_ptr(), end - 2 * each, end - each

    def pointers(self, queries_BTX: Tensor, memory_BSY: Tensor, given: _Given) -> list[int | None]:
        """To padding and bytes."""
        (batch, time, _), positions = queries_BTX.shape, memory_BSY.shape[1]
        for each, shape in zip(given, ((batch, positions), (positions, batch, self.heads, time)), strict=True):
            assert each is None or (each.shape == shape and each.is_contiguous() and each.element_size() == 1)
        return [None if each is None else each.data_ptr() for each in given]


@dataclass(frozen=True)
class Wanted:
    """Which outputs are wanted of each row: those on its sentence's list."""

    output_BL: Tensor
    length_B: Tensor
    first: int
    """The first row's number among those of all sentences,"""
    beams: int
    """which have so many each."""

    def pointers(self) -> tuple[int, int]:
        """Of the lists and their lengths."""
        assert self.output_BL.dtype == self.length_B.dtype == torch.int64
        assert self.output_BL.is_contiguous()
        assert self.length_B.is_contiguous()
        assert self.length_B.shape == self.output_BL.shape[:1]
        return self.output_BL.data_ptr(), self.length_B.data_ptr()

    def counts(self, x_NI: Tensor) -> tuple[int, int, int, int, int]:
        """First, rows, beams, places of a list and inputs."""
        assert x_NI.is_contiguous()
        assert self.first >= 0
        assert self.first + x_NI.shape[0] <= len(self.length_B) * self.beams
        return self.first, x_NI.shape[0], self.beams, self.output_BL.shape[1], x_NI.shape[1]


class Kernels:
    """Those for one type of numbers; tensors of any other, or that are not in rows, are the caller's mistake."""

    def __init__(self, loaded: ctypes.CDLL, dtype: str) -> None:
        for name, signature in _SIGNATURES.items():
            function = getattr(loaded, f"{name}_{dtype}")
            function.argtypes, function.restype = signature, None
            setattr(self, f"_{name}", function)
        self._has_product = bool(loaded.has_product())

    def has_product(self) -> bool:
        """Whether ``product`` is there and faster than PyTorch's: that shares a product out among threads."""
        return self._has_product and torch.get_num_threads() <= FEW_THREADS

    @staticmethod
    def leaves(x_NI: Tensor) -> bool:
        """Whether PyTorch's product of integers, by a unit for tiles of bytes, is faster than ``product`` and gives the
        same. In float32 it may round otherwise; a CPU with tiles has bfloat16 beside the integers."""
        is_large = x_NI.shape[0] >= TILED_ROWS and x_NI.shape[1] >= TILED_INPUTS
        return is_large and x_NI.dtype == torch.bfloat16 and multiplies_tiles()

    def attend(
        self, query_NHA: Tensor, keys_MHSA: Tensor, values_MHSA: Tensor, is_pad_MS: Tensor | None, scale: float
    ) -> Tensor:
        """softmax(scale q . k) v of one query of each row and head, heads side by side, (N, H x A)."""
        rows, heads, width = query_NHA.shape
        memories, _, positions, _ = keys_MHSA.shape
        assert query_NHA.dtype == keys_MHSA.dtype == values_MHSA.dtype
        assert keys_MHSA.shape == values_MHSA.shape
        assert keys_MHSA.stride() == values_MHSA.stride()
        assert _shares(rows, memories)
        assert query_NHA.stride(2) == keys_MHSA.stride(3) == 1
        assert is_pad_MS is None or (is_pad_MS.shape == (memories, positions) and is_pad_MS.is_contiguous())
        context_NQ = query_NHA.new_empty(rows, heads * width)
        self._attend(  # type: ignore[attr-defined]
            query_NHA.data_ptr(),
            query_NHA.stride(0),
            query_NHA.stride(1),
            keys_MHSA.data_ptr(),
            values_MHSA.data_ptr(),
            *keys_MHSA.stride()[:3],
            None if is_pad_MS is None else is_pad_MS.data_ptr(),
            context_NQ.data_ptr(),
            rows,
            rows // max(memories, 1),
            heads,
            positions,
            width,
            scale,
        )
        return context_NQ

    def attend_behind(self, query_NHA: Tensor, steps: Sequence[Tensor], trail_NT: Tensor, scale: float) -> Tensor:
        """The same over the steps that are behind each row, (N, H x A). ``trail_NT`` says which row of a step it was;
        keys and values of all heads are the end of that. They are not looked at for whether they are of one kind: a
        search has as many calls as layers and steps."""
        rows, heads, width = query_NHA.shape
        assert query_NHA.stride()[1:] == (width, 1)
        assert trail_NT.dtype == torch.int64
        assert trail_NT.is_contiguous()
        assert trail_NT.shape == (rows, len(steps))
        assert steps[-1].dtype == query_NHA.dtype
        assert steps[-1].shape[1] in (2 * heads * width, 3 * heads * width)
        assert steps[-1].is_contiguous()
        context_NQ = query_NHA.new_empty(rows, heads * width)
        pointers = (ctypes.c_void_p * len(steps))(*[step.data_ptr() for step in steps])
        self._attend_behind(  # type: ignore[attr-defined]
            query_NHA.data_ptr(),
            query_NHA.stride(0),
            pointers,
            steps[-1].shape[1],
            trail_NT.data_ptr(),
            context_NQ.data_ptr(),
            rows,
            heads,
            len(steps),
            width,
            scale,
        )
        return context_NQ

    def attend_all(
        self, queries_BTX: Tensor, memory_BSY: Tensor, is_pad_BS: Tensor | None, drawn_SBHT: Tensor | None, told: Told
    ) -> Tensor:
        """What ``told.heads`` heads get, side by side, (B, T, H x A): softmax(scale q . k) v, weights dropped out by
        random bytes ``drawn_SBHT``.

        Queries, or queries, keys and values, are the rows of ``queries_BTX``, which then is ``memory_BSY`` too; else
        that has rows of keys and values.
        """
        counts = told.counts(queries_BTX, memory_BSY)
        context_BTQ = queries_BTX.new_empty(*queries_BTX.shape[:2], told.heads * told.width)
        self._attend_all(  # type: ignore[attr-defined]
            *told.places(queries_BTX, memory_BSY),
            context_BTQ.data_ptr(),
            *told.pointers(queries_BTX, memory_BSY, (is_pad_BS, drawn_SBHT)),
            *counts,
        )
        return context_BTQ

    def attend_all_back(
        self,
        queries_BTX: Tensor,
        memory_BSY: Tensor,
        is_pad_BS: Tensor | None,
        drawn_SBHT: Tensor | None,
        gradient_BTQ: Tensor,
        told: Told,
    ) -> tuple[Tensor, Tensor]:
        """The gradients of queries and memory, from that of what ``attend_all`` gives; one tensor twice where it is
        given one twice."""
        counts = told.counts(queries_BTX, memory_BSY)
        gradient_BTQ = gradient_BTQ.to(queries_BTX.dtype).contiguous()
        assert gradient_BTQ.shape == (*queries_BTX.shape[:2], told.heads * told.width)
        queries_gradient = torch.empty_like(queries_BTX)
        memory_gradient = queries_gradient if memory_BSY is queries_BTX else torch.empty_like(memory_BSY)
        self._attend_all_back(  # type: ignore[attr-defined]
            *told.places(queries_BTX, memory_BSY),
            gradient_BTQ.data_ptr(),
            *told.places(queries_gradient, memory_gradient),
            *told.pointers(queries_BTX, memory_BSY, (is_pad_BS, drawn_SBHT)),
            *counts,
        )
        return queries_gradient, memory_gradient

    def product(
        self, x_NI: Tensor, packed: Packed, scale_O: Tensor, bias_O: Tensor | None, out_NO: Tensor, *, onto: bool
    ) -> Tensor:
        """Rows as 8-bit integers times a weight of them, times both scales and plus the bias, in ``out_NO`` or added to
        it: ``quantized``, a product and ``dequantized`` in one."""
        assert x_NI.dtype == out_NO.dtype
        assert bias_O is None or (bias_O.dtype == x_NI.dtype and bias_O.shape == scale_O.shape)
        assert x_NI.shape[1] == packed.inputs
        assert out_NO.shape == (x_NI.shape[0], scale_O.shape[0])
        assert x_NI.is_contiguous()
        assert out_NO.is_contiguous()
        self._product(  # type: ignore[attr-defined]
            x_NI.data_ptr(),
            packed.values.data_ptr(),
            packed.shift.data_ptr(),
            scale_O.data_ptr(),
            None if bias_O is None else bias_O.data_ptr(),
            out_NO.data_ptr(),
            onto,
            *x_NI.shape,
            scale_O.shape[0],
        )
        return out_NO

    def best_outputs(
        self, x_NI: Tensor, packed: Packed, scale_O: Tensor, bias_O: Tensor, count: int, *, normalized: bool
    ) -> BestOutputs:
        """The ``count`` largest of what ``product`` gives, which is not kept, and ``log_normalizer`` of it."""
        assert self._has_product
        assert 0 < count <= scale_O.shape[0]
        assert bias_O.dtype == x_NI.dtype
        assert bias_O.shape == scale_O.shape
        assert x_NI.shape[1] == packed.inputs
        assert x_NI.is_contiguous()
        rows = x_NI.shape[0]
        values_NK = x_NI.new_empty(rows, count, dtype=torch.float32)
        place_NK = x_NI.new_empty(rows, count, dtype=torch.int64)
        log_normalizer_N = x_NI.new_empty(rows, dtype=torch.float32) if normalized else None
        given = (x_NI, packed.values, packed.shift, scale_O, bias_O, values_NK, place_NK)
        self._best_outputs(  # type: ignore[attr-defined]
            *(each.data_ptr() for each in given),
            None if log_normalizer_N is None else log_normalizer_N.data_ptr(),
            *x_NI.shape,
            scale_O.shape[0],
            count,
        )
        return BestOutputs(values_NK, place_NK, log_normalizer_N)

    def quantized(self, x_NI: Tensor) -> tuple[Tensor, Tensor]:
        """Rows as 8-bit integers, and the scale (N,) of each: see ``quantized``."""
        assert x_NI.is_contiguous()
        rows, inputs = x_NI.shape
        values_NI = x_NI.new_empty(rows, inputs, dtype=torch.int8)
        scale_N = x_NI.new_empty(rows, dtype=torch.float32)
        self._quantize(x_NI.data_ptr(), values_NI.data_ptr(), scale_N.data_ptr(), rows, inputs)  # type: ignore[attr-defined]
        return values_NI, scale_N

    def dequantized(
        self, product_NO: Tensor, scale_N: Tensor, scale_O: Tensor, bias_O: Tensor | None, out_NO: Tensor, *, onto: bool
    ) -> Tensor:
        """The product of such integers times both scales and plus the bias, in ``out_NO`` or added to it; that may be
        the product's own memory."""
        assert product_NO.shape == out_NO.shape == (scale_N.shape[0], scale_O.shape[0])
        assert product_NO.is_contiguous()
        assert out_NO.is_contiguous()
        bias = None if bias_O is None else bias_O.data_ptr()
        self._dequantize(  # type: ignore[attr-defined]
            product_NO.data_ptr(), scale_N.data_ptr(), scale_O.data_ptr(), bias, out_NO.data_ptr(), onto, *out_NO.shape
        )
        return out_NO

    def listed(self, x_NI: Tensor, weight_OI: Tensor, bias_O: Tensor, wanted: Wanted) -> Tensor:
        """Of w x + b the outputs on the list of each row's sentence, (N, L), -inf behind its end."""
        assert weight_OI.dtype == bias_O.dtype == x_NI.dtype
        assert weight_OI.is_contiguous()
        assert weight_OI.shape == (bias_O.shape[0], x_NI.shape[1])
        out_NL = x_NI.new_empty(x_NI.shape[0], wanted.output_BL.shape[1])
        pointers = (weight_OI.data_ptr(), bias_O.data_ptr(), *wanted.pointers(), out_NL.data_ptr())
        self._listed(x_NI.data_ptr(), *pointers, *wanted.counts(x_NI))  # type: ignore[attr-defined]
        return out_NL

    def listed_bytes(
        self, x_NI: Tensor, values_OI: Tensor, shift_O: Tensor, scale_O: Tensor, bias_O: Tensor, wanted: Wanted
    ) -> Tensor:
        """The same of what ``product`` gives; ``values_OI`` are not packed. Where ``has_product``."""
        assert self._has_product
        assert values_OI.dtype == torch.int8
        assert values_OI.is_contiguous()
        assert values_OI.shape == (scale_O.shape[0], x_NI.shape[1])
        assert shift_O.shape == scale_O.shape == bias_O.shape
        assert bias_O.dtype == x_NI.dtype
        out_NL = x_NI.new_empty(x_NI.shape[0], wanted.output_BL.shape[1])
        weight = (each.data_ptr() for each in (values_OI, shift_O, scale_O, bias_O))
        pointers = (*weight, *wanted.pointers(), out_NL.data_ptr())
        self._listed_bytes(x_NI.data_ptr(), *pointers, *wanted.counts(x_NI))  # type: ignore[attr-defined]
        return out_NL

    def lstm(self, gates_NG: Tensor, cell_ND: Tensor) -> tuple[Tensor, Tensor]:
        """The next hidden state and memory from the pre-activations i, f, g, o."""
        assert gates_NG.dtype == cell_ND.dtype
        assert gates_NG.shape == (cell_ND.shape[0], 4 * cell_ND.shape[1])
        gates_NG, cell_ND = gates_NG.contiguous(), cell_ND.contiguous()
        hidden_ND, new_ND = torch.empty_like(cell_ND), torch.empty_like(cell_ND)
        self._lstm(  # type: ignore[attr-defined]
            gates_NG.data_ptr(), cell_ND.data_ptr(), hidden_ND.data_ptr(), new_ND.data_ptr(), *cell_ND.shape
        )
        return hidden_ND, new_ND

    def lstm_step(self, parts: Sequence[Tensor], weights: LstmWeights, cell_ND: Tensor) -> tuple[Tensor, Tensor]:
        """What ``lstm`` gives for the sum of the products of the parts, (N, I) each, and the bias. Where
        ``has_product``."""
        assert self._has_product
        assert cell_ND.is_contiguous()
        assert weights.width == cell_ND.shape[1]
        for part_NI, inputs in zip(parts, weights.inputs, strict=True):
            assert part_NI.dtype == cell_ND.dtype
            assert part_NI.shape == (cell_ND.shape[0], inputs)
            assert part_NI.is_contiguous()
        hidden_ND, new_ND = torch.empty_like(cell_ND), torch.empty_like(cell_ND)
        self._lstm_step(  # type: ignore[attr-defined]
            (_POINTER * len(parts))(*(each.data_ptr() for each in parts)),
            *weights.pointers,
            *(each.data_ptr() for each in (cell_ND, hidden_ND, new_ND)),
            *cell_ND.shape,
        )
        return hidden_ND, new_ND

    def lstm_back(
        self, gates_NG: Tensor, cell_ND: Tensor, hidden_gradient_ND: Tensor, new_gradient_ND: Tensor
    ) -> tuple[Tensor, Tensor]:
        """The gradients of what ``lstm`` is given, from those of what it gives."""
        tensors = [each.contiguous() for each in (gates_NG, cell_ND, hidden_gradient_ND, new_gradient_ND)]
        assert len({each.dtype for each in tensors}) == 1
        assert cell_ND.shape == hidden_gradient_ND.shape == new_gradient_ND.shape
        assert gates_NG.shape == (cell_ND.shape[0], 4 * cell_ND.shape[1])
        gradients = torch.empty_like(tensors[0]), torch.empty_like(tensors[1])
        self._lstm_back(  # type: ignore[attr-defined]
            *(each.data_ptr() for each in (*tensors, *gradients)), *cell_ND.shape
        )
        return gradients

    def additive(self, query_NA: Tensor, keys_MSA: Tensor, v_A: Tensor) -> Tensor:
        """v . tanh(q + k) of each row's query and all keys of its memory, (N, S)."""
        positions, counts = _additive(query_NA, keys_MSA, v_A)
        scores_NS = query_NA.new_empty(query_NA.shape[0], positions)
        self._additive(  # type: ignore[attr-defined]
            query_NA.data_ptr(), keys_MSA.data_ptr(), v_A.data_ptr(), scores_NS.data_ptr(), query_NA.shape[0], *counts
        )
        return scores_NS

    def additive_to_query(self, query_NA: Tensor, keys_MSA: Tensor, v_A: Tensor, gradient_NS: Tensor) -> Tensor:
        """The gradient of ``additive``'s queries, (N, A), from that of its scores."""
        positions, counts = _additive(query_NA, keys_MSA, v_A)
        assert gradient_NS.shape == (query_NA.shape[0], positions)
        given = (query_NA, keys_MSA, v_A, gradient_NS.to(query_NA.dtype).contiguous())
        query_gradient_NA = torch.empty_like(query_NA)
        self._additive_to_query(  # type: ignore[attr-defined]
            *(each.data_ptr() for each in (*given, query_gradient_NA)), query_NA.shape[0], *counts
        )
        return query_gradient_NA

    def additive_to_memory(
        self, query_NA: Tensor, keys_MSA: Tensor, v_A: Tensor, gradient_NS: Tensor
    ) -> tuple[Tensor, Tensor]:
        """The gradients of ``additive``'s keys, (M, S, A), and of its vector, (A,), from that of its scores."""
        positions, counts = _additive(query_NA, keys_MSA, v_A)
        assert gradient_NS.shape == (query_NA.shape[0], positions)
        given = (query_NA, keys_MSA, v_A, gradient_NS.to(query_NA.dtype).contiguous())
        keys_gradient_MSA = torch.empty_like(keys_MSA)
        v_gradient_MA = keys_MSA.new_empty(keys_MSA.shape[0], v_A.shape[0], dtype=torch.float32)
        self._additive_to_memory(  # type: ignore[attr-defined]
            *(each.data_ptr() for each in (*given, keys_gradient_MSA, v_gradient_MA)), keys_MSA.shape[0], *counts
        )
        return keys_gradient_MSA, v_gradient_MA.sum(dim=0).to(v_A.dtype)

    def glance(
        self, query_NA: Tensor, raised_MSA: Tensor, v_A: Tensor, values_MSV: Tensor, is_pad_MS: Tensor
    ) -> tuple[Tensor, Tensor]:
        """softmax(v . tanh(q + k)) over the positions of each row's memory, and the mixture of its values: (N, V) and,
        in float32, (N, S). ``raised_MSA`` are not keys but ``raised(keys)``; they and the values may be in bfloat16
        whatever the queries are."""
        memories, positions, width = raised_MSA.shape
        assert query_NA.dtype == v_A.dtype
        assert query_NA.shape[1] == v_A.shape[0] == width
        assert _shares(query_NA.shape[0], memories)
        assert raised_MSA.dtype == values_MSV.dtype
        assert raised_MSA.dtype in (query_NA.dtype, torch.bfloat16)
        assert values_MSV.shape[:2] == is_pad_MS.shape == (memories, positions)
        assert is_pad_MS.dtype == torch.bool
        context_NV = query_NA.new_empty(query_NA.shape[0], values_MSV.shape[2])
        weights_NS = query_NA.new_empty(query_NA.shape[0], positions, dtype=torch.float32)
        given = (query_NA, raised_MSA, v_A, values_MSV, is_pad_MS, context_NV, weights_NS)
        assert all(each.is_contiguous() for each in given)
        kernel = self._glance if raised_MSA.dtype == query_NA.dtype else self._glance_narrow  # type: ignore[attr-defined]
        beams = query_NA.shape[0] // max(memories, 1)
        kernel(*(each.data_ptr() for each in given), memories, beams, positions, width, values_MSV.shape[2])
        return context_NV, weights_NS

    def log_normalizer(self, logits_NV: Tensor) -> Tensor:
        """log sum_v exp(logits), (N,)."""
        assert logits_NV.is_contiguous()
        result_N = logits_NV.new_empty(logits_NV.shape[0], dtype=torch.float32)
        self._log_normalizer(logits_NV.data_ptr(), result_N.data_ptr(), *logits_NV.shape)  # type: ignore[attr-defined]
        return result_N

    def argmax(self, logits_NV: Tensor) -> Tensor:
        """The first of the largest of each row, (N,)."""
        assert logits_NV.is_contiguous()
        place_N = logits_NV.new_empty(logits_NV.shape[0], dtype=torch.int64)
        self._argmax(logits_NV.data_ptr(), place_N.data_ptr(), *logits_NV.shape)  # type: ignore[attr-defined]
        return place_N

    def largest(self, x_NV: Tensor, count: int, together: int, summand_N: Tensor | None) -> tuple[Tensor, Tensor]:
        """See ``nmt.search.topk.largest``; values in float32."""
        assert x_NV.is_contiguous()
        assert count <= together * x_NV.shape[1]
        groups = x_NV.shape[0] // together
        if summand_N is not None:
            assert summand_N.shape == (x_NV.shape[0],)
            summand_N = summand_N.float().contiguous()
        values_MK = x_NV.new_empty(groups, count, dtype=torch.float32)
        index_MK = x_NV.new_empty(groups, count, dtype=torch.int64)
        self._largest_together(  # type: ignore[attr-defined]
            x_NV.data_ptr(),
            None if summand_N is None else summand_N.data_ptr(),
            values_MK.data_ptr(),
            index_MK.data_ptr(),
            x_NV.shape[0],
            together,
            x_NV.shape[1],
            count,
        )
        return values_MK, index_MK


def _additive(query_NA: Tensor, keys_MSA: Tensor, v_A: Tensor) -> tuple[int, tuple[int, int, int]]:
    """The number of positions; and beams, positions and width."""
    assert query_NA.dtype == keys_MSA.dtype == v_A.dtype
    assert query_NA.is_contiguous()
    assert keys_MSA.is_contiguous()
    assert v_A.is_contiguous()
    memories, positions, width = keys_MSA.shape
    assert query_NA.shape[1] == v_A.shape[0] == width
    assert _shares(query_NA.shape[0], memories)
    return positions, (query_NA.shape[0] // max(memories, 1), positions, width)


def _shares(rows: int, memories: int) -> bool:
    """Whether each memory has as many rows."""
    return rows == 0 or (memories > 0 and rows % memories == 0)


_AVOIDED = ContextVar("_AVOIDED", default=False)


@contextmanager
def avoided() -> Iterator[None]:
    """Inside there are none: for what an export is to follow later, in the shape that it has without them."""
    token = _AVOIDED.set(True)
    try:
        yield
    finally:
        _AVOIDED.reset(token)


def kernels(x: Tensor) -> Kernels | None:
    """Those for numbers of the type of ``x`` where gradients are not recorded, as inside of an autograd function; None
    where there are none: on a GPU, for other types, where an export or a compiler follows what is done, or without a
    compiler of our own."""
    if type(x) is not Tensor or torch.is_grad_enabled() or x.device.type != "cpu" or torch.compiler.is_compiling():
        return None
    if _AVOIDED.get():
        return None
    torch.get_num_threads()  # a thread asks OpenMP for as many as PyTorch may use only when PyTorch has told it
    return _kernels(x.dtype)


def expected(x: Tensor) -> Kernels:
    """The same where it is known that there are some."""
    found = kernels(x)
    assert found is not None
    return found


@cache
def _kernels(dtype: torch.dtype) -> Kernels | None:
    names = {torch.float32: "float32", torch.bfloat16: "bfloat16"}
    loaded = compiled() if dtype in names else None
    return None if loaded is None else Kernels(loaded, names[dtype])

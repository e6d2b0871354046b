"""Kernels in C++ for the operations of a search between its matrix products, on a CPU with a compiler.

PyTorch has an operation for each step of a kernel (the largest entry of a row, a division, a rounding), and each is a
pass over memory and a call of several microseconds. Without kernels these operations compute the same up to rounding.

Shapes as in the callers; N rows, M memories, N a multiple of M, the rows of a memory side by side.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from nmt.extras.accel.native.compiled import compiled, multiplies_tiles
from nmt.ops import TopTokens

_POINTER, _COUNT, _FLAG, _FACTOR = ctypes.c_void_p, ctypes.c_int64, ctypes.c_int, ctypes.c_float
_SIGNATURES = {
    "attend": [_POINTER, *[_COUNT] * 2, *[_POINTER] * 2, *[_COUNT] * 3, *[_POINTER] * 2, *[_COUNT] * 5, _FACTOR],
    "attend_to_steps": [_POINTER, _COUNT, _POINTER, _COUNT, *[_POINTER] * 2, *[_COUNT] * 4, _FACTOR],
    "quantize": [*[_POINTER] * 3, *[_COUNT] * 2],
    "product": [*[_POINTER] * 6, _FLAG, *[_COUNT] * 3],
    "top_outputs": [*[_POINTER] * 8, *[_COUNT] * 4],
    "dequantize": [*[_POINTER] * 5, _FLAG, *[_COUNT] * 2],
    "lstm_step": [*[_POINTER] * 5, _COUNT, *[_POINTER] * 4, *[_COUNT] * 2],
    "additive": [*[_POINTER] * 4, *[_COUNT] * 4],
    "additive_attention": [*[_POINTER] * 7, *[_COUNT] * 5],
    "additive_attention_narrow": [*[_POINTER] * 7, *[_COUNT] * 5],
    "shortlist": [*[_POINTER] * 6, *[_COUNT] * 5],
    "shortlist_int8": [*[_POINTER] * 8, *[_COUNT] * 5],
    "log_normalizer": [*[_POINTER] * 2, *[_COUNT] * 2],
    "argmax": [*[_POINTER] * 2, *[_COUNT] * 2],
    "largest": [*[_POINTER] * 3, *[_COUNT] * 3],
}

FEW_THREADS = 4
"""Maximum number of threads with which ``product`` is faster than PyTorch's product, which uses all of them."""

TILED_ROWS, TILED_INPUTS = 128, 512
"""Least numbers of rows and inputs of a product that is faster by tiles of bytes; measured on a Xeon with AMX."""

BLOCK, QUAD = 64, 4
"""See ``kernels.cpp``."""

MAX_KEY_MAGNITUDE = 34.0
"""Largest key of ``exp_keys``: e^2q is bounded at q = 43, where tanh(q + k) is then still 1."""


def exp_keys(keys: Tensor) -> Tensor:
    """e^2k for ``Kernels.additive_attention``; no key is larger than ``MAX_KEY_MAGNITUDE``."""
    return (2.0 * keys.float()).clamp_(-87.0, 88.0).exp_().to(keys.dtype)


def shift(values_OI: Tensor) -> Tensor:
    """Start of the sum of each output, (O,): inputs are raised by 128 to be unsigned."""
    return (-128 * values_OI.sum(dim=1, dtype=torch.int32)).to(torch.int32)


class Packed(NamedTuple):
    """A weight of 8-bit integers in the layout of ``Kernels.product``."""

    values: Tensor
    inputs: int
    shift: Tensor
    """See ``shift``; padded with zeros."""

    @staticmethod
    def of(values_OI: Tensor) -> Packed:
        """Blocks of outputs, in them quads of inputs, in them the quad of each output, padded with zeros."""
        outputs, inputs = values_OI.shape
        blocks, quads = -(-outputs // BLOCK), -(-inputs // QUAD)
        padded = F.pad(values_OI, (0, quads * QUAD - inputs, 0, blocks * BLOCK - outputs))
        packed = padded.view(blocks, BLOCK, quads, QUAD).transpose(1, 2).contiguous()
        return Packed(packed, inputs, shift(padded))


class LstmWeights:
    """Weights of the parts of an LSTM's input and of its state, and its bias, in the layout of ``Kernels.lstm_step``:
    ``BLOCK`` outputs of each gate side by side, padded with zeros."""

    def __init__(self, parts: Sequence[tuple[Tensor, Tensor]], bias_G: Tensor) -> None:
        """``parts`` are 8-bit values (G, I) and their scales (G,)."""
        assert {tensor.shape[0] for part in parts for tensor in part} == {bias_G.shape[0]}
        self.width = bias_G.shape[0] // 4
        self.inputs = [values_GI.shape[1] for values_GI, _ in parts]
        packed = [Packed.of(self._arranged(values_GI)) for values_GI, _ in parts]
        columns = (
            [weight.values for weight in packed],
            [weight.shift for weight in packed],
            [self._arranged(scale_G.float()) for _, scale_G in parts],
        )
        bias_X = self._arranged(bias_G.float())
        self._kept = *columns, bias_X  # the pointers below do not keep tensors alive
        count = len(parts)
        self.pointers = (
            (_COUNT * count)(*self.inputs),
            *((_POINTER * count)(*(tensor.data_ptr() for tensor in column)) for column in columns),
            count,
            bias_X.data_ptr(),
        )

    def _arranged(self, outputs: Tensor) -> Tensor:
        """A tensor with the outputs as dimension 0, in the order of the kernel."""
        gates = outputs.view(4, self.width, -1)
        padded = F.pad(gates, (0, 0, 0, -self.width % BLOCK))
        return padded.view(4, -1, BLOCK, gates.shape[2]).transpose(0, 1).reshape(-1, *outputs.shape[1:])


@dataclass(frozen=True)
class ShortlistRows:
    """Rows of a batch, with the list of outputs of each sentence."""

    output_BL: Tensor
    length_B: Tensor
    first: int
    """Number of the first row among the rows of all sentences."""
    beams: int
    """Rows of a sentence."""

    def pointers(self) -> tuple[int, int]:
        """Pointers to the lists and their lengths."""
        assert self.output_BL.dtype == self.length_B.dtype == torch.int64
        assert self.output_BL.is_contiguous()
        assert self.length_B.is_contiguous()
        assert self.length_B.shape == self.output_BL.shape[:1]
        return self.output_BL.data_ptr(), self.length_B.data_ptr()

    def counts(self, x_NI: Tensor) -> tuple[int, int, int, int, int]:
        """First row, rows, beams, length of a list and inputs."""
        assert x_NI.is_contiguous()
        assert self.first >= 0
        assert self.first + x_NI.shape[0] <= len(self.length_B) * self.beams
        return self.first, x_NI.shape[0], self.beams, self.output_BL.shape[1], x_NI.shape[1]


class Kernels:
    """The kernels for one type of numbers; tensors of another type or not in rows are errors of the caller."""

    def __init__(self, loaded: ctypes.CDLL, dtype: str) -> None:
        for name, signature in _SIGNATURES.items():
            function = getattr(loaded, f"{name}_{dtype}")
            function.argtypes, function.restype = signature, None
            setattr(self, f"_{name}", function)
        self._has_product = bool(loaded.has_product())

    def has_product(self) -> bool:
        """True if ``product`` exists and is faster than PyTorch's product, which uses all threads."""
        return self._has_product and torch.get_num_threads() <= FEW_THREADS

    @staticmethod
    def prefers_tiles(x_NI: Tensor) -> bool:
        """True if PyTorch's product of integers, by a unit for tiles of bytes, is faster than ``product`` and rounds
        alike, which it does in bfloat16."""
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
        assert _divides(memories, rows)
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

    def attend_to_steps(
        self, query_NHA: Tensor, steps: Sequence[Tensor], backpointer_NT: Tensor, scale: float
    ) -> Tensor:
        """The same over earlier steps, (N, H x A). ``backpointer_NT`` is the row of each step that a row comes from;
        keys and values of all heads are the end of a row. Only the last step is checked: a search has as many calls as
        layers and steps."""
        rows, heads, width = query_NHA.shape
        assert query_NHA.stride()[1:] == (width, 1)
        assert backpointer_NT.dtype == torch.int64
        assert backpointer_NT.is_contiguous()
        assert backpointer_NT.shape == (rows, len(steps))
        assert steps[-1].dtype == query_NHA.dtype
        assert steps[-1].shape[1] in (2 * heads * width, 3 * heads * width)
        assert steps[-1].is_contiguous()
        context_NQ = query_NHA.new_empty(rows, heads * width)
        pointers = (ctypes.c_void_p * len(steps))(*[step.data_ptr() for step in steps])
        self._attend_to_steps(  # type: ignore[attr-defined]
            query_NHA.data_ptr(),
            query_NHA.stride(0),
            pointers,
            steps[-1].shape[1],
            backpointer_NT.data_ptr(),
            context_NQ.data_ptr(),
            rows,
            heads,
            len(steps),
            width,
            scale,
        )
        return context_NQ

    def product(
        self, x_NI: Tensor, packed: Packed, scale_O: Tensor, bias_O: Tensor | None, out_NO: Tensor, *, onto: bool
    ) -> Tensor:
        """``quantized``, a product of integers and ``dequantized`` in one; written to ``out_NO``, or with ``onto``
        added to it."""
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

    def top_outputs(
        self, x_NI: Tensor, packed: Packed, scale_O: Tensor, bias_O: Tensor, count: int, *, normalized: bool
    ) -> TopTokens:
        """The ``count`` largest results of ``product``, and their ``log_normalizer``; the others are not kept."""
        assert self._has_product
        assert 0 < count <= scale_O.shape[0]
        assert bias_O.dtype == x_NI.dtype
        assert bias_O.shape == scale_O.shape
        assert x_NI.shape[1] == packed.inputs
        assert x_NI.is_contiguous()
        rows = x_NI.shape[0]
        values_NK = x_NI.new_empty(rows, count, dtype=torch.float32)
        token_NK = x_NI.new_empty(rows, count, dtype=torch.int64)
        log_normalizer_N = x_NI.new_empty(rows, dtype=torch.float32) if normalized else None
        tensors = (x_NI, packed.values, packed.shift, scale_O, bias_O, values_NK, token_NK)
        self._top_outputs(  # type: ignore[attr-defined]
            *(tensor.data_ptr() for tensor in tensors),
            None if log_normalizer_N is None else log_normalizer_N.data_ptr(),
            *x_NI.shape,
            scale_O.shape[0],
            count,
        )
        return TopTokens(values_NK, token_NK, log_normalizer_N)

    def quantized(self, x_NI: Tensor) -> tuple[Tensor, Tensor]:
        """Rows as 8-bit integers, and the scale of each row, (N,)."""
        assert x_NI.is_contiguous()
        rows, inputs = x_NI.shape
        values_NI = x_NI.new_empty(rows, inputs, dtype=torch.int8)
        scale_N = x_NI.new_empty(rows, dtype=torch.float32)
        self._quantize(x_NI.data_ptr(), values_NI.data_ptr(), scale_N.data_ptr(), rows, inputs)  # type: ignore[attr-defined]
        return values_NI, scale_N

    def dequantized(
        self, product_NO: Tensor, scale_N: Tensor, scale_O: Tensor, bias_O: Tensor | None, out_NO: Tensor, *, onto: bool
    ) -> Tensor:
        """A product of integers times both scales plus the bias, written to ``out_NO``, which may share the memory of
        the product, or with ``onto`` added to it."""
        assert product_NO.shape == out_NO.shape == (scale_N.shape[0], scale_O.shape[0])
        assert product_NO.is_contiguous()
        assert out_NO.is_contiguous()
        bias = None if bias_O is None else bias_O.data_ptr()
        self._dequantize(  # type: ignore[attr-defined]
            product_NO.data_ptr(), scale_N.data_ptr(), scale_O.data_ptr(), bias, out_NO.data_ptr(), onto, *out_NO.shape
        )
        return out_NO

    def shortlist(self, x_NI: Tensor, weight_OI: Tensor, bias_O: Tensor, rows: ShortlistRows) -> Tensor:
        """The outputs of w x + b on the list of each row's sentence, (N, L), -inf behind the end of the list."""
        assert weight_OI.dtype == bias_O.dtype == x_NI.dtype
        assert weight_OI.is_contiguous()
        assert weight_OI.shape == (bias_O.shape[0], x_NI.shape[1])
        out_NL = x_NI.new_empty(x_NI.shape[0], rows.output_BL.shape[1])
        pointers = (weight_OI.data_ptr(), bias_O.data_ptr(), *rows.pointers(), out_NL.data_ptr())
        self._shortlist(x_NI.data_ptr(), *pointers, *rows.counts(x_NI))  # type: ignore[attr-defined]
        return out_NL

    def shortlist_int8(
        self, x_NI: Tensor, values_OI: Tensor, shift_O: Tensor, scale_O: Tensor, bias_O: Tensor, rows: ShortlistRows
    ) -> Tensor:
        """The same outputs of ``product``; ``values_OI`` are not packed. Needs ``has_product``."""
        assert self._has_product
        assert values_OI.dtype == torch.int8
        assert values_OI.is_contiguous()
        assert values_OI.shape == (scale_O.shape[0], x_NI.shape[1])
        assert shift_O.shape == scale_O.shape == bias_O.shape
        assert bias_O.dtype == x_NI.dtype
        out_NL = x_NI.new_empty(x_NI.shape[0], rows.output_BL.shape[1])
        weight = (tensor.data_ptr() for tensor in (values_OI, shift_O, scale_O, bias_O))
        pointers = (*weight, *rows.pointers(), out_NL.data_ptr())
        self._shortlist_int8(x_NI.data_ptr(), *pointers, *rows.counts(x_NI))  # type: ignore[attr-defined]
        return out_NL

    def lstm_step(self, parts: Sequence[Tensor], weights: LstmWeights, cell_ND: Tensor) -> tuple[Tensor, Tensor]:
        """The next hidden state and memory of an LSTM. Its pre-activations i, f, g, o are the sum of the products of
        the parts, each (N, I), and the bias. Needs ``has_product``."""
        assert self._has_product
        assert cell_ND.is_contiguous()
        assert weights.width == cell_ND.shape[1]
        for part_NI, inputs in zip(parts, weights.inputs, strict=True):
            assert part_NI.dtype == cell_ND.dtype
            assert part_NI.shape == (cell_ND.shape[0], inputs)
            assert part_NI.is_contiguous()
        hidden_ND, new_ND = torch.empty_like(cell_ND), torch.empty_like(cell_ND)
        self._lstm_step(  # type: ignore[attr-defined]
            (_POINTER * len(parts))(*(part_NI.data_ptr() for part_NI in parts)),
            *weights.pointers,
            *(tensor.data_ptr() for tensor in (cell_ND, hidden_ND, new_ND)),
            *cell_ND.shape,
        )
        return hidden_ND, new_ND

    def additive(self, query_NA: Tensor, keys_MSA: Tensor, v_A: Tensor) -> Tensor:
        """v . tanh(q + k) of each row's query and all keys of its memory, (N, S)."""
        memories, positions, width = keys_MSA.shape
        rows = query_NA.shape[0]
        assert query_NA.dtype == keys_MSA.dtype == v_A.dtype
        assert query_NA.shape[1] == v_A.shape[0] == width
        assert _divides(memories, rows)
        scores_NS = query_NA.new_empty(rows, positions)
        tensors = (query_NA, keys_MSA, v_A, scores_NS)
        assert all(tensor.is_contiguous() for tensor in tensors)
        pointers = (tensor.data_ptr() for tensor in tensors)
        self._additive(*pointers, rows, rows // max(memories, 1), positions, width)  # type: ignore[attr-defined]
        return scores_NS

    def additive_attention(
        self, query_NA: Tensor, exp_keys_MSA: Tensor, v_A: Tensor, values_MSV: Tensor, is_pad_MS: Tensor
    ) -> tuple[Tensor, Tensor]:
        """The mean of values under softmax(v . tanh(q + k)) over the positions of each row's memory, (N, V), and the
        weights in float32, (N, S). ``exp_keys_MSA`` are ``exp_keys(keys)``; they and the values may be in bfloat16 with
        queries in float32."""
        memories, positions, width = exp_keys_MSA.shape
        assert query_NA.dtype == v_A.dtype
        assert query_NA.shape[1] == v_A.shape[0] == width
        assert _divides(memories, query_NA.shape[0])
        assert exp_keys_MSA.dtype == values_MSV.dtype
        assert exp_keys_MSA.dtype in (query_NA.dtype, torch.bfloat16)
        assert values_MSV.shape[:2] == is_pad_MS.shape == (memories, positions)
        assert is_pad_MS.dtype == torch.bool
        context_NV = query_NA.new_empty(query_NA.shape[0], values_MSV.shape[2])
        weights_NS = query_NA.new_empty(query_NA.shape[0], positions, dtype=torch.float32)
        tensors = (query_NA, exp_keys_MSA, v_A, values_MSV, is_pad_MS, context_NV, weights_NS)
        assert all(tensor.is_contiguous() for tensor in tensors)
        is_narrow = exp_keys_MSA.dtype != query_NA.dtype
        kernel = self._additive_attention_narrow if is_narrow else self._additive_attention  # type: ignore[attr-defined]
        beams = query_NA.shape[0] // max(memories, 1)
        kernel(*(tensor.data_ptr() for tensor in tensors), memories, beams, positions, width, values_MSV.shape[2])
        return context_NV, weights_NS

    def log_normalizer(self, logits_NV: Tensor) -> Tensor:
        """log sum_v exp(logits), (N,)."""
        assert logits_NV.is_contiguous()
        result_N = logits_NV.new_empty(logits_NV.shape[0], dtype=torch.float32)
        self._log_normalizer(logits_NV.data_ptr(), result_N.data_ptr(), *logits_NV.shape)  # type: ignore[attr-defined]
        return result_N

    def argmax(self, logits_NV: Tensor) -> Tensor:
        """Index of the first of the largest entries of each row, (N,)."""
        assert logits_NV.is_contiguous()
        index_N = logits_NV.new_empty(logits_NV.shape[0], dtype=torch.int64)
        self._argmax(logits_NV.data_ptr(), index_N.data_ptr(), *logits_NV.shape)  # type: ignore[attr-defined]
        return index_N

    def largest(self, x_NV: Tensor, count: int) -> tuple[Tensor, Tensor]:
        """The ``count`` largest entries of each row, largest first, in float32, and their indices, both (N, K)."""
        assert x_NV.is_contiguous()
        assert count <= x_NV.shape[1]
        values_NK = x_NV.new_empty(len(x_NV), count, dtype=torch.float32)
        index_NK = x_NV.new_empty(len(x_NV), count, dtype=torch.int64)
        rows, width = x_NV.shape
        self._largest(x_NV.data_ptr(), values_NK.data_ptr(), index_NK.data_ptr(), rows, width, count)  # type: ignore[attr-defined]
        return values_NK, index_NK


def _divides(memories: int, rows: int) -> bool:
    """True if all memories have the same number of rows."""
    return rows == 0 or (memories > 0 and rows % memories == 0)


def kernels(x: Tensor) -> Kernels | None:
    """The kernels for numbers of the type of ``x``. None where gradients are recorded, on a GPU, for other types, under
    an export or ``torch.compile``, and without a C++ compiler."""
    if type(x) is not Tensor or torch.is_grad_enabled() or x.device.type != "cpu" or torch.compiler.is_compiling():
        return None
    torch.get_num_threads()  # sets the number of OpenMP's threads for the calling thread
    return _kernels(x.dtype)


def kernels_for(dtype: torch.dtype, device: torch.device) -> Kernels | None:
    """The kernels that a search on a device will have for numbers of a type."""
    return _kernels(dtype) if device.type == "cpu" else None


def required_kernels(x: Tensor) -> Kernels:
    """The kernels, which must exist."""
    existing = kernels(x)
    assert existing is not None
    return existing


@cache
def _kernels(dtype: torch.dtype) -> Kernels | None:
    names = {torch.float32: "float32", torch.bfloat16: "bfloat16"}
    loaded = compiled() if dtype in names else None
    return None if loaded is None else Kernels(loaded, names[dtype])

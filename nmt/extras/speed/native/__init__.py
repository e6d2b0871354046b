"""Kernels in C++ for the operations of a search between its matrix products, on a CPU with a compiler.

PyTorch has an operation for each step of a kernel (the largest entry of a row, a division, a rounding), and each is a
pass over memory and a call of several microseconds. Without kernels these operations compute the same up to rounding.

Shapes as in the callers; N rows, M memories, N a multiple of M; the rows of a memory are neighbours.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from nmt.core import cpu
from nmt.extras.speed.compiled import compiled

_POINTER, _COUNT, _FLAG, _FACTOR = ctypes.c_void_p, ctypes.c_int64, ctypes.c_bool, ctypes.c_float
_SIGNATURES = {
    "attend": [_POINTER, *[_COUNT] * 2, *[_POINTER] * 2, *[_COUNT] * 3, *[_POINTER] * 2, *[_COUNT] * 5, _FACTOR],
    "attend_to_steps": [_POINTER, _COUNT, _POINTER, _COUNT, *[_POINTER] * 2, *[_COUNT] * 4, _FACTOR],
    "quantize": [*[_POINTER] * 3, *[_COUNT] * 2],
    "product": [*[_POINTER] * 6, _FLAG, *[_COUNT] * 3],
    "dequantize": [*[_POINTER] * 5, _FLAG, *[_COUNT] * 2],
    "additive": [*[_POINTER] * 4, *[_COUNT] * 4],
    "log_normalizer": [*[_POINTER] * 2, *[_COUNT] * 2],
    "largest": [*[_POINTER] * 3, *[_COUNT] * 3],
}

FEW_THREADS = 4
"""Maximum number of threads with which ``product`` is faster than PyTorch's product, which uses all of them."""

TILED_ROWS, TILED_INPUTS = 128, 512
"""Smallest numbers of rows and inputs of a product that is faster by tiles of bytes, measured on a Xeon with AMX."""

BLOCK, QUAD = 64, 4
"""Sizes of the layout of weights; see ``kernels.cpp``."""


class Packed(NamedTuple):
    """A weight of 8-bit integers in the layout of ``Kernels.product``."""

    values: Tensor
    inputs: int
    shift: Tensor
    """Start of the sum of each output, (O,): 128 is added to inputs to make them unsigned. Padded with zeros."""

    @staticmethod
    def of(values_OI: Tensor) -> Packed:
        """Packs a weight into blocks of outputs, which consist of quads of inputs, which have the quad of each output;
        all padded with zeros."""
        outputs, inputs = values_OI.shape
        blocks, quads = -(-outputs // BLOCK), -(-inputs // QUAD)
        padded = F.pad(values_OI, (0, quads * QUAD - inputs, 0, blocks * BLOCK - outputs))
        packed = padded.view(blocks, BLOCK, quads, QUAD).transpose(1, 2).contiguous()
        return Packed(packed, inputs, -128 * padded.sum(dim=1, dtype=torch.int32))


class Kernels:
    """The kernels for one type of numbers; tensors of another type or not in rows are errors of the caller."""

    def __init__(self, loaded: ctypes.CDLL, dtype: str) -> None:
        for name, signature in _SIGNATURES.items():
            setattr(self, f"_{name}", ctypes.CFUNCTYPE(None, *signature).in_dll(loaded, f"{name}_{dtype}"))
        features = cpu.features()
        # PyTorch's product has instructions of AVX-VNNI that ours lacks
        self._has_product = bool(loaded.has_product()) and {"avx_vnni", "avx512_vnni"} & features != {"avx_vnni"}
        self._has_tiles = "amx_int8" in features  # a unit for products of tiles of bytes, which PyTorch uses

    def has_product(self) -> bool:
        """Returns True if ``product`` exists and is faster than PyTorch's product, which uses all threads."""
        return self._has_product and torch.get_num_threads() <= FEW_THREADS

    def prefers_tiles(self, x_NI: Tensor) -> bool:
        """Returns True if PyTorch's product of integers, by a unit for tiles of bytes, is faster than ``product`` and
        rounds in the same way, as it does in bfloat16."""
        is_large = x_NI.shape[0] >= TILED_ROWS and x_NI.shape[1] >= TILED_INPUTS
        return is_large and x_NI.dtype == torch.bfloat16 and self._has_tiles

    def attend(
        self, query_NHA: Tensor, keys_MHSA: Tensor, values_MHSA: Tensor, is_pad_MS: Tensor | None, scale: float
    ) -> Tensor:
        """Computes softmax(scale q . k) v for one query of each row and head, with heads side by side, (N, H x A)."""
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
            query_NHA.data_ptr(), *query_NHA.stride()[:2], keys_MHSA.data_ptr(), values_MHSA.data_ptr(),
            *keys_MHSA.stride()[:3], None if is_pad_MS is None else is_pad_MS.data_ptr(), context_NQ.data_ptr(),
            rows, rows // max(memories, 1), heads, positions, width, scale,
        )  # fmt: skip
        return context_NQ

    def attend_to_steps(
        self, query_NHA: Tensor, steps: Sequence[Tensor], backpointer_NT: Tensor, scale: float
    ) -> Tensor:
        """Computes attention over earlier steps, (N, H x A). ``backpointer_NT`` is the row of each step that a row
        comes from; keys and values of all heads are at the end of a row. Only the last step is checked, because a
        search makes a call for each layer and step."""
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
            query_NHA.data_ptr(), query_NHA.stride(0), pointers, steps[-1].shape[1], backpointer_NT.data_ptr(),
            context_NQ.data_ptr(), rows, heads, len(steps), width, scale,
        )  # fmt: skip
        return context_NQ

    def product(
        self, x_NI: Tensor, packed: Packed, scale_O: Tensor, bias_O: Tensor | None, out_NO: Tensor, *, onto: bool
    ) -> Tensor:
        """Computes ``quantized``, a product of integers and ``dequantized`` in one call; the result is written to
        ``out_NO``, or with ``onto`` added to it."""
        assert x_NI.dtype == out_NO.dtype
        assert bias_O is None or (bias_O.dtype == x_NI.dtype and bias_O.shape == scale_O.shape)
        assert x_NI.shape[1] == packed.inputs
        assert out_NO.shape == (x_NI.shape[0], scale_O.shape[0])
        assert x_NI.is_contiguous()
        assert out_NO.is_contiguous()
        self._product(  # type: ignore[attr-defined]
            x_NI.data_ptr(), packed.values.data_ptr(), packed.shift.data_ptr(), scale_O.data_ptr(),
            None if bias_O is None else bias_O.data_ptr(), out_NO.data_ptr(), onto, *x_NI.shape, scale_O.shape[0],
        )  # fmt: skip
        return out_NO

    def quantized(self, x_NI: Tensor) -> tuple[Tensor, Tensor]:
        """Converts rows to 8-bit integers, and returns them with the scale of each row, (N,)."""
        assert x_NI.is_contiguous()
        rows, inputs = x_NI.shape
        values_NI = x_NI.new_empty(rows, inputs, dtype=torch.int8)
        scale_N = x_NI.new_empty(rows, dtype=torch.float32)
        self._quantize(x_NI.data_ptr(), values_NI.data_ptr(), scale_N.data_ptr(), rows, inputs)  # type: ignore[attr-defined]
        return values_NI, scale_N

    def dequantized(
        self, product_NO: Tensor, scale_N: Tensor, scale_O: Tensor, bias_O: Tensor | None, out_NO: Tensor, *, onto: bool
    ) -> Tensor:
        """Computes a product of integers times both scales plus the bias, which is written to ``out_NO``, or with
        ``onto`` added to it; ``out_NO`` may share the memory of the product."""
        assert product_NO.shape == out_NO.shape == (scale_N.shape[0], scale_O.shape[0])
        assert product_NO.is_contiguous()
        assert out_NO.is_contiguous()
        bias = None if bias_O is None else bias_O.data_ptr()
        self._dequantize(  # type: ignore[attr-defined]
            product_NO.data_ptr(), scale_N.data_ptr(), scale_O.data_ptr(), bias, out_NO.data_ptr(), onto, *out_NO.shape
        )
        return out_NO

    def additive(self, query_NA: Tensor, keys_MSA: Tensor, v_A: Tensor) -> Tensor:
        """Computes v . tanh(q + k) for each row's query and all keys of its memory, (N, S)."""
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

    def log_normalizer(self, logits_NV: Tensor) -> Tensor:
        """Computes log sum_v exp(logits), (N,)."""
        assert logits_NV.is_contiguous()
        result_N = logits_NV.new_empty(logits_NV.shape[0], dtype=torch.float32)
        self._log_normalizer(logits_NV.data_ptr(), result_N.data_ptr(), *logits_NV.shape)  # type: ignore[attr-defined]
        return result_N

    def largest(self, x_NV: Tensor, count: int) -> tuple[Tensor, Tensor]:
        """Finds the ``count`` largest entries of each row, largest first, in float32, and their indices, both (N,
        K)."""
        assert x_NV.is_contiguous()
        assert count <= x_NV.shape[1]
        values_NK = x_NV.new_empty(len(x_NV), count, dtype=torch.float32)
        index_NK = x_NV.new_empty(len(x_NV), count, dtype=torch.int64)
        rows, width = x_NV.shape
        self._largest(x_NV.data_ptr(), values_NK.data_ptr(), index_NK.data_ptr(), rows, width, count)  # type: ignore[attr-defined]
        return values_NK, index_NK


def _divides(memories: int, rows: int) -> bool:
    """Returns True if all memories have the same number of rows."""
    return rows == 0 or (memories > 0 and rows % memories == 0)


def kernels(x: Tensor) -> Kernels | None:
    """Returns the kernels for the dtype of ``x``. It returns None if gradients are recorded, on a GPU, for other
    dtypes, under an export or ``torch.compile``, and without a C++ compiler."""
    if type(x) is not Tensor or torch.is_grad_enabled() or x.device.type != "cpu" or torch.compiler.is_compiling():
        return None
    return _kernels(x.dtype)


def kernels_for(dtype: torch.dtype, device: torch.device) -> Kernels | None:
    """Returns the kernels that a search on a device will have for a dtype."""
    return _kernels(dtype) if device.type == "cpu" else None


@cache
def _kernels(dtype: torch.dtype) -> Kernels | None:
    names = {torch.float32: "float32", torch.bfloat16: "bfloat16"}
    loaded = compiled() if dtype in names else None
    return None if loaded is None else Kernels(loaded, names[dtype])

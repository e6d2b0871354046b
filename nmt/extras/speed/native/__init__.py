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

from nmt.attention.multihead import HeadsMemory
from nmt.core import cpu
from nmt.extras.speed.compiled import compiled
from nmt.nn.positions import RotaryAngles

_POINTER, _COUNT = ctypes.c_void_p, ctypes.c_int64
_TYPES = {"P": _POINTER, "C": _COUNT, "F": ctypes.c_float}
_SIGNATURES = {
    "transformer_layers": "PPCPCPPPPPPCCCCCFFFCC",
    "quantize": "PPPCC",
    "linear": "PPPPPPCCCC",
    "dequantize": "PPPPPCC",
    "additive": "PPPPCCCC",
    "log_normalizer": "PPCC",
    "largest": "PPPCCC",
    "payments": "PPPFPPCCCC",
}
"""The arguments of each kernel: pointers, counts and factors."""

TILED_INTEGERS, TILED_FLOATS = (128, 512), (16, 1)
"""Smallest numbers of rows and inputs of a product that is faster by tiles, measured on a Xeon with AMX for integers.
Those round in the same way in bfloat16."""

BLOCK = 64
"""Outputs of a block of a packed weight; see ``kernels.cpp``."""


class Packed(NamedTuple):
    """A weight in the layout of ``Kernels.product``."""

    values: Tensor
    outputs: int
    inputs: int
    shift: Tensor | None = None
    """Start of the sum of each output, (O,), for integers: 128 is added to inputs to make them unsigned. Padded with
    zeros."""
    scale_O: Tensor | None = None
    """Scales of integers."""

    @staticmethod
    def of_integers(values_OI: Tensor, scale_O: Tensor) -> Packed:
        """Packs a weight of 8-bit integers for the kernels that are there."""
        loaded = compiled()
        assert loaded is not None
        shift_O = F.pad(values_OI, (0, 0, 0, -len(values_OI) % BLOCK)).sum(dim=1, dtype=torch.int32)
        outputs, inputs = values_OI.shape
        return Packed(blocks_of(values_OI, loaded.group_of_integers()), outputs, inputs, -128 * shift_O, scale_O)

    @property
    def pointers(self) -> tuple[int, ...]:
        """Addresses of the three tensors, of which 0 stands for none."""
        tensors = (self.values, self.shift, self.scale_O)
        return tuple(0 if tensor is None else tensor.data_ptr() for tensor in tensors)


def blocks_of(weight_OI: Tensor, group: int) -> Tensor:
    """Packs a weight into blocks of outputs, which consist of groups of inputs, which have the group of each output;
    all padded with zeros."""
    outputs, inputs = weight_OI.shape
    padded = F.pad(weight_OI, (0, -inputs % group, 0, -outputs % BLOCK))
    return padded.view(-1, BLOCK, padded.shape[1] // group, group).transpose(1, 2).contiguous()


class Kernels:
    """The kernels for one type of numbers; tensors of another type or not in rows are errors of the caller."""

    def __init__(self, loaded: ctypes.CDLL, dtype: str) -> None:
        for name, signature in _SIGNATURES.items():
            function = ctypes.CFUNCTYPE(None, *map(_TYPES.__getitem__, signature))
            setattr(self, f"_{name}", function.in_dll(loaded, f"{name}_{dtype}"))
        features = cpu.features()
        # PyTorch's product has instructions of AVX-VNNI that ours lacks
        self.has_integers = bool(loaded.group_of_integers()) and {"avx_vnni", "avx512_vnni"} & features != {"avx_vnni"}
        # without instructions for bfloat16, PyTorch's product is faster
        self.has_floats = bool(loaded.group_of_integers()) and (dtype == "float32" or "avx512_bf16" in features)
        self._has_tiles = dtype == "bfloat16" and "amx_int8" in features

    def prefers_tiles(self, x: Tensor, least: tuple[int, int]) -> bool:
        """Returns True if PyTorch's product, by a unit for tiles of bytes and bfloat16, is faster than ``product``;
        ``least`` are the numbers of rows and inputs from which on it is."""
        rows, inputs = least
        return self._has_tiles and x.shape[-1] >= inputs and x.numel() >= rows * x.shape[-1]

    def decoder_step(
        self, x_ND: Tensor, layers_LP: Tensor, memories: Sequence[HeadsMemory], past: Sequence[Sequence[Tensor]],
        backpointer_NT: Tensor, angles: RotaryAngles | None, constants: Sequence[float],
    ) -> tuple[Tensor, Tensor]:  # fmt: skip
        """Computes all layers of a Transformer's decoder for one position, whose states ``x_ND`` it overwrites. Returns
        what each layer projects of its input for self-attention, (L, N, 3 x D), and its queries to the source, (L, N,
        H, A).

        ``layers_LP`` are the fields of each ``TransformerLayer`` of ``kernels.cpp``. ``past`` are the projections of
        each layer and earlier step, and ``backpointer_NT`` the row of each step that a row comes from, this one
        included. ``constants`` are the scales of attention to the steps and to the source, the epsilon of
        normalization, and the number of the activation.
        """
        (rows, size), (batch, heads, positions, width) = x_ND.shape, memories[0].keys_BHSA.shape
        layers, times, beams = len(memories), backpointer_NT.shape[1], max(rows // max(batch, 1), 1)
        present_LNX, queries_LNHA = x_ND.new_empty(layers, rows, 3 * size), x_ND.new_empty(layers, rows, heads, width)
        # pointers to all steps of the first layer, then of the next
        steps = [step.data_ptr() for pair in zip(past, present_LNX, strict=True) for step in (*pair[0], pair[1])]
        pairs = [(each.keys_BHSA, each.values_BHSA) for each in memories]
        sources = [n for keys, values in pairs for n in (keys.data_ptr(), values.data_ptr(), *keys.stride()[:3])]
        hidden = [each.is_pad_BS for each in memories[:1] if each.is_pad_BS is not None]
        turns = () if angles is None else (angles.cos_B1TI, angles.sin_B1TI)
        assert all(each.is_contiguous() for each in (x_ND, backpointer_NT, *hidden))
        assert all(keys.stride() == values.stride() and keys.dtype == x_ND.dtype for keys, values in pairs)
        assert (rows, rows, layers * times) == (len(backpointer_NT), batch * beams, len(steps))
        pointers = (each[0].data_ptr() if each else None for each in (hidden, turns[:1], turns[1:]))
        tensors = (
            layers_LP.data_ptr(), (_COUNT * len(sources))(*sources), layers, (_POINTER * len(steps))(*steps), times,
            backpointer_NT.data_ptr(), *pointers, x_ND.data_ptr(), queries_LNHA.data_ptr(),
        )  # fmt: skip
        numbers = (rows, beams, heads, positions, size, *constants, torch.get_num_threads())
        self._transformer_layers(*tensors, *numbers)  # type: ignore[attr-defined]
        return present_LNX, queries_LNHA

    def encode(
        self, x_BSD: Tensor, layers_LP: Tensor, is_pad_BS: Tensor, heads: int, constants: Sequence[float]
    ) -> None:
        """Computes all layers of a Transformer's encoder, whose states ``x_BSD`` it overwrites; the rest is as in
        ``decoder_step``."""
        (batch, positions, size), layers = x_BSD.shape, len(layers_LP)
        assert all(each.is_contiguous() and each.shape[:2] == is_pad_BS.shape for each in (x_BSD, is_pad_BS))
        tensors = (layers_LP.data_ptr(), None, layers, None, positions, None, is_pad_BS.data_ptr(), None, None)
        numbers = (batch * positions, positions, heads, positions, size, *constants, torch.get_num_threads())
        self._transformer_layers(*tensors, x_BSD.data_ptr(), None, *numbers)  # type: ignore[attr-defined]

    def product(self, x: Tensor, weight: Packed, bias_O: Tensor | None) -> Tensor:
        """Computes x W' + b for the last dimension of x; with integers ``quantized``, their product and
        ``dequantized``."""
        assert bias_O is None or (bias_O.dtype == x.dtype and bias_O.shape == (weight.outputs,))
        assert x.shape[-1] == weight.inputs
        x, out = x.contiguous(), x.new_empty(*x.shape[:-1], weight.outputs)
        bias, rows = None if bias_O is None else bias_O.data_ptr(), out.numel() // weight.outputs
        sizes = (rows, weight.inputs, weight.outputs, torch.get_num_threads())
        self._linear(x.data_ptr(), *weight.pointers, bias, out.data_ptr(), *sizes)  # type: ignore[attr-defined]
        return out

    def quantized(self, x_NI: Tensor) -> tuple[Tensor, Tensor]:
        """Converts rows to 8-bit integers, and returns them with the scale of each row, (N,)."""
        assert x_NI.is_contiguous()
        rows, inputs = x_NI.shape
        values_NI, scale_N = torch.empty_like(x_NI, dtype=torch.int8), torch.empty(rows)
        self._quantize(x_NI.data_ptr(), values_NI.data_ptr(), scale_N.data_ptr(), rows, inputs)  # type: ignore[attr-defined]
        return values_NI, scale_N

    def dequantized(
        self, product_NO: Tensor, scale_N: Tensor, scale_O: Tensor, bias_O: Tensor | None, dtype: torch.dtype
    ) -> Tensor:
        """Computes a product of integers times both scales plus the bias."""
        assert product_NO.shape == (scale_N.shape[0], scale_O.shape[0])
        assert product_NO.is_contiguous()
        # float32 overwrites the integers, which are in the cache
        out_NO = product_NO.view(dtype) if dtype == torch.float32 else torch.empty_like(product_NO, dtype=dtype)
        bias = None if bias_O is None else bias_O.data_ptr()
        self._dequantize(  # type: ignore[attr-defined]
            product_NO.data_ptr(), scale_N.data_ptr(), scale_O.data_ptr(), bias, out_NO.data_ptr(), *out_NO.shape
        )
        return out_NO

    def additive(self, query_NA: Tensor, keys_MSA: Tensor, v_A: Tensor) -> Tensor:
        """Computes v . tanh(q + k) for each row's query and all keys of its memory, (N, S)."""
        (memories, positions, width), rows = keys_MSA.shape, len(query_NA)
        assert query_NA.dtype == keys_MSA.dtype == v_A.dtype
        assert query_NA.shape[1] == v_A.shape[0] == width
        assert rows == 0 or (memories > 0 and rows % memories == 0)
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
        self._largest(x_NV.data_ptr(), values_NK.data_ptr(), index_NK.data_ptr(), *x_NV.shape, count)  # type: ignore[attr-defined]
        return values_NK, index_NK

    def payments(self, token_NK: Tensor, tokens_NT: Tensor, free_N2: Tensor, margin: float) -> tuple[Tensor, Tensor]:
        """Computes ``nmt.search.repetition.payments``."""
        (rows, count), times = token_NK.shape, tokens_NT.shape[1]
        penalty_NK, free_NK2 = torch.empty(rows, count), free_N2.new_empty(rows, count, 2)
        assert all(each.is_contiguous() for each in (token_NK, free_N2))
        assert times < 2 or tokens_NT.stride(1) == 1
        inputs = (each.data_ptr() for each in (token_NK, tokens_NT, free_N2))
        sizes = (penalty_NK.data_ptr(), free_NK2.data_ptr(), rows, count, times, tokens_NT.stride(0))
        self._payments(*inputs, margin, *sizes)  # type: ignore[attr-defined]
        return penalty_NK, free_NK2


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

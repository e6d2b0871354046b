"""Weights as 8-bit integers, and recurrent steps with them, for translation on a CPU.

    w_oi ~ s_o q_oi      q in -127 ... 127, s_o = max_i |w_oi| / 127: a scale for each output
    x_ni ~ t_n p_ni      the same of each row of the input, formed anew for each product
    (x W')_no ~ t_n s_o (p q')_no

(Jacob et al. 2018, "Quantization and Training of Neural Networks for Efficient Integer-Arithmetic-Only Inference",
without zero points.) Each row has its own scale, so that a sentence does not depend on the others in its batch.

Shapes: N rows, I inputs, O outputs; of recurrent steps as in ``nmt.nn.recurrent``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from nmt.core import cpu
from nmt.extras.speed import native
from nmt.nn.dropout import Dropout
from nmt.nn.precision import compute_dtype
from nmt.nn.recurrent import CellState, RecurrentStack, StackState

LARGEST = 127

IN_FLOAT32 = torch.backends.cpu.get_cpu_capability() == "AVX2" and "avx_vnni" not in cpu.features()
"""True where PyTorch takes up to twenty times as long for products of bytes as of float32, as with AVX2 alone. Then the
integers are multiplied in float32, where the sums of up to 1,040 products are exact."""


class Int8Weight(Tensor):
    """A weight (O, I) that ``F.linear`` multiplies in integers, and that models can concatenate. Its ``dtype`` is the
    dtype of the tensors that it is multiplied with."""

    values_OI: Tensor
    scale_O: Tensor
    concatenated: dict[tuple[Int8Weight, ...], Int8Weight]
    """What was concatenated of this weight and others; tensors are equal as keys if they are the same."""

    @staticmethod
    def __new__(cls, values_OI: Tensor, scale_O: Tensor, dtype: torch.dtype) -> Int8Weight:
        weight: Int8Weight = Tensor._make_wrapper_subclass(cls, values_OI.shape, dtype=dtype, device=values_OI.device)
        weight.values_OI, weight.scale_O, weight.concatenated = values_OI, scale_O, {}
        return weight

    @cached_property
    def packed(self) -> native.Packed:
        """Returns the layout that ``Kernels.product`` reads, which is computed once."""
        return native.Packed.of(self.values_OI)

    @classmethod
    def of(cls, weight_OI: Tensor, dtype: torch.dtype) -> Int8Weight:
        """Rounds a weight; ``dtype`` is the dtype of the tensors that it is multiplied with."""
        wide_OI = weight_OI.detach().float()
        scale_O1 = _scale(wide_OI)
        return cls((wide_OI / scale_O1).round_().to(torch.int8), scale_O1[:, 0], dtype)

    @classmethod
    def __torch_function__(
        cls, function: Callable[..., Any], types: Any, arguments: Sequence[Any] = (), named: Any = None
    ) -> Any:
        if function in _OPERATIONS:
            return _OPERATIONS[function](*arguments, **(named or {}))
        with torch._C.DisableTorchFunctionSubclass():
            return function(*arguments, **(named or {}))

    @classmethod
    def __torch_dispatch__(cls, function: Any, *_: Any) -> Any:
        raise NotImplementedError(f"{function} of a weight of 8-bit integers")


def _linear(x: Tensor, weight_OI: Int8Weight, bias_O: Tensor | None = None) -> Tensor:
    kernels = native.kernels(x)
    x_NI = x.reshape(-1, x.shape[-1])
    if kernels is not None:
        return _by_kernels(kernels, x_NI, weight_OI, bias_O).view(*x.shape[:-1], weight_OI.scale_O.shape[0])
    x_NI = x_NI.float()
    scale_N1 = _scale(x_NI)
    values_NI = (x_NI / scale_N1).round_().to(torch.int8)
    product_NO = _product(values_NI, weight_OI.values_OI).float()
    product_NO.mul_(weight_OI.scale_O).mul_(scale_N1)
    if bias_O is not None:
        product_NO += bias_O
    return product_NO.to(x.dtype).view(*x.shape[:-1], weight_OI.scale_O.shape[0])


def _by_kernels(kernels: native.Kernels, x_NI: Tensor, weight_OI: Int8Weight, bias_O: Tensor | None) -> Tensor:
    x_NI = x_NI.contiguous()
    bias_O = None if bias_O is None else bias_O.to(x_NI.dtype)
    if kernels.has_product() and not kernels.prefers_tiles(x_NI):
        return kernels.product(x_NI, weight_OI.packed, weight_OI.scale_O, bias_O)
    values_NI, scale_N = kernels.quantized(x_NI)
    return kernels.dequantized(_product(values_NI, weight_OI.values_OI), scale_N, weight_OI.scale_O, bias_O, x_NI.dtype)


def _product(values_NI: Tensor, values_OI: Tensor) -> Tensor:
    """Multiplies 8-bit integers, with sums of 32 bits."""
    if IN_FLOAT32:
        return (values_NI.float() @ values_OI.float().T).int()
    return torch._int_mm(values_NI, values_OI.T)


def _scale(x_NI: Tensor) -> Tensor:
    """Computes the divisor of each row, (N, 1); it is a small number for a row of zeros."""
    return (x_NI.abs().amax(dim=1, keepdim=True) / LARGEST).clamp(min=torch.finfo(torch.float32).tiny)


def _concatenated(weights: Sequence[Int8Weight], dim: int = 0) -> Int8Weight:
    assert dim == 0
    first, others = weights[0], tuple(weights[1:])
    if others not in first.concatenated:  # which is packed once
        values_OI = torch.cat([weight.values_OI for weight in weights])
        scale_O = torch.cat([weight.scale_O for weight in weights])
        first.concatenated[others] = Int8Weight(values_OI, scale_O, first.dtype)
    return first.concatenated[others]


_OPERATIONS: dict[Any, Callable[..., Any]] = {
    F.linear: _linear, torch.cat: _concatenated,
    Tensor.to: lambda weight_OI, _: weight_OI,  # products have the dtype of the other factor
}  # fmt: skip


class Int8RecurrentStack(RecurrentStack):
    """A stack for inference. The input of the bottom layer is split into parts with scales of their own, because
    numbers from embeddings are far smaller than numbers from states. The parts of its weight share the scales of the
    outputs."""

    def __init__(self, stack: RecurrentStack, parts: Sequence[int], dtype: torch.dtype) -> None:
        """``parts`` are the widths of the parts; ``dtype`` is the dtype of the other weights of the model."""
        torch.nn.Module.__init__(self)
        vars(self).update(vars(stack))  # the same modules and sizes
        above = [stack.size, stack.shared_size] if stack.shared_size else [stack.size]
        self._parts = [list(parts), *[above] * (stack.layers - 1)]
        weights = [[Int8Weight.of(weight, dtype) for weight in list(rnn.parameters())[:2]] for rnn in stack.rnns]
        self._input_weights = [
            [Int8Weight(part, weight_GE.scale_O, dtype) for part in torch.split(weight_GE.values_OI, widths, dim=1)]
            for (weight_GE, _), widths in zip(weights, self._parts, strict=True)
        ]
        self._state_weights = [weight_GD for _, weight_GD in weights]

    def forward(self, input_BTE: Tensor, state: StackState | None, dropout: Dropout) -> Tensor:
        """See ``RecurrentStack.forward``. In bfloat16 torch's kernels are faster."""
        if compute_dtype(input_BTE) != torch.float32:
            return super().forward(input_BTE, state, dropout)
        if state is None:
            state = self.start([input_BTE.new_zeros(input_BTE.shape[0], self.size)] * self.layers)
        outputs = []
        for input_BE in input_BTE.unbind(dim=1):
            state = self.step(input_BE, state)
            outputs.append(state.top_BD)
        return torch.stack(outputs, dim=1)

    def layer_step(self, layer: int, input_BE: Tensor, state: CellState) -> CellState:
        """See ``RecurrentStack.layer_step``."""
        inputs = torch.split(input_BE, self._parts[layer], dim=1)
        *_, input_bias_G, recurrent_bias_G = self.rnns[layer].parameters()
        input_BG: Tensor = input_bias_G
        for part, weight_GE in zip(inputs, self._input_weights[layer], strict=True):
            input_BG = input_BG + F.linear(part, weight_GE)
        recurrent_BG = F.linear(state.hidden_BD, self._state_weights[layer], recurrent_bias_G)
        return self.cell_step(layer, input_BG, recurrent_BG, state)

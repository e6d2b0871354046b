"""Weights as 8-bit integers, for translation on a CPU.

    w_oi ~ s_o q_oi      q in -127 ... 127, s_o = max_i |w_oi| / 127: a scale for each output
    x_ni ~ t_n p_ni      the same of each row of the input, formed anew for each product
    (x W')_no ~ t_n s_o (p q')_no

(Jacob et al. 2018, "Quantization and Training of Neural Networks for Efficient Integer-Arithmetic-Only Inference",
without zero points.) Each row has its own scale, so that a sentence does not depend on the others in its batch.

Shapes: N rows, I inputs, O outputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import torch
from torch import Tensor

from nmt.core import cpu
from nmt.extras.speed import native
from nmt.extras.speed.product import FastWeight

LARGEST = 127

IN_FLOAT32 = torch.backends.cpu.get_cpu_capability() == "AVX2" and "avx_vnni" not in cpu.features()
"""True where PyTorch takes up to twenty times as long for products of bytes as of float32, as with AVX2 alone. Then the
integers are multiplied in float32, where the sums of up to 1,040 products are exact."""


class Int8Weight(FastWeight):
    """A weight (O, I) that is multiplied in integers."""

    values_OI: Tensor
    scale_O: Tensor

    @staticmethod
    def __new__(cls, values_OI: Tensor, scale_O: Tensor, dtype: torch.dtype) -> Int8Weight:
        weight = cls.like(values_OI, dtype)
        weight.values_OI, weight.scale_O = values_OI, scale_O
        return weight

    @classmethod
    def of(cls, weight_OI: Tensor, dtype: torch.dtype) -> Int8Weight:
        """Rounds a weight; ``dtype`` is the dtype of the tensors that it is multiplied with."""
        wide_OI = weight_OI.detach().float()
        scale_O1 = _scale(wide_OI)
        return cls((wide_OI / scale_O1).round_().to(torch.int8), scale_O1[:, 0], dtype)

    @cached_property
    def packed(self) -> native.Packed:
        """Returns the layout that ``Kernels.product`` reads."""
        return native.Packed.of_integers(self.values_OI, self.scale_O)

    def linear(self, x: Tensor, bias_O: Tensor | None = None) -> Tensor:
        """See ``FastWeight.linear``."""
        x_NI, kernels = x.reshape(-1, x.shape[-1]), native.kernels(x)
        if kernels is not None:
            bias_O = None if bias_O is None else bias_O.to(x.dtype)
            if kernels.has_integers and not kernels.prefers_tiles(x_NI, native.TILED_INTEGERS):
                return kernels.product(x, self.packed, bias_O)
            values_NI, scale_N = kernels.quantized(x_NI.contiguous())
            product_NO = _product(values_NI, self.values_OI)
            product_NO = kernels.dequantized(product_NO, scale_N, self.scale_O, bias_O, x.dtype)
            return product_NO.view(*x.shape[:-1], self.shape[0])
        x_NI = x_NI.float()
        scale_N1 = _scale(x_NI)
        values_NI = (x_NI / scale_N1).round_().to(torch.int8)
        product_NO = _product(values_NI, self.values_OI).float()
        product_NO.mul_(self.scale_O).mul_(scale_N1)
        if bias_O is not None:
            product_NO += bias_O
        return product_NO.to(x.dtype).view(*x.shape[:-1], self.scale_O.shape[0])

    def join(self, others: Sequence[Int8Weight]) -> Int8Weight:
        """Returns the outputs of several weights as one weight."""
        weights = [self, *others]
        values_OI = torch.cat([weight.values_OI for weight in weights])
        return Int8Weight(values_OI, torch.cat([weight.scale_O for weight in weights]), self.dtype)

    def in_parts(self, widths: Sequence[int]) -> list[Int8Weight]:
        """See ``FastWeight.in_parts``. Numbers from embeddings are far smaller than numbers from states, so that each
        part of an input has a scale of its own; the parts of the weight share the scales of the outputs."""
        parts_OI = torch.split(self.values_OI, list(widths), dim=1)
        return [Int8Weight(part_OI, self.scale_O, self.dtype) for part_OI in parts_OI]


def _product(values_NI: Tensor, values_OI: Tensor) -> Tensor:
    """Multiplies 8-bit integers, with sums of 32 bits."""
    # with one input, PyTorch 2.13's product of integers is wrong
    if IN_FLOAT32 or values_NI.shape[1] == 1:
        return (values_NI.float() @ values_OI.float().T).int()
    return torch._int_mm(values_NI, values_OI.T)


def _scale(x_NI: Tensor) -> Tensor:
    """Computes the divisor of each row, (N, 1); it is a small number for a row of zeros."""
    return (x_NI.abs().amax(dim=1, keepdim=True) / LARGEST).clamp(min=torch.finfo(torch.float32).tiny)

"""Weights of a trained model, laid out for its products."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, Self

import torch
from torch import Tensor
from torch.nn import functional as F

from nmt.extras.speed import native


class FastWeight(Tensor):
    """A weight (O, I) that ``F.linear`` multiplies in its own way, by ``linear``, and that models can join with others,
    by ``join``. Its ``dtype`` is the dtype of the tensors that it is multiplied with."""

    joined: dict[tuple[Self, ...], Self]
    """What was joined of this weight and others; tensors are equal as keys if they are the same."""

    @classmethod
    def like(cls, values_OI: Tensor, dtype: torch.dtype) -> Self:
        """Creates a weight with the shape and the device of ``values_OI``, and nothing else."""
        weight: Self = Tensor._make_wrapper_subclass(cls, values_OI.shape, dtype=dtype, device=values_OI.device)
        weight.joined = {}
        return weight

    def linear(self, x: Tensor, bias_O: Tensor | None = None) -> Tensor:
        """Computes x W' + b for the last dimension of x."""
        raise NotImplementedError

    def in_parts(self, widths: Sequence[int]) -> list[Self]:
        """Returns a weight for each part of the inputs that is better multiplied apart."""
        return [self]

    @classmethod
    def __torch_function__(cls, function: Any, types: Any, arguments: Sequence[Any] = (), named: Any = None) -> Any:
        if function is F.linear:
            return arguments[1].linear(arguments[0], *arguments[2:], **(named or {}))
        if function is torch.cat:
            first, *others = arguments[0]
            if (key := tuple(others)) not in first.joined:  # which is laid out once
                first.joined[key] = first.join(others)
            return first.joined[key]
        if function is Tensor.to:
            return arguments[0]
        with torch._C.DisableTorchFunctionSubclass():
            return function(*arguments, **(named or {}))

    @classmethod
    def __torch_dispatch__(cls, function: Any, *_: Any) -> Any:
        raise NotImplementedError(f"{function} of a weight that is laid out for products")


class PackedWeight(FastWeight):
    """A weight in float32 or bfloat16, which a kernel multiplies if no gradient is recorded."""

    plain_OI: Tensor

    @staticmethod
    def __new__(cls, plain_OI: Tensor) -> PackedWeight:
        weight = cls.like(plain_OI, plain_OI.dtype)
        weight.plain_OI = plain_OI.detach()
        return weight

    @cached_property
    def packed(self) -> native.Packed:
        """Returns the layout that ``Kernels.product`` reads."""
        outputs, inputs = self.plain_OI.shape
        return native.Packed(native.blocks_of(self.plain_OI, 4 // self.itemsize), outputs, inputs)

    def kernels(self, x: Tensor) -> native.Kernels | None:
        """Returns the kernels, if they are faster than PyTorch's product with ``x``."""
        kernels = native.kernels(x) if x.dtype == self.dtype else None
        if kernels is None or not kernels.has_floats or kernels.prefers_tiles(x, native.TILED_FLOATS):
            return None
        # numbers in bfloat16 are multiplied in pairs
        return kernels if self.shape[1] % (4 // self.itemsize) == 0 else None

    def linear(self, x: Tensor, bias_O: Tensor | None = None) -> Tensor:
        """See ``FastWeight.linear``."""
        kernels = self.kernels(x)
        return F.linear(x, self.plain_OI, bias_O) if kernels is None else kernels.product(x, self.packed, bias_O)

    def join(self, others: Sequence[PackedWeight]) -> PackedWeight:
        """Returns the outputs of several weights as one weight."""
        with torch.inference_mode(False):  # gradients may be recorded later
            return PackedWeight(torch.cat([self.plain_OI, *(other.plain_OI for other in others)]))

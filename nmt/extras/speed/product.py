"""Linear maps of a trained model."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from nmt.extras.speed.int8 import Int8Weight, add_product
from nmt.nn.output import OutputLayer

PACKED = 1 << 18
"""Smallest number of elements of a weight in float32 for which a copy in oneDNN's layout is worth it. With fewer
elements, the call takes longer than the rearrangement of the weight in every call of PyTorch's product."""


class Product:
    """Computes ``x_NI @ weight_OI.T + bias_O`` without the calls of a module, for inference only."""

    def __init__(self, weight_OI: Tensor, bias_O: Tensor | None = None) -> None:
        self._weight_OI = weight_OI
        self._weight_IO = None if isinstance(weight_OI, Int8Weight) else weight_OI.detach().T
        self.packed = _packed(weight_OI)
        """The weight in oneDNN's layout; None if that is not faster."""
        self._bias_O = None if bias_O is None else bias_O.detach()

    @classmethod
    def of(cls, linear: nn.Linear | OutputLayer) -> Product:
        """Creates the product of a module with its current weights."""
        if isinstance(linear, OutputLayer):
            return cls(linear.weight_VD, linear.bias_V)
        return linear.product if isinstance(linear, PackedLinear) else cls(linear.weight, linear.bias)

    def __call__(self, x_NI: Tensor) -> Tensor:
        """Computes the product, (N, O)."""
        if self.packed is not None:
            product_NO: Tensor = torch.ops.mkldnn._linear_pointwise(x_NI, self.packed, self._bias_O, "none", [], "")
            return product_NO
        if self._weight_IO is None:
            return F.linear(x_NI, self._weight_OI, self._bias_O)
        if self._bias_O is None:
            return torch.mm(x_NI, self._weight_IO)
        return torch.addmm(self._bias_O, x_NI, self._weight_IO)

    def onto(self, sum_NO: Tensor, x_NI: Tensor) -> Tensor:
        """Adds the product to ``sum_NO`` in place, and returns it."""
        if isinstance(self._weight_OI, Int8Weight):
            return add_product(sum_NO, x_NI, self._weight_OI, self._bias_O)
        assert self._weight_IO is not None
        # autocast does not cast for operations in place
        if self.packed is not None or not sum_NO.dtype == x_NI.dtype == self._weight_IO.dtype:
            return sum_NO.add_(self(x_NI))
        sum_NO.addmm_(x_NI, self._weight_IO)
        return sum_NO if self._bias_O is None else sum_NO.add_(self._bias_O)


def _packed(weight_OI: Tensor) -> Tensor | None:
    is_int8 = isinstance(weight_OI, Int8Weight)
    if is_int8 or weight_OI.dtype != torch.float32 or weight_OI.device.type != "cpu" or weight_OI.numel() < PACKED:
        return None
    return torch.ops.mkldnn._reorder_linear_weight(weight_OI.detach()) if torch._C._has_mkldnn else None


class PackedLinear(nn.Linear):
    """A layer that multiplies by a ``Product`` if no gradient is recorded."""

    product: Product

    def forward(self, x: Tensor) -> Tensor:
        """See ``nn.Linear``."""
        return super().forward(x) if torch.is_grad_enabled() else self.product(x)


class PackedOutput(OutputLayer):
    """An output layer that multiplies by a ``Product`` if no gradient is recorded."""

    product: Product

    def forward(self, readout_ND: Tensor) -> Tensor:
        """See ``OutputLayer``."""
        return super().forward(readout_ND) if torch.is_grad_enabled() else self.product(readout_ND)


def pack(model: nn.Module) -> None:
    """Changes the large layers of a frozen model to those above; their weights are not moved."""
    kinds: dict[type[nn.Module], type[nn.Module]] = {nn.Linear: PackedLinear, OutputLayer: PackedOutput}
    for module in model.modules():
        if isinstance(module, nn.Linear | OutputLayer) and type(module) in kinds:
            product = Product.of(module)
            if product.packed is not None:
                module.__class__, module.product = kinds[type(module)], product  # type: ignore[assignment]

"""Linear maps of a trained model."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from nmt.extras.accel.int8 import Int8Weight, add_product


class Product:
    """``x_NI @ weight_OI.T + bias_O``, without the calls of a module around it; for inference only."""

    def __init__(self, weight_OI: Tensor, bias_O: Tensor | None = None) -> None:
        self._weight_OI = weight_OI
        self._weight_IO = None if isinstance(weight_OI, Int8Weight) else weight_OI.detach().T
        self._bias_O = None if bias_O is None else bias_O.detach()

    @classmethod
    def of(cls, linear: nn.Linear) -> Product:
        """The product of a module with its present weights."""
        return cls(linear.weight, linear.bias)

    def __call__(self, x_NI: Tensor) -> Tensor:
        """The product, (N, O)."""
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
        if not sum_NO.dtype == x_NI.dtype == self._weight_IO.dtype:  # autocast does not cast for operations in place
            return sum_NO.add_(self(x_NI))
        sum_NO.addmm_(x_NI, self._weight_IO)
        return sum_NO if self._bias_O is None else sum_NO.add_(self._bias_O)

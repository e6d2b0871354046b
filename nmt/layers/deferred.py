"""Products inside a loop over time in which the gradient of what all steps share is one product after the loop."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from nmt.layers.precision import compute_dtype
from nmt.layers.quantized import Int8Weight, add_product


class DeferredLinear:
    """``x_BI @ weight_OI.T`` for each step of a loop, with d loss / d weight computed once for all steps.

    Backpropagation through T steps of ``F.linear`` forms T weight gradients of the weight's full size and adds them up,
    in the compute precision. Here each step's backward pass only notes its input and output gradient; when all steps
    have reported, one product over all B x T rows gives the weight gradient, faster and rounded once. Make one object
    for each loop; the weight is cast to the precision that autocast asks for when the object is made.

    Second derivatives are not supported. To take gradients of inputs alone (``torch.autograd.grad``), freeze the
    weight first: the notes are kept until the weight's own gradient is computed.
    """

    def __init__(self, weight_OI: Tensor) -> None:
        weight_OI = weight_OI.to(compute_dtype(weight_OI))
        self._notes = _Notes(weight_OI.detach())
        recording = torch.is_grad_enabled() and weight_OI.requires_grad
        self._handle: Tensor | None = _Collect.apply(weight_OI, self._notes) if recording else None  # type: ignore[no-untyped-call]
        self._weight = weight_OI

    def __call__(self, x_BI: Tensor, bias_O: Tensor | None = None) -> Tensor:
        """The product plus the bias, (B, O), in the weight's precision; further dimensions between B and the last are
        kept."""
        x_BI = x_BI.to(self._weight.dtype)
        if bias_O is not None:
            bias_O = bias_O.to(x_BI.dtype)
        if self._handle is None:
            return F.linear(x_BI, self._weight, bias_O)
        product: Tensor = _Apply.apply(x_BI, self._handle, self._notes)  # type: ignore[no-untyped-call]
        return product if bias_O is None else product + bias_O

    def onto(self, sum_BO: Tensor, x_BI: Tensor, bias_O: Tensor | None = None) -> Tensor:
        """``sum_BO`` plus product and bias; where nothing is recorded they are added to ``sum_BO`` itself, the product
        while it is made."""
        if torch.is_grad_enabled():
            return sum_BO + self(x_BI, bias_O)
        x_BI = x_BI.to(self._weight.dtype)
        if bias_O is not None:
            bias_O = bias_O.to(sum_BO.dtype)
        if isinstance(self._weight, Int8Weight):
            return add_product(sum_BO, x_BI, self._weight, bias_O)
        if bias_O is not None:
            sum_BO.add_(bias_O)
        return sum_BO.addmm_(x_BI, self._weight.T)


class DeferredMixture:
    """``weights_BTS @ values_BSV`` for each part of a loop over T, with d loss / d values computed once for all.

    As ``DeferredLinear``, with the values of each sentence in the place of the weight: each step's own gradient of them
    would be as large as they are, and have to be added to another as large.
    """

    def __init__(self, values_BSV: Tensor) -> None:
        values_BSV = values_BSV.to(compute_dtype(values_BSV))
        self._notes = _Notes(values_BSV.detach())
        recording = torch.is_grad_enabled() and values_BSV.requires_grad
        self._handle: Tensor | None = _CollectMixture.apply(values_BSV, self._notes) if recording else None  # type: ignore[no-untyped-call]
        self._values = values_BSV

    def __call__(self, weights_BTS: Tensor) -> Tensor:
        """(B, T, V), in the values' precision."""
        weights_BTS = weights_BTS.to(self._values.dtype)
        if self._handle is None:
            return weights_BTS @ self._values
        mixed_BTV: Tensor = _Mix.apply(weights_BTS, self._handle, self._notes)  # type: ignore[no-untyped-call]
        return mixed_BTV


class _Notes:
    """What steps leave for the gradient of what they share."""

    def __init__(self, shared: Tensor) -> None:
        self.shared = shared
        self.inputs: list[Tensor] = []
        self.gradients: list[Tensor] = []

    def taken(self, dim: int) -> tuple[Tensor, Tensor]:
        """All inputs and all gradients, joined; then there are none."""
        joined = torch.cat(self.inputs, dim), torch.cat(self.gradients, dim)
        self.inputs.clear()
        self.gradients.clear()
        return joined


class _Collect(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, weight_OI: Tensor, notes: _Notes) -> Tensor:
        ctx.notes = notes
        return weight_OI.new_zeros(())

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, _: Tensor) -> tuple[Tensor | None, None]:
        x_NI, gradient_NO = ctx.notes.taken(0)
        return gradient_NO.T @ x_NI, None


class _Apply(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x_BI: Tensor, handle: Tensor, notes: _Notes) -> Tensor:
        ctx.notes = notes
        ctx.save_for_backward(x_BI, handle)
        return F.linear(x_BI, notes.shared)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient_BO: Tensor) -> tuple[Tensor | None, Tensor, None]:
        x_BI, handle = ctx.saved_tensors
        notes = ctx.notes
        notes.inputs.append(x_BI.flatten(0, -2))
        notes.gradients.append(gradient_BO.flatten(0, -2))
        input_gradient = gradient_BO @ notes.shared if ctx.needs_input_grad[0] else None
        return input_gradient, torch.zeros_like(handle), None


class _CollectMixture(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, values_BSV: Tensor, notes: _Notes) -> Tensor:
        ctx.notes = notes
        return values_BSV.new_zeros(())

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, _: Tensor) -> tuple[Tensor, None]:
        weights_BTS, gradient_BTV = ctx.notes.taken(1)
        return weights_BTS.mT @ gradient_BTV, None


class _Mix(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, weights_BTS: Tensor, handle: Tensor, notes: _Notes) -> Tensor:
        ctx.notes = notes
        ctx.save_for_backward(weights_BTS, handle)
        return weights_BTS @ notes.shared

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient_BTV: Tensor) -> tuple[Tensor | None, Tensor, None]:
        weights_BTS, handle = ctx.saved_tensors
        notes = ctx.notes
        notes.inputs.append(weights_BTS)
        notes.gradients.append(gradient_BTV)
        weights_gradient = gradient_BTV @ notes.shared.mT if ctx.needs_input_grad[0] else None
        return weights_gradient, torch.zeros_like(handle), None

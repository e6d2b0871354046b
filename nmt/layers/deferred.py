"""A linear map inside a loop over time whose weight gradient is one matrix product after the loop."""

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


class _Notes:
    def __init__(self, weight_OI: Tensor) -> None:
        self.weight_OI = weight_OI
        self.inputs: list[Tensor] = []
        self.gradients: list[Tensor] = []


class _Collect(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, weight_OI: Tensor, notes: _Notes) -> Tensor:
        ctx.notes = notes
        return weight_OI.new_zeros(())

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, _: Tensor) -> tuple[Tensor | None, None]:
        notes = ctx.notes
        weight_gradient = torch.cat(notes.gradients).T @ torch.cat(notes.inputs)
        notes.inputs.clear()
        notes.gradients.clear()
        return weight_gradient, None


class _Apply(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x_BI: Tensor, handle: Tensor, notes: _Notes) -> Tensor:
        ctx.notes = notes
        ctx.save_for_backward(x_BI, handle)
        return F.linear(x_BI, notes.weight_OI)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient_BO: Tensor) -> tuple[Tensor | None, Tensor, None]:
        x_BI, handle = ctx.saved_tensors
        notes = ctx.notes
        notes.inputs.append(x_BI.flatten(0, -2))
        notes.gradients.append(gradient_BO.flatten(0, -2))
        input_gradient = gradient_BO @ notes.weight_OI if ctx.needs_input_grad[0] else None
        return input_gradient, torch.zeros_like(handle), None

"""Products inside a loop over time in which the gradient of what all steps share is one product after the loop."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from nmt.nn.precision import compute_dtype
from nmt.nn.quantized import Int8Weight, add_product


class DeferredSteps(ABC):
    """A function of an input and of what all steps of a loop share, whose gradient by the latter is formed once after
    the loop: each step's backward pass notes its input and the gradient of its outcome. See ``recorded``."""

    def __init__(self) -> None:
        self.inputs: list[Tensor] = []
        self.gradients: list[Tensor] = []

    @abstractmethod
    def forth(self, x: Tensor) -> Tensor:
        """The function itself."""

    @abstractmethod
    def to_input(self, x: Tensor, gradient: Tensor) -> Tensor:
        """A step's gradient by its input."""

    @abstractmethod
    def to_shared(self, inputs: list[Tensor], gradients: list[Tensor]) -> tuple[Tensor, ...]:
        """All steps' gradient by what they share."""


def recorded(steps: DeferredSteps, *shared: Tensor) -> Callable[[Tensor], Tensor]:
    """``steps.forth`` with gradients by its input and by ``shared``."""
    # not in ``steps``, which the graph refers to: what refers to its graph is never freed
    handle = _Collect.apply(steps, *shared)  # type: ignore[no-untyped-call]
    return lambda x: _Step.apply(x, handle, steps)  # type: ignore[no-untyped-call]


class _Collect(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, steps: DeferredSteps, *shared: Tensor) -> Tensor:
        ctx.steps = steps
        return shared[0].new_zeros(())

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, _: Tensor) -> tuple[Tensor | None, ...]:
        found = ctx.steps.to_shared(ctx.steps.inputs, ctx.steps.gradients)
        ctx.steps.inputs.clear()
        ctx.steps.gradients.clear()
        return None, *found


class _Step(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, handle: Tensor, steps: DeferredSteps) -> Tensor:
        ctx.steps = steps
        ctx.save_for_backward(x, handle)
        return steps.forth(x)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, Tensor, None]:
        x, handle = ctx.saved_tensors
        # detached: notes that held the graph would hold it for good where a pass ends before they are taken
        ctx.steps.inputs.append(x.detach())
        ctx.steps.gradients.append(gradient)
        return ctx.steps.to_input(x, gradient) if ctx.needs_input_grad[0] else None, torch.zeros_like(handle), None


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
        is_recorded = torch.is_grad_enabled() and weight_OI.requires_grad
        self._recorded = recorded(_LinearSteps(weight_OI.detach()), weight_OI) if is_recorded else None
        self._weight = weight_OI

    def __call__(self, x_BI: Tensor, bias_O: Tensor | None = None) -> Tensor:
        """The product plus the bias, (B, O), in the weight's precision; further dimensions between B and the last are
        kept."""
        x_BI = x_BI.to(self._weight.dtype)
        if bias_O is not None:
            bias_O = bias_O.to(x_BI.dtype)
        if self._recorded is None:
            return F.linear(x_BI, self._weight, bias_O)
        product = self._recorded(x_BI)
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
    would be as large as they are, and have to be added to another as large. A backward pass for some inputs alone must
    be one for the values too, if they have gradients.
    """

    def __init__(self, values_BSV: Tensor) -> None:
        values_BSV = values_BSV.to(compute_dtype(values_BSV))
        is_recorded = torch.is_grad_enabled() and values_BSV.requires_grad
        self._recorded = recorded(_MixtureSteps(values_BSV.detach()), values_BSV) if is_recorded else None
        self._values = values_BSV

    def __call__(self, weights_BTS: Tensor) -> Tensor:
        """(B, T, V), in the values' precision."""
        weights_BTS = weights_BTS.to(self._values.dtype)
        return weights_BTS @ self._values if self._recorded is None else self._recorded(weights_BTS)


class DeferredSum:
    """``known_TBG[t] + x_BX @ weight_GX.T`` for t = 0 ... T - 1, each once.

    As ``DeferredLinear``, for a loop whose number of steps is known: inputs and gradients are written side by side
    where the one product after the loop reads them, and the gradients are at the same time those of ``known_TBG``. That
    itself is written to: it must be of use to no one else. A backward pass for some inputs alone must be one for
    ``known_TBG`` too, or what it reports is counted in the next.
    """

    def __init__(self, known_TBG: Tensor, weight_GX: Tensor) -> None:
        weight_GX = weight_GX.to(known_TBG.dtype)
        self._steps = _Steps(known_TBG.detach(), weight_GX.detach())
        self._handle: Tensor = _CollectSum.apply(weight_GX, known_TBG, self._steps)  # type: ignore[no-untyped-call]

    def terms(self) -> list[Callable[[Sequence[Tensor]], Tensor]]:
        """For each step what gives the sum, (B, G), from the parts of x that stand side by side."""
        return [partial(self._term, time) for time in range(len(self._steps.known_TBG))]

    def _term(self, time: int, parts: Sequence[Tensor]) -> Tensor:
        sum_BG: Tensor = _AddProduct.apply(self._handle, self._steps, time, *parts)  # type: ignore[no-untyped-call]
        return sum_BG


class _Steps:
    """What a ``DeferredSum``'s steps read and leave."""

    def __init__(self, known_TBG: Tensor, weight_GX: Tensor) -> None:
        self.known_TBG, self.weight_GX = known_TBG, weight_GX
        self.x_TBX = known_TBG.new_empty(*known_TBG.shape[:2], weight_GX.shape[1])
        self._gradient_TBG: Tensor | None = None
        self.added: set[int] = set()
        self._reported: set[int] = set()

    def report(self, time: int, gradient_BG: Tensor) -> None:
        if self._gradient_TBG is None:
            self._gradient_TBG = torch.empty_like(self.known_TBG)
        self._gradient_TBG[time] = gradient_BG
        self._reported.add(time)

    def taken(self) -> Tensor:
        """All gradients, (T, B, G); then there are none."""
        gradient_TBG = torch.zeros_like(self.known_TBG) if self._gradient_TBG is None else self._gradient_TBG
        for time in set(range(len(gradient_TBG))) - self._reported:
            gradient_TBG[time] = 0.0
        self._gradient_TBG = None
        self._reported.clear()
        return gradient_TBG


class _LinearSteps(DeferredSteps):
    def __init__(self, weight_OI: Tensor) -> None:
        super().__init__()
        self._weight_OI = weight_OI

    def forth(self, x: Tensor) -> Tensor:
        return F.linear(x, self._weight_OI)

    def to_input(self, x: Tensor, gradient: Tensor) -> Tensor:
        return gradient @ self._weight_OI

    def to_shared(self, inputs: list[Tensor], gradients: list[Tensor]) -> tuple[Tensor]:
        x_NI, gradient_NO = (torch.cat([each.flatten(0, -2) for each in several]) for several in (inputs, gradients))
        return (gradient_NO.T @ x_NI,)


class _MixtureSteps(DeferredSteps):
    def __init__(self, values_BSV: Tensor) -> None:
        super().__init__()
        self._values_BSV = values_BSV

    def forth(self, x: Tensor) -> Tensor:
        return x @ self._values_BSV

    def to_input(self, x: Tensor, gradient: Tensor) -> Tensor:
        return gradient @ self._values_BSV.mT

    def to_shared(self, inputs: list[Tensor], gradients: list[Tensor]) -> tuple[Tensor]:
        return (torch.cat(inputs, dim=1).mT @ torch.cat(gradients, dim=1),)


class _CollectSum(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, weight_GX: Tensor, known_TBG: Tensor, steps: _Steps) -> Tensor:
        ctx.steps = steps
        return weight_GX.new_zeros(())

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, _: Tensor) -> tuple[Tensor | None, Tensor, None]:
        gradient_TBG, weight_gradient = ctx.steps.taken(), None
        if ctx.needs_input_grad[0]:
            weight_gradient = gradient_TBG.flatten(0, 1).T @ ctx.steps.x_TBX.flatten(0, 1)
        return weight_gradient, gradient_TBG, None


class _AddProduct(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, handle: Tensor, steps: _Steps, time: int, *parts: Tensor) -> Tensor:
        assert time not in steps.added, "what is known of a step is written over when its product is added"
        steps.added.add(time)
        ctx.steps, ctx.time = steps, time
        ctx.widths = [each.shape[1] for each in parts]
        ctx.save_for_backward(handle)
        x_BX = torch.cat([each.to(steps.x_TBX.dtype) for each in parts], dim=1, out=steps.x_TBX[time])
        # by way of ``data``, which is no view: autograd would take the next step's writing for a change of this one
        return steps.known_TBG[time].data.addmm_(x_BX, steps.weight_GX.T)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient_BG: Tensor) -> tuple[Tensor | None, ...]:
        (handle,) = ctx.saved_tensors
        ctx.steps.report(ctx.time, gradient_BG)
        of_parts = (gradient_BG @ ctx.steps.weight_GX).split(ctx.widths, dim=1)
        return torch.zeros_like(handle), None, None, *of_parts

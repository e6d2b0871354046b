"""Linear maps of a trained model."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from nmt.extras.speed.int8 import Int8Weight
from nmt.nn.output import OutputLayer

PACKED = 1 << 18
"""Smallest number of elements of a weight in float32 for which a copy in oneDNN's layout is worth it. With fewer
elements, the call takes longer than the rearrangement of the weight in every call of PyTorch's product."""


class _Packed(nn.Module):
    """A linear layer that multiplies by its copy of the weight if no gradient is recorded."""

    packed: tuple[Tensor, Tensor | None]
    """The weight in oneDNN's layout, and the bias."""

    def forward(self, x: Tensor) -> Tensor:
        """See ``nn.Linear`` and ``OutputLayer``."""
        if torch.is_grad_enabled():
            return super().forward(x)  # type: ignore[no-any-return]
        product: Tensor = torch.ops.mkldnn._linear_pointwise(x, *self.packed, "none", [], "")
        return product


class PackedLinear(_Packed, nn.Linear):
    """A packed layer."""


class PackedOutput(_Packed, OutputLayer):
    """A packed output layer."""


def pack(model: nn.Module) -> None:
    """Changes the large layers of a frozen model to those above; their weights are not moved."""
    for module in model.modules():
        if type(module) is nn.Linear and _is_large(module.weight):
            module.__class__, weight, bias = PackedLinear, module.weight, module.bias
        elif type(module) is OutputLayer and _is_large(module.weight_VD):
            module.__class__, weight, bias = PackedOutput, module.weight_VD, module.bias_V
        else:
            continue
        module.packed = (torch.ops.mkldnn._reorder_linear_weight(weight.detach()), bias)  # type: ignore[assignment]


def _is_large(weight_OI: Tensor) -> bool:
    is_float32 = not isinstance(weight_OI, Int8Weight) and weight_OI.dtype == torch.float32
    return is_float32 and weight_OI.device.type == "cpu" and weight_OI.numel() >= PACKED and torch._C._has_mkldnn

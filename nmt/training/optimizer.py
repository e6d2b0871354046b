"""The optimizer and its state as named tensors."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from nmt.core.device import Compute
from nmt.training.config import OptimizerConfig

_LAYER = re.compile(r"(encoder|decoder)\.(?:layers|forwards|backwards|stack\.\w+|handover\.layers)\.(\d+)\.")
_ENTRANCE = re.compile(r"(encoder|decoder)\.(?:embedding|entrance)\.")


def layers_above(names: Iterable[str]) -> dict[str, int]:
    """Counts the layers above each of a model's parameters in its encoder or decoder; 0 for a parameter outside of the
    layers, such as the output layer's."""
    names = list(names)
    layer = {name: (match[1], int(match[2])) for name in names if (match := _LAYER.match(name))}
    counts = {of: 1 + max((n for side, n in layer.values() if side == of), default=-1) for of in ("encoder", "decoder")}
    above = dict.fromkeys(names, 0)
    above |= {name: counts[side] - 1 - number for name, (side, number) in layer.items()}
    return above | {name: counts[match[1]] for name in names if (match := _ENTRANCE.match(name))}


class NamedOptimizer:
    """Adam, AdamW or Muon over the parameters of a model, whose state can be saved without pickling.

    In float16 the loss is scaled up so that small gradients survive, and an update whose gradients overflow is skipped
    (Micikevicius et al. 2018, "Mixed Precision Training"); in other precisions scaling does nothing.
    """

    def __init__(self, model: nn.Module, config: OptimizerConfig, compute: Compute) -> None:
        self._names = {id(parameter): name for name, parameter in model.named_parameters()}
        self._peak = config.learning_rate
        # the more layers are above a layer, the more slowly it learns (Howard & Ruder 2018, "ULMFiT")
        below = layers_above(self._names.values())
        in_muon: dict[str, int] = {}
        if config.kind == "muon":
            from nmt.training.muon import Muon, matrices

            in_muon = matrices(model)
        members: dict[tuple[float, float, int], list[nn.Parameter]] = {}
        for name, parameter in model.named_parameters():
            # decay draws matrices towards 0; biases, norms and other vectors are not decayed
            weight_decay = config.weight_decay if parameter.dim() > 1 else 0.0
            group = (weight_decay, config.layer_decay ** below[name], in_muon.get(name, 0))
            members.setdefault(group, []).append(parameter)
        groups = [
            {"params": parameters, "weight_decay": weight_decay, "share": share, "matrices": count}
            for (weight_decay, share, count), parameters in members.items()
        ]
        # fused: one kernel for all parameters, instead of some for each
        betas = (config.beta1, config.beta2)
        adam: dict[str, Any] = {"lr": self._peak, "betas": betas, "eps": config.epsilon, "fused": True}
        self._torch: torch.optim.Adam
        if config.kind == "muon":
            dtype = torch.bfloat16 if compute.precision == "bfloat16" else torch.float32
            self._torch = Muon(groups, momentum=config.momentum, dtype=dtype, **adam)
        else:
            self._torch = (torch.optim.AdamW if config.kind == "adamw" else torch.optim.Adam)(groups, **adam)
        self.skips_overflow = compute.precision == "float16"
        self._scaler = torch.amp.GradScaler(compute.device.type, enabled=self.skips_overflow)

    def scaled(self, loss: Tensor) -> Tensor:
        """Scales the loss; ``backward`` is called on the result."""
        return self._scaler.scale(loss)

    def unscale(self) -> None:
        """Undoes the scaling of the gradients, which must happen before clipping."""
        self._scaler.unscale_(self._torch)

    def step(self, factor: float) -> float:
        """Updates the parameters from their gradients and clears the gradients; returns the learning rate of the top
        layers, peak x factor."""
        rate = self._peak * factor
        for group in self._torch.param_groups:
            group["lr"] = rate * group["share"]
        # if a gradient is not finite, it skips the update, and then lowers the scale
        self._scaler.step(self._torch)
        self._scaler.update()
        # gradients that are None take no memory, and a CUDA graph may then write its own
        self._torch.zero_grad(set_to_none=True)
        return rate

    def loss_scale(self) -> dict[str, float]:
        """Returns the state of loss scaling; empty if losses are not scaled."""
        return dict(self._scaler.state_dict())

    def tensors(self) -> dict[str, Tensor]:
        """Returns the state by names ``<parameter>/<quantity>``."""
        return {
            f"{self._names[id(parameter)]}/{quantity}": value
            for parameter, state in self._torch.state.items()
            for quantity, value in state.items()
        }

    def restore(self, tensors: Mapping[str, Tensor], loss_scale: dict[str, float]) -> None:
        """Restores the state from ``tensors`` and ``loss_scale`` of a model of the same shape."""
        if self.skips_overflow and loss_scale:
            self._scaler.load_state_dict(loss_scale)
        for group in self._torch.param_groups:
            for parameter in group["params"]:
                prefix = self._names[id(parameter)] + "/"
                state = {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}
                self._torch.state[parameter] = {name: value.to(parameter.device) for name, value in state.items()}

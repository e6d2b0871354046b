"""The optimizer and its state as named tensors."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from nmt.core.device import Compute
from nmt.training.config import OptimizerConfig


class NamedOptimizer:
    """Adam or AdamW over the parameters of a model, whose state can be saved without pickling.

    In float16 the loss is scaled up so that small gradients survive, and an update whose gradients overflow is skipped
    (Micikevicius et al. 2018, "Mixed Precision Training"); in other precisions scaling does nothing.
    """

    def __init__(self, model: nn.Module, config: OptimizerConfig, compute: Compute) -> None:
        self._names = {id(parameter): name for name, parameter in model.named_parameters()}
        self._peak = config.learning_rate
        parameters = list(model.parameters())
        matrices = [each for each in parameters if each.dim() > 1]
        others = [each for each in parameters if each.dim() <= 1]
        groups = [
            {"params": matrices, "weight_decay": config.weight_decay},
            {"params": others, "weight_decay": 0.0},
        ]
        kind = torch.optim.AdamW if config.kind == "adamw" else torch.optim.Adam
        self._torch = kind(groups, lr=self._peak, betas=(config.beta1, config.beta2), eps=config.epsilon, fused=True)
        self.skips_overflow = compute.precision == "float16"
        self._scaler = torch.amp.GradScaler(compute.device.type, enabled=self.skips_overflow)

    def scaled(self, loss: Tensor) -> Tensor:
        """The loss to call ``backward`` on."""
        return self._scaler.scale(loss)

    def unscale(self) -> None:
        """Brings the gradients back to the loss's own scale; before clipping."""
        self._scaler.unscale_(self._torch)

    def step(self, factor: float) -> float:
        """Updates the parameters from their gradients and clears those; returns the learning rate, peak x factor."""
        rate = self._peak * factor
        for group in self._torch.param_groups:
            group["lr"] = rate
        self._scaler.step(self._torch)
        self._scaler.update()
        self._torch.zero_grad(set_to_none=True)
        return rate

    def loss_scale(self) -> dict[str, float]:
        """The state of loss scaling; empty where there is none."""
        return dict(self._scaler.state_dict())

    def tensors(self) -> dict[str, Tensor]:
        """The state, named ``<parameter>/<quantity>``."""
        return {
            f"{self._names[id(parameter)]}/{quantity}": value
            for parameter, state in self._torch.state.items()
            for quantity, value in state.items()
        }

    def restore(self, tensors: Mapping[str, Tensor], loss_scale: dict[str, float]) -> None:
        """Takes over a state that ``tensors`` and ``loss_scale`` gave for a model of the same shape."""
        if self.skips_overflow and loss_scale:
            self._scaler.load_state_dict(loss_scale)
        for group in self._torch.param_groups:
            for parameter in group["params"]:
                prefix = self._names[id(parameter)] + "/"
                state = {name.removeprefix(prefix): each for name, each in tensors.items() if name.startswith(prefix)}
                self._torch.state[parameter] = {name: each.to(parameter.device) for name, each in state.items()}

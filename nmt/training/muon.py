"""Muon, an optimizer for matrices: an update moves a matrix equally far along all of its directions.

Jordan et al. 2024, "Muon: An optimizer for hidden layers in neural networks".
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

QUINTICS = ((7.8577, -21.616, 15.0492), (3.6006, -2.6418, 0.5105), (2.6613, -1.9772, 0.4526))
"""Coefficients a, b, c of the polynomial of each iteration. Together they bring 0.01 to 1 to between 0.7 and 1.3, as
five times the one polynomial of Jordan et al. does. Each is the one of its degree that is nearest to 1 on the range
that the previous ones leave, but of x / 1.03, x / 1.01 and x: it grows fast beyond that range, where bfloat16 may round
to (Amsel et al. 2025, "The Polar Express", sections 3 and 4)."""


class Muon(torch.optim.AdamW):
    """Muon for the groups of parameters with ``matrices``, AdamW for those without.

    For a matrix with the gradient G, the momentum M and the learning rate r:

        M = mu M + (1 - mu) G
        O = orthogonalized(mu M + (1 - mu) G)
        W = (1 - r * weight_decay) W - 0.2 sqrt(max(rows, columns)) r O

    The last factor gives its updates the usual size of AdamW's, so that one learning rate serves both (Liu et al. 2025,
    "Muon is Scalable for LLM Training", equation 4). ``matrices`` is the number of matrices that are stored in each
    parameter, one above the other.
    """

    def __init__(self, groups: list[dict[str, Any]], *, momentum: float, dtype: torch.dtype, **adamw: Any) -> None:
        """``dtype`` is the type of the products; ``adamw`` are the arguments of ``torch.optim.AdamW``."""
        super().__init__(groups, **adamw)
        self._momentum, self._dtype = momentum, dtype
        # a gradient scaler then leaves out updates that overflow, instead of leaving it to AdamW's kernel
        self._step_supports_amp_scaling = False

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """Updates all parameters that have a gradient. Those of the matrices are gone afterwards."""
        alike: dict[tuple[int, ...], list[tuple[Tensor, Tensor, float]]] = {}
        for group in self.param_groups:
            count, rate = group["matrices"], group["lr"]
            for parameter, direction in self._directions(group["params"] if count else []):
                parameter.mul_(1.0 - rate * group["weight_decay"])
                for weight, part in zip(parameter.chunk(count), direction.chunk(count), strict=True):
                    alike.setdefault(tuple(weight.shape), []).append((weight, part, rate))
        for shape, members in alike.items():
            # matrices of one shape together: a few large products instead of many small ones
            updates = orthogonalized(torch.stack([part for _, part, _ in members]).to(self._dtype))
            for (weight, _, rate), update in zip(members, updates, strict=True):
                weight.add_(update.to(weight.dtype), alpha=-0.2 * max(shape) ** 0.5 * rate)
        super().step()

    def _directions(self, parameters: list[nn.Parameter]) -> Iterator[tuple[nn.Parameter, Tensor]]:
        """Yields the parameters that have a gradient, with its average (Nesterov's), and clears the gradient."""
        for parameter in parameters:
            if parameter.grad is not None:
                gradient, parameter.grad = parameter.grad, None
                state = self.state[parameter]
                if not state:
                    state["momentum"] = torch.zeros_like(parameter)
                average = state["momentum"].lerp_(gradient, 1.0 - self._momentum)
                yield parameter, gradient.lerp(average, self._momentum)


def orthogonalized(matrices_NRC: Tensor) -> Tensor:
    """Returns the nearest orthogonal matrices, (N, R, C), roughly: U V^T of each U S V^T, with singular values between
    0.7 and 1.3 in place of 1, unless they are below a hundredth of the root of |X X^T|, which no one is above.

    A Newton-Schulz iteration (Jordan et al. 2024): X = a X + (b A + c A^2) X with A = X X^T maps each singular value s
    to a s + b s^3 + c s^5, and leaves U and V as they are.
    """
    tall = matrices_NRC.shape[1] > matrices_NRC.shape[2]
    x = matrices_NRC.mT if tall else matrices_NRC  # A is then of the smaller side
    square = x @ x.mT
    # the root of the sum of all s^4: no s^2 is above it
    bound = square.norm(dim=(1, 2), keepdim=True).clamp_min(1e-14)
    x, square = x / bound.sqrt(), square / bound
    for step, (a, b, c) in enumerate(QUINTICS):
        square = x @ x.mT if step else square
        x = torch.baddbmm(x, torch.baddbmm(square, square, square, beta=b, alpha=c), x, beta=a)
    return x.mT if tall else x


def matrices(model: nn.Module) -> dict[str, int]:
    """Returns the names of the parameters that Muon updates, each with its number of matrices: all but vectors, and
    tables with a row for each token or position, whose rows have nothing to do with each other (Jordan et al. 2024).
    The weights of a recurrent cell hold a matrix for each of its gates."""
    parameters = dict(model.named_parameters())
    gates = {
        name.rpartition(".")[0]: weight.shape[0] // weight.shape[1]
        for name, weight in parameters.items()
        if ".weight_hh" in name
    }
    return {
        name: gates.get(name.rpartition(".")[0], 1)
        for name, weight in parameters.items()
        if weight.dim() == 2 and not re.search(r"\b(embedding|positions|output)\.", name)
    }

"""What additive and concat scores have in common: v . tanh(query + key) for all pairs.

Shapes as in ``mechanism``.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from nmt.nn import native
from nmt.nn.deferred import DeferredSteps, recorded


class InsideTanh:
    """v . tanh(query + key) of queries that come one call after the other, and keys that stay. Make one for each loop.

    PyTorch's operations hold B x H x T x S x A numbers at once, and training holds them for all steps. The kernels hold
    none, and in training compute them twice more: each step's way back is to its queries alone, and when all steps
    have reported, one pass over them gives the gradients of keys and v (see ``DeferredMixture``).
    """

    def __init__(self, keys_BHSA: Tensor, v_A: Tensor) -> None:
        self._keys_BHSA, self._v_A = keys_BHSA, v_A
        self._recorded: Callable[[Tensor], Tensor] | None = None
        if torch.is_grad_enabled() and (keys_BHSA.requires_grad or v_A.requires_grad):
            with torch.no_grad():
                has_kernels = keys_BHSA.shape[1] == 1 and native.kernels(keys_BHSA) is not None
            if has_kernels:
                steps = _Steps(keys_BHSA.detach()[:, 0].contiguous(), v_A.detach().contiguous())
                self._recorded = recorded(steps, keys_BHSA, v_A)

    def __call__(self, query_BHTA: Tensor) -> Tensor:
        """(B, H, T, S)."""
        if self._recorded is not None:
            return self._recorded(query_BHTA)
        if self._keys_BHSA.shape[1] == 1 and native.kernels(self._keys_BHSA) is not None:
            return _scores(query_BHTA, self._keys_BHSA[:, 0].contiguous(), self._v_A.contiguous())
        return (query_BHTA.unsqueeze(3) + self._keys_BHSA.unsqueeze(2)).tanh_() @ self._v_A


class _Steps(DeferredSteps):
    def __init__(self, keys_BSA: Tensor, v_A: Tensor) -> None:
        super().__init__()
        self._shared = keys_BSA, v_A

    def forth(self, x: Tensor) -> Tensor:
        return _scores(x, *self._shared)

    def to_input(self, x: Tensor, gradient: Tensor) -> Tensor:
        return native.expected(x).additive_to_query(_rows(x), *self._shared, _rows(gradient)).view_as(x)

    def to_shared(self, inputs: list[Tensor], gradients: list[Tensor]) -> tuple[Tensor, Tensor]:
        query_NA, gradient_NS = (_rows(torch.cat(several, dim=2)) for several in (inputs, gradients))
        found = native.expected(query_NA).additive_to_memory(query_NA, *self._shared, gradient_NS)
        return found[0][:, None], found[1]


def _scores(query_BHTA: Tensor, keys_BSA: Tensor, v_A: Tensor) -> Tensor:
    return native.expected(keys_BSA).additive(_rows(query_BHTA), keys_BSA, v_A).view(*query_BHTA.shape[:3], -1)


def _rows(x_BHTX: Tensor) -> Tensor:
    """With one head: (B x T, X)."""
    return x_BHTX.reshape(-1, x_BHTX.shape[-1]).contiguous()

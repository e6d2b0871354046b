"""What additive and concat scores have in common: v . tanh(query + key) for all pairs.

Shapes as in ``mechanism``.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from nmt.layers import native


class InsideTanh:
    """v . tanh(query + key) of queries that come one call after the other, and keys that stay. Make one for each loop.

    PyTorch's operations hold B x H x T x S x A numbers at once, and training holds them for all steps. The kernels hold
    none, and in training compute them twice more: each step's way back is to its queries alone, and when all steps
    have reported, one pass over them gives the gradients of keys and v (see ``DeferredMixture``).
    """

    def __init__(self, keys_BHSA: Tensor, v_A: Tensor) -> None:
        self._keys_BHSA, self._v_A = keys_BHSA, v_A
        self._notes: _Notes | None = None
        with torch.no_grad():
            if keys_BHSA.shape[1] == 1 and native.kernels(keys_BHSA) is not None:
                self._notes = _Notes(keys_BHSA.detach()[:, 0].contiguous(), v_A.detach().contiguous())
        self._handle: Tensor | None = None
        if self._notes is not None and torch.is_grad_enabled() and (keys_BHSA.requires_grad or v_A.requires_grad):
            self._handle = _Collect.apply(keys_BHSA, v_A, self._notes)  # type: ignore[no-untyped-call]

    def __call__(self, query_BHTA: Tensor) -> Tensor:
        """(B, H, T, S)."""
        if self._notes is not None and not torch.is_grad_enabled():
            return self._notes.scores(query_BHTA)
        if self._notes is not None and self._handle is not None:
            scores_BHTS: Tensor = _Scores.apply(query_BHTA, self._handle, self._notes)  # type: ignore[no-untyped-call]
            return scores_BHTS
        return (query_BHTA.unsqueeze(3) + self._keys_BHSA.unsqueeze(2)).tanh_() @ self._v_A


class _Notes:
    """What steps leave for the gradients of what they share."""

    def __init__(self, keys_BSA: Tensor, v_A: Tensor) -> None:
        self.keys_BSA, self.v_A = keys_BSA, v_A
        self.queries: list[Tensor] = []
        self.gradients: list[Tensor] = []

    @property
    def kernels(self) -> native.Kernels:
        kernels = native.kernels(self.keys_BSA)
        assert kernels is not None
        return kernels

    def scores(self, query_BHTA: Tensor) -> Tensor:
        scores_NS = self.kernels.additive(_rows(query_BHTA), self.keys_BSA, self.v_A)
        return scores_NS.view(*query_BHTA.shape[:3], -1)


class _Collect(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, keys_BHSA: Tensor, v_A: Tensor, notes: _Notes) -> Tensor:
        ctx.notes = notes
        return keys_BHSA.new_zeros(())

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, _: Tensor) -> tuple[Tensor, Tensor, None]:
        notes = ctx.notes
        query_BHTA, gradient_BHTS = torch.cat(notes.queries, dim=2), torch.cat(notes.gradients, dim=2)
        notes.queries.clear()
        notes.gradients.clear()
        keys_gradient_BSA, v_gradient_A = notes.kernels.additive_to_memory(
            _rows(query_BHTA), notes.keys_BSA, notes.v_A, _rows(gradient_BHTS)
        )
        return keys_gradient_BSA[:, None], v_gradient_A, None


class _Scores(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, query_BHTA: Tensor, handle: Tensor, notes: _Notes) -> Tensor:
        ctx.notes = notes
        ctx.save_for_backward(query_BHTA, handle)
        return notes.scores(query_BHTA)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient_BHTS: Tensor) -> tuple[Tensor | None, Tensor, None]:
        query_BHTA, handle = ctx.saved_tensors
        notes = ctx.notes
        notes.queries.append(query_BHTA.detach())
        notes.gradients.append(gradient_BHTS)
        query_gradient_BHTA = None
        if ctx.needs_input_grad[0]:
            query_gradient_BHTA = notes.kernels.additive_to_query(
                _rows(query_BHTA), notes.keys_BSA, notes.v_A, _rows(gradient_BHTS)
            ).view_as(query_BHTA)
        return query_gradient_BHTA, torch.zeros_like(handle), None


def _rows(x_BHTX: Tensor) -> Tensor:
    """With one head: (B x T, X)."""
    return x_BHTX.reshape(-1, x_BHTX.shape[-1]).contiguous()

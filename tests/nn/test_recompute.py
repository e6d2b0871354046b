"""Recomputed functions: when they run, and that draws and gradients stay the same; whole models in tests/models."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

from nmt.nn.recompute import is_recomputing, recomputed, recomputing


@pytest.mark.parametrize("on", [True, False])
def test_the_outermost_function_alone_runs_again_with_the_same_draws(on: bool) -> None:
    calls: list[tuple[str, bool]] = []

    def inner(x: torch.Tensor) -> torch.Tensor:
        calls.append(("inner", is_recomputing()))
        return F.dropout(x, 0.5).exp()

    def outer(x: torch.Tensor) -> torch.Tensor:
        calls.append(("outer", is_recomputing()))
        return recomputed(inner)(x) * x

    x = torch.randn(50, requires_grad=True)
    state = torch.get_rng_state()
    with recomputing(on):
        found = recomputed(outer)(x)
        assert is_recomputing() == on
    assert not is_recomputing()
    (gradient,) = torch.autograd.grad(found.sum(), [x])
    assert calls == [("outer", False), ("inner", False)] * (2 if on else 1)
    torch.set_rng_state(state)
    expected = outer(x)
    assert torch.equal(found, expected)
    assert torch.equal(gradient, *torch.autograd.grad(expected.sum(), [x]))


def test_without_gradients_or_outside_it_is_the_function_itself() -> None:
    with recomputing(True), torch.no_grad():
        assert recomputed(len) is len
    with pytest.raises(KeyError), recomputing(True):
        raise KeyError
    assert recomputed(len) is len

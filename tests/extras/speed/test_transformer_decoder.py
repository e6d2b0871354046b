"""States of the fast decoder of a Transformer; its steps are compared in ``test_optimize.py``."""

from __future__ import annotations

import pytest
import torch

from nmt.extras.speed.transformer_decoder import BackpointerState
from tests.extras.speed.test_native import needs_kernels
from tests.extras.speed.test_optimize import SOURCE_BS, fast, transformer


@needs_kernels
@torch.no_grad()
def test_a_state_may_be_stepped_from_twice() -> None:
    model = fast(transformer(), "float32")
    memory = model.encode(SOURCE_BS)
    state = model.step(torch.tensor([4, 5, 1]), memory, model.start(memory)).state
    one = model.step(torch.tensor([4, 4, 4]), memory, state)
    expected_NV = model.step(torch.tensor([1, 5, 4]), memory, one.state).logits_NV
    model.step(torch.tensor([5, 5, 5]), memory, state)
    assert torch.equal(model.step(torch.tensor([1, 5, 4]), memory, one.state).logits_NV, expected_NV)


@needs_kernels
@torch.no_grad()
def test_states_of_two_searches_are_not_joined() -> None:
    """Backpointers are rows of their own search."""
    model = fast(transformer(), "float32")
    memory = model.encode(SOURCE_BS)
    one, other = (model.step(torch.tensor([4, 5, 1]), memory, model.start(memory)).state for _ in range(2))
    assert len(BackpointerState.joined([one, one])) == 2 * len(one)
    with pytest.raises(AssertionError):
        BackpointerState.joined([one, other])


def test_gradients_reach_the_embeddings() -> None:
    model = fast(transformer(), "float32")
    embedded_BSE = model.encoder.embed(SOURCE_BS).detach().requires_grad_()
    memory = model.encode_embedded(embedded_BSE, SOURCE_BS)
    step = model.step(torch.tensor([4, 5, 1]), memory, model.start(memory))
    (gradient_BSE,) = torch.autograd.grad(step.logits_NV.logsumexp(1).sum(), embedded_BSE)
    assert gradient_BSE.abs().max() > 1e-4

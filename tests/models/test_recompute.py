"""Gradient checkpointing: the same bits, and less that is kept for the backward pass."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from nmt.models.feed import FreeRunning, TeacherForcing
from nmt.models.loss import token_loss
from nmt.nn.recompute import recomputing
from nmt.training.objective import training_criterion
from tests.models.plain_decoder import SOURCES, TARGETS, padded
from tests.models.variants import TRANSFORMER, kinds, make, tree

DROPOUT = {"embedding": 0.3, "layers": 0.3}


def learnt(config: dict[str, Any], on: bool, *, feed: Any = None, long: int = 1) -> tuple[list[Tensor | None], int]:
    """The loss and the gradients of all parameters; and the bytes kept between the passes, results of checkpointed
    functions and other tensors that stay alive by themselves left out."""
    is_transformer = "transformer" in (config["encoder"]["kind"], config["decoder"]["kind"])
    model = make({**config, "dropout": DROPOUT | ({"feed_forward": 0.2} if is_transformer else {})}).train()
    kept: dict[int, int] = {}

    def note(tensor: Tensor) -> Tensor:
        kept[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    torch.manual_seed(1)
    source, target = padded(SOURCES).repeat(1, long), padded(TARGETS).repeat(1, long)
    with torch.autograd.graph.saved_tensors_hooks(note, lambda each: each), recomputing(on):
        loss = token_loss(model, source, target, feed or TeacherForcing(), training_criterion(model, 0.1))
    loss.objective.backward()  # type: ignore[no-untyped-call]
    return [loss.objective, *(each.grad for each in model.parameters())], sum(kept.values())


@pytest.mark.parametrize("config", list(kinds()))
def test_gradients_are_the_same_to_the_bit(config: dict[str, Any]) -> None:
    for one, other in zip(learnt(config, True)[0], learnt(config, False)[0], strict=True):
        assert (one is None) == (other is None)
        if one is not None and other is not None:
            assert torch.equal(one, other)


@pytest.mark.parametrize("kind", ["rnn", "transformer"])
def test_in_free_running_too(kind: str) -> None:
    sides = TRANSFORMER if kind == "transformer" else None
    config = tree(encoder=sides, decoder=sides)
    one, other = (learnt(config, on, feed=FreeRunning())[0] for on in (True, False))
    for mine, theirs in zip(one, other, strict=True):
        assert mine is not None
        assert theirs is not None
        assert torch.equal(mine, theirs)


@pytest.mark.parametrize(
    ("config", "share"),
    [
        pytest.param(tree(score="scaled_dot", encoder=TRANSFORMER, decoder=TRANSFORMER), 0.4, id="transformer"),
        pytest.param(tree(score={"kind": "additive", "size": 64}), 0.4, id="additive score"),
    ],
)
def test_less_is_kept(config: dict[str, Any], share: float) -> None:
    """The batch is long, so that weights do not count."""
    assert learnt(config, True, long=12)[1] < share * learnt(config, False, long=12)[1]

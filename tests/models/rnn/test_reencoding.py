"""Decoders that read the source again at each step, against plain loops."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from nmt.models.feed import TeacherForcing
from nmt.models.loss import CrossEntropy, token_loss
from nmt.nn.recompute import recomputing
from tests.models.plain_decoder import SOURCES, TARGETS, assert_decodes_as_plain_loop, padded
from tests.models.variants import make, tree


@pytest.mark.parametrize(
    "options",
    [{"cell": "lstm", "layers": 2}, {"cell": "gru", "layers": 3, "residual": True, "input_feeding": True}],
    ids=str,
)
def test_decoding_equals_plain_loops(options: dict[str, Any]) -> None:
    assert_decodes_as_plain_loop(tree(score="none", decoder={"kind": "reencoding", **options}))


def test_reading_again_in_little_memory_gives_the_same_gradients() -> None:
    model = make(tree(score="none", decoder={"kind": "reencoding"}))
    gradients = []
    for on in (False, True):
        with recomputing(on):
            loss = token_loss(model, padded(SOURCES), padded(TARGETS), TeacherForcing(), CrossEntropy())
            gradients.append(torch.autograd.grad(loss.objective, list(model.parameters())))
    assert all(torch.equal(one, other) for one, other in zip(*gradients, strict=True))

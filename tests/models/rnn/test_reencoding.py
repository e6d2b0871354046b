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


@torch.no_grad()
def test_each_row_of_a_beam_reads_its_own_sentence() -> None:
    model = make(tree(score="none", decoder={"kind": "reencoding"}))
    memory, token_N = model.encode(padded(SOURCES)), torch.tensor([4, 5, 4, 1, 5, 5])
    beams = model.step(token_N, memory, model.start(memory).repeat(2))
    for beam in range(2):
        alone = model.step(token_N[beam::2], memory, model.start(memory))
        torch.testing.assert_close(beams.logits_NV[beam::2], alone.logits_NV)

"""Heads whose weights become an alignment."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from nmt.alignment.forced import chosen_heads, forced_weights
from nmt.core.device import Compute
from nmt.core.errors import InputError
from tests.models.plain_decoder import decode
from tests.models.variants import TRANSFORMER, make, tree

COMPUTE = Compute(torch.device("cpu"), "float32")
SIDES = {**TRANSFORMER, "layers": 3}
MODELS = {"rnn": tree(), "transformer": tree(score="scaled_dot", encoder=SIDES, decoder=SIDES)}
"""The transformer has three layers of two heads."""
SOURCES = [[4, 5, 1, 4], [5], [5, 5, 4, 1, 1, 4, 5], [1, 4]]
TARGETS = [[5, 4], [4, 4, 1, 5, 5], [1, 5, 4], [4]]
EOS = 3


@pytest.mark.parametrize(
    ("pattern", "places"),
    [("*", [0, 1, 2, 3, 4, 5]), ("layer3.*", [4, 5]), ("*.head2", [1, 3, 5]), ("layer[12].head1", [0, 2])],
)
def test_a_pattern_names_the_heads_that_are_averaged(pattern: str, places: list[int]) -> None:
    model, heads = make(MODELS["transformer"]), [pattern, "*"]
    assert chosen_heads(model, pattern) == places
    ((found_TS, all_TS),) = forced_weights(model, [[4, 5, 1]], [[5, 4]], COMPUTE, batch_tokens=100, heads=heads)
    with torch.no_grad():
        decoded = model.teacher_forced(torch.tensor([[5, 4, EOS]]), model.encode(torch.tensor([[4, 5, 1, EOS]])))
    each_HTS = decoded.weights_BHTS[0]
    torch.testing.assert_close(torch.from_numpy(found_TS), sum(each_HTS[place] for place in places) / len(places))
    torch.testing.assert_close(torch.from_numpy(all_TS), sum(each_HTS) / len(each_HTS))


@pytest.mark.parametrize(
    ("weights", "names"),
    [("softmax", ("head1",)), ({"kind": "glimpse", "scales": 2}, ("head1", "head2"))],
    ids=["softmax", "glimpse"],
)
def test_a_recurrent_decoders_heads_have_names(weights: Any, names: tuple[str, ...]) -> None:
    model = make(tree(weights=weights))
    assert model.decoder.head_names == names
    assert chosen_heads(model, "*") == list(range(len(names)))


def test_a_pattern_that_fits_no_head_is_refused_with_the_names() -> None:
    message = r"^alignment.heads: layer4.\*: fits no head of this model; it has layer1.head"
    with pytest.raises(InputError, match=message):
        chosen_heads(make(MODELS["transformer"]), "layer4.*")


@pytest.mark.parametrize("kind", MODELS)
@torch.no_grad()
def test_shifted_attention_is_that_of_the_step_that_has_read_the_token(kind: str) -> None:
    model = make(MODELS[kind])
    found = forced_weights(model, SOURCES, TARGETS, COMPUTE, batch_tokens=1000, shifted=True)
    for source, target, (found_TS,) in zip(SOURCES, TARGETS, found, strict=True):
        memory, rows = model.encode(torch.tensor([[*source, EOS]])), []
        state = model.start(memory)
        for token in [model.bos, *target, EOS]:
            step = model.step(torch.tensor([token]), memory, state)
            state = step.state
            rows.append(step.weights()[0].mean(dim=0).numpy())
        np.testing.assert_allclose(found_TS, np.stack(rows[1:]), atol=1e-5)
    if kind == "rnn":  # and against cells of torch's own
        plain = decode(model, [*SOURCES[0], EOS], [*TARGETS[0], EOS, EOS])
        np.testing.assert_allclose(found[0][0], np.array(plain.weights_HTS)[0, 1:], atol=1e-4)

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from nmt.alignment.effective import effective, effective_shares, head_values, reads_weights
from nmt.core.device import Compute
from tests.alignment.test_permuted import PARTS
from tests.models.variants import TRANSFORMER, make, tree

CPU = Compute(torch.device("cpu"), "float32")
SOURCES = [[4, 5, 1, 4, 5, 5, 1, 4, 4, 5, 1, 1, 5], [5], [5, 5, 4, 1, 1, 4]]
TARGETS = [[4, 5, 4], [5, 1, 5, 4, 4], [1]]


def pseudo_inverse_shares(model: Any, source: list[int], target: list[int]) -> list[float]:
    """|a V V^+|² / |a|² of a pair alone, the mean over the heads, by numpy's pseudo-inverse."""
    memory = model.encode(torch.tensor([[*source, 3]]))
    weights_HTS = model.teacher_forced(torch.tensor([[*target, 3]]), memory).weights_BHTS[0].double().numpy()
    values_HSA = head_values(memory, len(weights_HTS), torch.zeros(1, len(source) + 1, dtype=torch.bool))[0].numpy()
    shares = []
    for a_TS, v_SA in zip(weights_HTS, values_HSA, strict=True):
        seen_TS = a_TS @ v_SA @ np.linalg.pinv(v_SA, rcond=1e-6)
        np.testing.assert_allclose(seen_TS @ v_SA, a_TS @ v_SA, atol=1e-6)
        shares.append((seen_TS**2).sum(1) / (a_TS**2).sum(1))
    return np.mean(shares, axis=0)[:-1].tolist()  # type: ignore[no-any-return]


@pytest.mark.parametrize("config", PARTS.values(), ids=PARTS)
@torch.no_grad()
def test_shares_are_those_of_the_pseudo_inverse(config: dict[str, Any]) -> None:
    model = make(config)
    expected = [share for pair in zip(SOURCES, TARGETS, strict=True) for share in pseudo_inverse_shares(model, *pair)]
    found = effective_shares(model, SOURCES, TARGETS, CPU, batch_tokens=1000)
    assert found == pytest.approx(expected, abs=1e-5)
    assert min(found) < 0.99, "the longest source has more tokens than a value has numbers"


def test_weights_over_independent_values_are_effective() -> None:
    weights_HTS, values_HSA = torch.rand(2, 3, 4).double(), torch.randn(2, 4, 6).double()
    torch.testing.assert_close(effective(weights_HTS, values_HSA), weights_HTS)
    # two equal values: the output knows only the sum of their weights
    values_HSA[:, 1] = values_HSA[:, 0]
    seen_HTS = effective(weights_HTS, values_HSA)
    torch.testing.assert_close(seen_HTS[..., 0], weights_HTS[..., :2].mean(dim=-1))
    torch.testing.assert_close(seen_HTS[..., 2:], weights_HTS[..., 2:])


@torch.no_grad()
def test_each_layer_and_head_has_its_own_values() -> None:
    model = make(tree(score="scaled_dot", encoder=TRANSFORMER, decoder=TRANSFORMER))
    memory = model.encode(torch.tensor([[4, 5, 3]]))
    values_BHSA = head_values(memory, 4, torch.tensor([[False, False, True]]))
    assert values_BHSA.shape == (1, 4, 3, 4)
    for layer, head in ((0, 1), (1, 0)):
        expected = memory.layers[layer].values_BHSA[0, head, :2].double()
        torch.testing.assert_close(values_BHSA[0, 2 * layer + head, :2], expected)
    assert (values_BHSA[0, :, 2] == 0).all()


def test_models_whose_output_reads_the_weights_are_told() -> None:
    assert not reads_weights(make(tree()))
    assert reads_weights(make(tree(score="coverage")))
    assert reads_weights(make(tree(tie="all", copying={})))

"""Positions against the papers' formulas in plain loops."""

from __future__ import annotations

from itertools import product

import pytest
import torch
from torch import Tensor

from nmt.nn.positions import RotaryAngles, absolute_positions, apply_rotary, sinusoid_halves, sinusoids
from tests.models.torch_transformer import sinusoid, turned


@pytest.mark.parametrize("size", [2, 7, 8])
def test_sinusoids_are_the_papers(size: int) -> None:
    position_BT = torch.tensor([[0, 1, 2, 3], [3, 17, 511, 2000]])
    found_BTD, halves_BTD = sinusoids(position_BT, size), sinusoid_halves(position_BT, size)
    for b, t in product(range(2), range(4)):
        expected_D = sinusoid(int(position_BT[b, t]), size)
        assert found_BTD[b, t].tolist() == pytest.approx(expected_D, abs=3e-4)
        # all sines before the cosines, and exact at late positions too
        assert halves_BTD[b, t].tolist() == pytest.approx(expected_D[::2] + expected_D[1::2], abs=1e-6)
    assert found_BTD[0].flatten().tolist() == pytest.approx([v for t in range(4) for v in sinusoid(t, size)], abs=1e-6)


@pytest.mark.parametrize("kind", ["sinusoidal", "sinusoidal_halves", "rotary", "none"])
def test_absolute_positions_are_added_as_their_kind_says(kind: str) -> None:
    x_BTD, position_1T = torch.randn(2, 5, 6), torch.arange(5)[None]
    vectors = {"sinusoidal": sinusoids, "sinusoidal_halves": sinusoid_halves}.get(kind)
    expected_BTD = x_BTD if vectors is None else x_BTD + vectors(position_1T, 6)
    assert torch.equal(absolute_positions(kind, 9, 6)(x_BTD, position_1T), expected_BTD)


def test_all_positions_from_the_last_learned_one_on_share_it() -> None:
    learned = absolute_positions("learned", 3, 6)
    found_TD = learned(torch.ones(1, 6, 6), torch.tensor([[0, 1, 2, 3, 4, 999]]))[0] - 1.0
    torch.testing.assert_close(found_TD, learned.get_parameter("table_PD")[[0, 1, 2, 2, 2, 2]])
    assert len({tuple(each) for each in found_TD[:3].tolist()}) == 3


def rotated(x_BHTA: Tensor, position_BT: Tensor) -> Tensor:
    return apply_rotary(x_BHTA, RotaryAngles.of(position_BT, x_BHTA))


def test_rotation_is_that_of_complex_numbers() -> None:
    x_BHTA = torch.randn(2, 3, 4, 6, dtype=torch.float64)
    position_BT = torch.tensor([[0, 1, 2, 3], [9, 2, 40, 7]])
    found_BHTA, one_row_BHTA = rotated(x_BHTA, position_BT), rotated(x_BHTA, position_BT[1:])
    for b, h, t in product(range(2), range(3), range(4)):
        x_A = x_BHTA[b, h, t].tolist()
        assert found_BHTA[b, h, t].tolist() == pytest.approx(turned(x_A, int(position_BT[b, t])), abs=1e-5)
        assert one_row_BHTA[b, h, t].tolist() == pytest.approx(turned(x_A, int(position_BT[1, t])), abs=1e-5)


def test_inner_products_of_what_is_rotated_depend_on_the_distance_alone() -> None:
    query_A, key_A = torch.randn(2, 1, 1, 1, 8, dtype=torch.float64)

    def score(query_position: int, key_position: int) -> float:
        positions = (torch.tensor([[query_position]]), torch.tensor([[key_position]]))
        turned_query_A, turned_key_A = (rotated(x, t) for x, t in zip((query_A, key_A), positions, strict=True))
        return float((turned_query_A * turned_key_A).sum())

    for distance in (0, 1, 5, -3):
        expected = score(20 + distance, 20)
        assert [score(t + distance, t) for t in (3, 11, 90)] == pytest.approx([expected] * 3, abs=1e-4)
    assert score(21, 20) != pytest.approx(score(22, 20), abs=1e-2)

"""The largest entries of long rows, against ``topk`` and a sort."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from nmt.search.topk import PARTS, SHORT, TOGETHER, largest, parts

from nmt.extras.accel import native
from nmt.extras.accel.native.compiled import compiled


@pytest.fixture(autouse=True, params=["with kernels", "without"])
def as_in_a_search(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    if request.param == "without":
        monkeypatch.setattr(native, "_kernels", lambda _: None)
    elif compiled() is None:
        pytest.skip("no C++ compiler: PyTorch's operations are used")
    with torch.no_grad():
        yield


@pytest.mark.parametrize("vocabulary", [5, SHORT, SHORT + 1, SHORT + PARTS - 1, 3000])
@pytest.mark.parametrize("together", [1, 3])
def test_the_largest_entries_are_those_of_a_sort(vocabulary: int, together: int) -> None:
    generator = torch.Generator().manual_seed(vocabulary)
    x_NV = torch.randn(6, vocabulary, generator=generator)
    x_NV[0, -1] = 9.0  # past the last whole part
    x_NV[5, 0] = 8.0
    x_NV[1] = -torch.inf  # a row without a hypothesis
    for count in (1, 5):
        values_MK, index_MK = largest(x_NV, count, together=together)
        for found, where, row in zip(values_MK, index_MK, x_NV.reshape(-1, together * vocabulary), strict=True):
            assert found.tolist() == sorted(row.tolist(), reverse=True)[:count]
            assert row[where].tolist() == found.tolist()
            if found.isfinite().all():
                assert len(set(where.tolist())) == count


@pytest.mark.parametrize("vocabulary", [5, SHORT + 1, 3000])
def test_a_summand_counts_as_if_it_were_added_to_every_entry(vocabulary: int) -> None:
    generator = torch.Generator().manual_seed(vocabulary)
    x_NV = torch.randn(6, vocabulary, generator=generator)
    summand_N = torch.tensor([-0.5, 1.0, 0.25, -torch.inf, -3.0, -2.9])
    values_MK, index_MK = largest(x_NV, 5, together=3, summand_N=summand_N)
    for found, where, rows in zip(values_MK, index_MK, (x_NV + summand_N[:, None]).view(2, -1), strict=True):
        assert found.tolist() == sorted(rows.tolist(), reverse=True)[:5] == rows[where].tolist()


def test_equal_entries_are_found_as_often_as_they_are_there() -> None:
    x_NV = torch.zeros(1, 2000)
    x_NV[0, [3, 253, 503, 1999]] = 1.0  # three of them at one place of different parts
    values_MK, index_MK = largest(x_NV, 6)
    assert values_MK[0].tolist() == [1.0] * 4 + [0.0] * 2
    assert sorted(index_MK[0, :4].tolist()) == [3, 253, 503, 1999]
    assert len(set(index_MK[0].tolist())) == 6


def test_few_allowed_entries_are_found_among_impossible_ones() -> None:
    x_NV = torch.full((2, 4001), -torch.inf)
    x_NV[0, 4000], x_NV[1, 17] = -3.0, -2.0
    assert largest(x_NV, 1)[1].tolist() == [[4000], [17]]
    values_MK, index_MK = largest(x_NV, 4, together=2)
    assert index_MK[0, :2].tolist() == [4001 + 17, 4000]
    assert values_MK[0].tolist() == [-2.0, -3.0, -torch.inf, -torch.inf]


def test_parts_hold_every_row_once_and_whole_groups() -> None:
    cpu = torch.device("cpu")
    for rows, vocabulary, together in ((7, 8000, 1), (1200, 8000, 5), (10, 4 * TOGETHER, 5), (3, 7, 1)):
        found = list(parts(rows, vocabulary, cpu, together=together))
        assert [row for part in found for row in range(part.start, part.stop)] == list(range(rows))
        assert all(part.start % together == 0 for part in found)
        largest_part = max(part.stop - part.start for part in found)
        assert largest_part == together or largest_part * vocabulary <= TOGETHER
    assert list(parts(1200, 8000, torch.device("cuda"))) == [slice(0, 1200)]

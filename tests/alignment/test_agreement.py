from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.alignment.agreement import Agreement, agreement, rank_correlation

values = st.lists(st.integers(0, 4), min_size=1, max_size=8)


def midranks(values: list[float]) -> list[float]:
    """The mean of the places, from 1, that equal values take when all are sorted."""
    places: dict[float, list[int]] = {}
    for place, value in enumerate(sorted(values), 1):
        places.setdefault(value, []).append(place)
    return [sum(places[value]) / len(places[value]) for value in values]


def tau_b(x: list[float], y: list[float]) -> float:
    """Concordant less discordant pairs, over the geometric mean of the pairs not tied in x and of those not in y."""
    balance = untied_x = untied_y = 0
    for i in range(len(x)):
        for j in range(i):
            untied_x += x[i] != x[j]
            untied_y += y[i] != y[j]
            if x[i] != x[j] and y[i] != y[j]:
                balance += 1 if (x[i] < x[j]) == (y[i] < y[j]) else -1
    return balance / math.sqrt(untied_x * untied_y)


@settings(max_examples=60)
@given(st.data())
def test_equals_plain_loops_with_ties(data: st.DataObject) -> None:
    x = data.draw(values)
    y = data.draw(st.lists(st.integers(0, 4), min_size=len(x), max_size=len(x)))
    found = rank_correlation(x, y)
    if len(set(x)) == 1 or len(set(y)) == 1:
        assert found is None
        return
    assert found is not None
    assert found.spearman == pytest.approx(np.corrcoef(midranks(x), midranks(y))[0, 1])
    assert found.kendall == pytest.approx(tau_b(x, y))


def test_the_same_order_is_exactly_1_and_the_opposite_minus_1() -> None:
    x = np.array([1e-300, 0.7, 3e-9, 0.2])
    assert rank_correlation(x, np.sqrt(x)) == (1.0, 1.0)
    assert rank_correlation(x, -x) == (-1.0, -1.0)


def test_rows_without_an_order_do_not_count() -> None:
    one = [[0.1, 0.2, 0.7], [0.3, 0.3, 0.4], [0.2, 0.3, 0.5]]
    other = [[0.1, 0.2, 0.7], [1 / 3, 1 / 3, 1 / 3], [0.5, 0.3, 0.2]]
    found = agreement(one, other)
    assert found == Agreement(rows=2, spearman_sum=0.0, kendall_sum=0.0)
    assert (found + agreement(one[:1], other[:1])).spearman == pytest.approx(1 / 3)
    for shape in ((0, 3), (3, 0), (4, 1)):
        nothing = agreement(np.ones(shape), np.ones(shape))
        assert nothing == Agreement()
        assert (nothing.spearman, nothing.kendall) == (None, None)


def test_matrices_of_different_pairs_raise() -> None:
    with pytest.raises(ValueError, match=r"shapes \(2, 3\) and \(2, 4\)"):
        agreement(np.ones((2, 3)), np.ones((2, 4)))

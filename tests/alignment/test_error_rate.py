from __future__ import annotations

import pytest

from nmt.alignment.error_rate import AlignmentScore, Gold, score, score_pair
from nmt.core.errors import InputError


def test_a_case_by_hand() -> None:
    # A = 4 links: two sure, one possible, one wrong; S = 3.
    gold = Gold(frozenset({(0, 0), (1, 1), (3, 3)}), frozenset({(2, 3)}))
    assert gold.possible == {(0, 0), (1, 1), (3, 3), (2, 3)}
    found = score_pair([(0, 0), (1, 1), (2, 3), (5, 5)], gold)
    rates = {"aer": 1 - (2 + 3) / (4 + 3), "precision": 3 / 4, "recall": 2 / 3, "f1": 2 * 2 / (4 + 3)}
    counts = {"sentences": 1, "predicted": 4, "sure": 3, "predicted_sure": 2, "predicted_possible": 3}
    assert found.as_dict() == pytest.approx(rates | counts)
    assert found.line() == "AER 28.6  precision 75.0  recall 66.7  F1 (sure) 57.1  [1 sentences, 4 links, 3 sure]"


def test_a_corpus_sums_counts_before_it_divides() -> None:
    gold = [Gold(frozenset({(0, 0)})), Gold(frozenset({(i, i) for i in range(9)}))]
    found = score([[(0, 0)], []], gold)
    assert (found.aer, found.recall) == (pytest.approx(1 - 2 / 11), pytest.approx(1 / 10))
    assert found == score_pair([(0, 0)], gold[0]) + score_pair([], gold[1])


@pytest.mark.parametrize(
    ("links", "sure", "possible", "expected"),
    [
        ([], set(), set(), (0, 1, 1, 1)),
        ([], {(0, 0)}, set(), (1, 1, 0, 0)),
        ([(0, 0)], set(), set(), (1, 0, 1, 0)),
        ([(0, 0)], set(), {(0, 0)}, (0, 1, 1, 0)),
    ],
)
def test_zero_denominators(links: list, sure: set, possible: set, expected: tuple) -> None:  # type: ignore[type-arg]
    found = score_pair(links, Gold(frozenset(sure), frozenset(possible)))
    assert (found.aer, found.precision, found.recall, found.f1) == expected


def test_different_numbers_of_lines_are_named() -> None:
    assert score([], []) == AlignmentScore()
    with pytest.raises(InputError, match="2 aligned sentence pairs but 1 gold lines"):
        score([[], []], [Gold()])

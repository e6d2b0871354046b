"""IBM model 1 against plain loops written from the paper."""

from __future__ import annotations

import random
from collections import defaultdict

import numpy as np
import pytest

from nmt.extras.accel.ibm_model_1 import Lexicon, learn

Pair = tuple[list[int], list[int]]
EMPTY = -1


def plain(pairs: list[Pair], iterations: int) -> dict[tuple[int, int], float]:
    together = {(s, t) for source, target in pairs for s in [EMPTY, *source] for t in target}
    p = dict.fromkeys(together, 1.0)
    for _ in range(iterations):
        count: dict[tuple[int, int], float] = defaultdict(float)
        for source, target in pairs:
            for t in target:
                total = sum(p[s, t] for s in [EMPTY, *source])
                for s in [EMPTY, *source]:
                    count[s, t] += p[s, t] / total
        of_source: dict[int, float] = defaultdict(float)
        for (s, _), each in count.items():
            of_source[s] += each
        p = {(s, t): each / of_source[s] for (s, t), each in count.items()}
    return p


def learned(pairs: list[Pair], iterations: int = 5) -> Lexicon:
    sides = zip(*pairs, strict=True)
    return learn(*([np.array(side, dtype=np.uint16) for side in each] for each in sides), iterations=iterations)


@pytest.mark.parametrize("iterations", [1, 4])
def test_probabilities_are_those_of_plain_loops(iterations: int) -> None:
    draw = random.Random(3)
    pairs = [([draw.randrange(6) for _ in range(n)], [draw.randrange(9) for _ in range(m)])
             for n, m in [(3, 2), (1, 4), (0, 2), (2, 0), (5, 5), (4, 1), (0, 0)]]  # fmt: skip
    expected = plain(pairs, iterations)
    found = learned(pairs, iterations)
    entries = dict(zip(zip(found.source_E.tolist(), found.target_E.tolist(), strict=True),
                       found.probability_E.tolist(), strict=True))  # fmt: skip
    assert entries.keys() == expected.keys()
    for key, probability in expected.items():
        assert entries[key] == pytest.approx(probability, rel=1e-9)
    assert found.source_E.tolist() == sorted(found.source_E.tolist())


def test_words_that_always_come_together_are_found() -> None:
    """Brown et al.'s point: das appears with the and with house and book, and EM finds which it stands for."""
    found = learned([([0, 1], [10, 11]), ([0, 2], [10, 12]), ([3, 1], [13, 11])], iterations=30).best(1)
    best = dict(zip(found.source_E.tolist(), found.target_E.tolist(), strict=True))
    assert {token: best[token] for token in (0, 1, 2, 3)} == {0: 10, 1: 11, 2: 12, 3: 13}


def test_the_best_are_the_most_probable_of_each() -> None:
    everything = Lexicon(np.array([0, 0, 0, 2, 2]), np.array([5, 6, 7, 5, 9]), np.array([0.2, 0.5, 0.3, 0.5, 0.5]))
    best = everything.best(2)
    assert list(zip(best.source_E.tolist(), best.target_E.tolist(), strict=True)) == [(0, 6), (0, 7), (2, 5), (2, 9)]
    assert best.probability_E.tolist() == [0.5, 0.3, 0.5, 0.5]


def test_nothing_is_learnt_of_nothing() -> None:
    assert len(learn([], []).source_E) == 0
    assert len(learned([([1], [])]).source_E) == 0

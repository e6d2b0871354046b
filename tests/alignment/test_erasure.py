"""Statistics of erased words; the whole command is tested in tests/workflows/test_align_models.py."""

from __future__ import annotations

import numpy as np
import pytest

from nmt.alignment.erasure import Erasure, probability_drops


def test_the_highest_word_is_compared_with_another_one() -> None:
    weights_IJ = np.array([[0.2, 0.7, 0.1], [1 / 3, 1 / 3, 1 / 3], [0.1, 0.2, 0.7]])
    drop_IJ = np.array([[0.1, 0.5, 0.1], [0.9, 0.9, 0.9], [0.3, 0.3, 0.2]])
    drops = list(probability_drops(weights_IJ, drop_IJ, np.random.default_rng(1)))
    assert drops == [(0.5, 0.1), (0.2, 0.3)]  # a constant row has no highest weight
    assert Erasure.of(drops) == (pytest.approx(0.35), pytest.approx(0.2), 0.5, 2)
    assert list(probability_drops(weights_IJ[:, :1], drop_IJ[:, :1], np.random.default_rng(1))) == []
    assert Erasure.of([]) == (None, None, None, 0)

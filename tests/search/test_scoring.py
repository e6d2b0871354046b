"""Scores and limits of length."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from nmt.search.scoring import Ranking, max_lengths
from tests.search.plain_search import SOURCE, beam_search
from tests.search.scripted import scripted


def test_the_length_penalty_is_gnmts() -> None:
    assert Ranking(0.6).penalty(1) == 1.0
    assert Ranking(1.0).penalty(7) == 2.0
    assert Ranking(0.0).penalty(100) == 1.0
    table = [[0.01, 0.01, 0.01, 0.45, 0.5, 0.02], [0.02, 0.02, 0.02, 0.8, 0.1, 0.04]]
    found = beam_search(scripted(table), SOURCE, torch.tensor([9, 9]), beam=3, exponent=2.0, n_best=2)[0]
    assert [each.tokens for each in found] == [(4,), ()]  # -0.67 and -0.80; by log-probability -0.92 and -0.80
    expected = (torch.tensor(0.5).log() + torch.tensor(0.8).log()).item() / ((5 + 2) / 6) ** 2
    assert next(each for each in found if each.tokens == (4,)).score == pytest.approx(expected, abs=1e-5)


def test_limits_of_length() -> None:
    assert max_lengths(np.array([3, 10]), 1.5).tolist() == [14, 25]
    assert max_lengths(np.array([3, 10]), 1.5, 12).tolist() == [13, 13]
    assert max_lengths(np.array([3, 10]), 1.5, 20).tolist() == [14, 21]

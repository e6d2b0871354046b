from __future__ import annotations

from pathlib import Path

import pytest

from nmt.core.errors import InputError
from nmt.data.config import TrainingCorpusConfig
from nmt.data.temperature import tempered_weights


def corpus(name: str, into: str, weight: float = 1.0) -> TrainingCorpusConfig:
    return TrainingCorpusConfig(pairs=Path(name), languages=("de", into), weight=weight)


def test_corpora_of_a_direction_share_its_temperature() -> None:
    """Therefore two corpora of one direction keep their weights."""
    assert tempered_weights([corpus("a", "en"), corpus("b", "en", 2.0)], [120, 40], 10) == pytest.approx((1.0, 2.0))


def test_shares_are_by_the_formula_and_a_direction_without_pairs_keeps_its_weight() -> None:
    corpora = [corpus("a", "en"), corpus("b", "fr", 2.0), corpus("c", "cs", 3.0)]
    powers = 120**0.25, 80**0.25
    expected = [200 * powers[0] / sum(powers) / 120, 200 * powers[1] / sum(powers) / 40, 3.0]
    assert tempered_weights(corpora, [120, 40, 0], 4) == pytest.approx(expected)
    assert tempered_weights(corpora, [120, 40, 0], 1) == (1.0, 2.0, 3.0)


def test_a_temperature_that_repeats_too_often_is_refused() -> None:
    with pytest.raises(InputError, match=r"temperature: 100 shows each pair of small .* times an epoch"):
        tempered_weights([corpus("large", "en"), corpus("small", "cs")], [5000, 1], 100)

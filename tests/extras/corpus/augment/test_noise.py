"""Noise on sentences, against its definition."""

from __future__ import annotations

import numpy as np

from nmt.extras.corpus.augment.noise import BLANK, blank_words, drop_words, noised, shuffle_words

WORDS = [f"w{number}" for number in range(10_000)]


def test_words_move_by_three_places_at_most_and_each_distance_occurs() -> None:
    random = np.random.default_rng(1)
    moves = set()
    for _ in range(200):
        order = [int(word[1:]) for word in shuffle_words(WORDS[:12], random)]
        assert sorted(order) == list(range(12))
        moves |= {place - number for place, number in enumerate(order)}
    assert moves == set(range(-3, 4))


def test_shares_are_those_asked_for() -> None:
    """Within four standard deviations of a binomial."""
    random = np.random.default_rng(1)
    within = 4 * (0.1 * 0.9 * len(WORDS)) ** 0.5
    kept = drop_words(WORDS, random)
    assert abs(len(WORDS) - len(kept) - 0.1 * len(WORDS)) < within
    assert kept == sorted(set(kept), key=lambda word: int(word[1:]))
    blanked = blank_words(WORDS, random)
    assert abs(blanked.count(BLANK) - 0.1 * len(WORDS)) < within
    assert all(word in (BLANK, before) for word, before in zip(blanked, WORDS, strict=True))
    assert all(drop_words(["a"], random) == ["a"] for _ in range(100))


def test_noise_depends_on_the_seed_only() -> None:
    sentence = " ".join(WORDS[:20])
    first, again, other = (noised(sentence, np.random.default_rng(seed)) for seed in (1, 1, 2))
    assert first == again
    assert first not in (other, sentence)
    assert noised("猫は小さい。", np.random.default_rng(1)) == "猫は小さい。"

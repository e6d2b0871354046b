"""Draws, against the probabilities of the model."""

from __future__ import annotations

import itertools
import math
from collections import Counter

import numpy as np
import torch

from nmt.search.sampling import Sampling, truncated
from nmt.search.scoring import Ranking
from nmt.search.sequential import greedy_search
from tests.models.variants import make
from tests.search.plain_search import EOS, MODELS, SOURCES, Tokens, each_model, log_prob, padded, searched


def test_draws_have_the_probabilities_of_the_model() -> None:
    """Chi-square over all short hypotheses and the rest, five standard deviations."""
    model = make(MODELS["rnn"])
    source, draws = SOURCES[1], 4000
    (found,) = searched(Sampling(EOS, Ranking(), draws, seed=3), model, torch.tensor([source]), torch.tensor([30]))
    counts = Counter(each.tokens for each in found)
    expected = {
        tokens: draws * math.exp(log_prob(model, source, tokens))
        for size in range(3)
        for tokens in itertools.product([0, 1, 2, 4, 5], repeat=size)
    }
    expected = {tokens: count for tokens, count in expected.items() if count >= 5}
    rest = draws - sum(expected.values())
    seen = sum(counts[tokens] for tokens in expected)
    chi_square = sum((counts[tokens] - count) ** 2 / count for tokens, count in expected.items())
    chi_square += (draws - seen - rest) ** 2 / rest
    freedom = len(expected)
    assert freedom >= 5
    assert chi_square <= freedom + 5 * (2 * freedom) ** 0.5


@each_model
def test_a_draw_depends_on_seed_and_sentence_alone(name: str) -> None:
    model = make(MODELS[name])

    def draw(sources: list[list[int]], *, count: int = 3, seed: int = 1) -> list[list[Tokens]]:
        sampling = Sampling(EOS, Ranking(), count, seed=seed, temperature=1.5)
        found = searched(sampling, model, padded(sources), torch.full((len(sources),), 8))
        return [[each.tokens for each in hypotheses] for hypotheses in found]

    together = draw(SOURCES)
    assert draw(SOURCES[::-1]) == together[::-1]
    assert [draw([source])[0] for source in SOURCES] == together
    assert [each[:2] for each in draw(SOURCES, count=2)] == [each[:2] for each in together]
    assert [each[:3] for each in draw(SOURCES, count=9)] == together
    assert draw(SOURCES, seed=2) != together
    assert len({*together[0], *draw(SOURCES, count=20)[0]}) > 1


def test_little_heat_and_one_choice_are_greedy_search() -> None:
    model = make(MODELS["rnn"])
    (greedy, *_) = searched(greedy_search(EOS, Ranking()), model)
    for settings in ({"temperature": 1e-3}, {"top_k": 1}, {"top_p": 1e-9}):
        (found, *_) = searched(Sampling(EOS, Ranking(), 2, seed=1, **settings), model)  # type: ignore[arg-type]
        assert {each.tokens for each in found} == {greedy[0].tokens}


def test_truncation_against_a_loop() -> None:
    random = np.random.default_rng(5)
    for _ in range(200):
        logits = random.normal(size=7) * 2
        top_k, top_p = int(random.integers(1, 9)), float(random.uniform(0.05, 1.0))
        order = np.argsort(-logits)[:top_k]
        probability = np.exp(logits[order]) / np.exp(logits[order]).sum()
        kept, total = set(), 0.0
        for token, each in zip(order.tolist(), probability.tolist(), strict=True):
            if total < top_p:
                kept.add(token)
            total += each
        found = truncated(torch.tensor(logits)[None], top_k=top_k, top_p=top_p)[0]
        assert set(found.isfinite().nonzero()[:, 0].tolist()) == kept

"""Repetitions, against their definition in plain loops and against models whose every probability is written down."""

from __future__ import annotations

import math

import pytest
import torch

from nmt.core.device import Compute
from nmt.search.beam import BeamSearch
from nmt.search.config import SearchConfig
from nmt.search.engine import TorchEngine
from nmt.search.repetition import NoRepetition, repeated_tokens
from nmt.search.scoring import Ranking
from nmt.search.sequential import greedy_search
from tests.models.variants import make
from tests.search.plain_search import EOS, MODELS, Tokens, agrees, each_model, searched
from tests.search.scripted import scripted


def completes(tokens: Tokens) -> bool:
    """Whether the tokens end in a sequence of up to 8 that stands twice."""
    return any(tokens[-size:] == tokens[-2 * size : -size] for size in range(1, 9) if len(tokens) >= 2 * size)


@each_model
def test_nothing_is_said_twice_in_a_row(name: str) -> None:
    def allowed(tokens: Tokens, token: int) -> bool:
        return token == EOS or not completes((*tokens, token))

    repeats = 0
    for seed in range(3):
        model = make(MODELS[name], seed=seed)
        agrees(model, BeamSearch(EOS, Ranking(1.0), 3, n_best=3), allowed, processors=[NoRepetition()])
        for (best,) in searched(greedy_search(EOS, Ranking()), model):
            repeats += repeated_tokens(best.tokens)
    assert repeats > 0, "the test would pass without the processor"


LONG = "abcdefghi"
"""More than the longest sequence that is looked for."""


@pytest.mark.parametrize(
    ("text", "count"),
    [("", 0), ("abcab", 0), ("aa", 1), ("aaa", 2), ("ababc", 1), ("ababab", 3), ("abcdefgh" * 2, 1), (LONG * 2, 0)],
)
def test_repeated_tokens_are_counted(text: str, count: int) -> None:
    assert repeated_tokens(tuple(map(ord, text))) == count


@pytest.mark.parametrize("beam", [1, 2])
def test_a_repetition_stays_if_it_is_more_probable_by_the_margin_or_its_source_has_one(beam: int) -> None:
    """4 4 has the probability 0.9 x 0.6 and 4 5 has 0.9 x 0.4."""
    tiny = 1e-9
    model = scripted([[tiny] * 4 + [0.9, 0.1], [tiny] * 4 + [0.6, 0.4], [tiny] * 3 + [1.0, tiny, tiny]])
    engine = TorchEngine(model, Compute(torch.device("cpu"), "float32"))
    for source, margin, expected in (
        ([4], None, (4, 4)),
        ([4], math.log(1.5) - 0.01, (4, 4)),
        ([4], math.log(1.5) + 0.01, (4, 5)),
        ([5, 5], 9.0, (4, 4)),
    ):
        config = SearchConfig(beam=beam, length_penalty=0.0, repetition_margin=margin)
        # other sentences stay as they are, in their places
        found = engine.translate_ids([[5, 5], source, [5, 5]], config)
        assert [best.tokens for best, *_ in found] == [(4, 4), expected, (4, 4)]
        assert found[1][0].log_prob == pytest.approx(math.log(0.9 * (0.6 if expected == (4, 4) else 0.4)), abs=1e-5)


def test_of_several_translations_the_first_says_nothing_twice() -> None:
    tiny = 1e-9
    model = scripted([[tiny] * 4 + [0.9, 0.1], [tiny] * 4 + [0.6, 0.4], [tiny] * 3 + [1.0, tiny, tiny]])
    engine = TorchEngine(model, Compute(torch.device("cpu"), "float32"))
    config = SearchConfig(beam=3, n_best=3, length_penalty=0.0, repetition_margin=1.0)
    (found,) = engine.translate_ids([[4]], config)
    assert [hypothesis.tokens for hypothesis in found] == [(4, 5), (4, 4), (5, 4)]

"""Batches, which change no result."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import count
from typing import Any

import pytest
import torch

from nmt.core.device import Compute
from nmt.search.config import SamplingConfig, SearchConfig
from nmt.search.engine import TorchEngine
from tests.models.variants import make
from tests.search.plain_search import MODELS
from tests.search.scripted import scripted


def test_decode_keeps_the_order_whatever_the_batches() -> None:
    model = scripted([[0.01, 0.01, 0.01, 0.01, 0.95, 0.01]])
    sources = [[4] * length for length in (3, 1, 7, 2, 9, 1)]
    for tokens in (1, 8, 1000):
        config = SearchConfig(beam=2, max_length_ratio=1.0, batch_tokens=tokens, length_penalty=9.0)
        found = TorchEngine(model, Compute(torch.device("cpu"), "float32")).translate_ids(sources, config)
        # the limit is the source's length, end included, and ten more; the end is the last
        assert [len(best.tokens) for best, *_ in found] == [len(source) + 1 + 10 - 1 for source in sources]


@pytest.mark.parametrize("given", [{"prefixes": [[5], []]}, {"constraints": [[((5,),)], []]}])
def test_an_improbable_word_that_is_given_makes_no_translation_longer(given: dict[str, Any]) -> None:
    engine = TorchEngine(
        scripted([[0.01, 0.01, 0.02, 0.01, 0.75, 0.2], [0.01, 0.01, 0.01, 0.4, 0.56, 0.01]]),
        Compute(torch.device("cpu"), "float32"),
    )
    usual, large = (SearchConfig(beam=2, length_penalty=x, repetition_margin=None) for x in (1.0, 9.0))
    with_word, without = engine.translate_ids([[4], [4]], large, **given)
    assert len(with_word[0].tokens) < 4 < len(without[0].tokens)
    assert [with_word] == engine.translate_ids([[4]], usual, **{key: words[:1] for key, words in given.items()})
    assert [without] == engine.translate_ids([[4]], large)


SEARCH_CONFIGS = {
    "greedy": SearchConfig(beam=1),
    "draws": SearchConfig(sampling=SamplingConfig(seed=4), n_best=3),
    "beam": SearchConfig(beam=3, n_best=3),
    "without padding": SearchConfig(beam=2, suppress_padding="renormalized"),
}


@pytest.mark.parametrize("kind", list(MODELS))
@pytest.mark.parametrize("search", list(SEARCH_CONFIGS))
def test_a_search_may_be_interrupted_by_another_or_ended_before_any_step(kind: str, search: str) -> None:
    config, sources = SEARCH_CONFIGS[search], [[4, 5, 4], [5]]
    engine = TorchEngine(make(MODELS[kind]), Compute(torch.device("cpu"), "float32"))
    expected, others = engine.translate_ids(sources, config), engine.translate_ids([[5, 5]], config)
    within: list[object] = []
    interrupted = replace(engine, on_step=lambda: within.append(engine.translate_ids([[5, 5]], config)))
    assert interrupted.translate_ids(sources, config) == expected
    assert within == [others] * len(within)
    assert len(within) > 1

    def end() -> None:
        if next(steps) == 2:
            raise EOFError

    steps = count(1)
    with pytest.raises(EOFError):
        replace(engine, on_step=end).translate_ids(sources, config)
    assert next(steps) == 3


@pytest.mark.parametrize("beam", [1, 2])
def test_suppressed_padding_is_never_chosen_and_its_probability_stays_or_is_shared_out(beam: int) -> None:
    model = scripted([[0.5, 1e-9, 1e-9, 0.1, 0.4, 1e-9], [0.5, 1e-9, 1e-9, 0.5, 1e-9, 1e-9]])
    scores = {}
    for kind in (None, "plain", "renormalized"):
        config = SearchConfig(beam=beam, suppress_padding=kind, length_penalty=0.0, max_length=3)
        ((best, *_),) = TorchEngine(model, Compute(torch.device("cpu"), "float32")).translate_ids([[4]], config)
        assert (0 in best.tokens) == (kind is None)
        scores[kind] = best.log_prob
    assert math.exp(scores["plain"]) == pytest.approx(0.4 * 0.5)
    assert math.exp(scores["renormalized"]) == pytest.approx(0.8 * 1.0)


@pytest.mark.parametrize("kind", ["greedy", "draws", "beam"])
def test_no_translation_is_empty_and_the_score_stays_that_of_the_model(kind: str) -> None:
    model = scripted([[1e-9, 1e-9, 1e-9, 0.999, 0.001, 1e-9], [1e-9, 1e-9, 1e-9, 1.0, 1e-9, 1e-9]])
    engine = TorchEngine(model, Compute(torch.device("cpu"), "float32"))
    ((best, *_),) = engine.translate_ids([[4]], SEARCH_CONFIGS[kind].model_copy(update={"n_best": 1}))
    assert best.tokens == (4,)
    assert best.log_prob == pytest.approx(math.log(0.001), abs=1e-3)

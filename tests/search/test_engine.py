"""Batches, which change no result."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import count

import pytest
import torch

from nmt.core.device import SYNC_INTERVAL, Compute
from nmt.extras.decoding.constrained_search import ConstrainedBeamSearch
from nmt.nn import output
from nmt.search.beam import BeamSearch
from nmt.search.config import SamplingConfig, SearchConfig
from nmt.search.engine import TorchEngine
from nmt.search.hypothesis import Hypothesis, Search
from nmt.search.logits_processors import LogitsProcessors, Suppress
from nmt.search.sampling import Sampling
from nmt.search.scoring import Ranking
from nmt.search.sequential import greedy_search
from tests.models.variants import make
from tests.search.plain_search import EOS, LIMIT_B, MODELS, SOURCES, padded
from tests.search.scripted import scripted

SEARCHES: dict[str, Search] = {
    "greedy": greedy_search(EOS, Ranking(1.0)),
    "draws": Sampling(EOS, Ranking(1.0), count=3, seed=4),
    "beam": BeamSearch(EOS, Ranking(1.0, "gnmt", 0.3), 3, n_best=3),
    "groups": BeamSearch(EOS, Ranking(1.0), 4, n_best=2, groups=2),
    "constrained": ConstrainedBeamSearch(EOS, Ranking(1.0), 4, phrases=((((4,),),), (), (((5, 4), (1,)), ((4,),)))),
}


def test_decode_keeps_the_order_whatever_the_batches() -> None:
    model = scripted([[0.01, 0.01, 0.01, 0.01, 0.95, 0.01]])
    sources = [[4] * length for length in (3, 1, 7, 2, 9, 1)]
    for tokens in (1, 8, 1000):
        config = SearchConfig(beam=2, max_length_ratio=1.0, batch_tokens=tokens, length_penalty=9.0)
        found = TorchEngine(model, Compute(torch.device("cpu"), "float32")).translate_ids(sources, config)
        # the limit is the source's length, end included, and ten more; the end is the last
        assert [len(best.tokens) for best, *_ in found] == [len(source) + 1 + 10 - 1 for source in sources]


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


@pytest.mark.parametrize("kind", list(SEARCHES))
def test_results_do_not_depend_on_the_rows_whose_logits_exist_together(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = make(MODELS["transformer"])

    def search() -> list[tuple[Hypothesis, ...]]:
        processors = LogitsProcessors(LIMIT_B, eos=EOS, prefixes=[(4,), (), (5,)], processors=[Suppress(EOS, before=3)])
        return SEARCHES[kind](model, padded(SOURCES), processors)

    expected = search()
    monkeypatch.setitem(SYNC_INTERVAL, "cpu", 3)  # fewer checks, as on a GPU
    monkeypatch.setattr(output, "MAX_LOGITS", 8)
    assert len(output.row_parts(torch.zeros(3), 6)) == 3  # one row, or one sentence, at a time
    for hypotheses, others in zip(search(), expected, strict=True):
        assert [each.tokens for each in hypotheses] == [each.tokens for each in others]
        assert [each.score for each in hypotheses] == pytest.approx([each.score for each in others], abs=1e-5)


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

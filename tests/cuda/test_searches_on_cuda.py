"""Searches on a CUDA device: the hypotheses and scores of the CPU, and hardly a wait for the device."""

from __future__ import annotations

import copy
import math
from typing import Any

import numpy as np
import pytest
import torch

from nmt.alignment.forced import forced_weights
from nmt.alignment.gradient import gradient_weights
from nmt.alignment.request import AlignmentRequest
from nmt.core.device import Compute
from nmt.data.vocabulary import EOS
from nmt.evaluation.perplexity import token_log_probs
from nmt.extras.aligner import layer as alignment_layer
from nmt.extras.decoding.wait_k import WaitKModel
from nmt.models.ensemble import Ensemble
from nmt.search.config import ConsensusConfig, SamplingConfig, SearchConfig
from nmt.search.engine import TorchEngine
from tests.cuda.on_device import BOTH, CPU, ON_DEVICE, RNN, THERE, each_side, only_on_a_gpu, pair_of, waits
from tests.models.variants import kinds, make

pytestmark = pytest.mark.cuda

SOURCES = [[4, 5, 1, 4], [], [5], [5, 5, 4], [1, 1, 4, 4, 5, 5], [], [4, 5]]
TARGETS = [[4, 5], [], [5, 1, 4], [4], [5, 5, 4], [1], []]
PREFIXES = [[4], [], [], [], [5, 4], [1], []]
PHRASES = [(((4,),),), (), (), (((5, 4), (1,)), ((4,),)), (), (((1,),),), ()]

BEAM = SearchConfig(beam=3, n_best=2, coverage_penalty=0.2, max_length=9)
SEARCHES = {
    "greedy": SearchConfig(beam=1, max_length=9),
    "beam": BEAM,
    "average length": SearchConfig(beam=5, length_normalization="average", max_length=9),
    "repetitions": BEAM.model_copy(update={"no_repeat": 2, "min_length": 3}),
    "without padding": BEAM.model_copy(update={"suppress_padding": "renormalized"}),
    "groups": SearchConfig(beam=4, groups=2, max_length=9),
    "draws": SearchConfig(sampling=SamplingConfig(seed=3, top_k=4, top_p=0.9), n_best=2, max_length=9),
    "consensus": SearchConfig(consensus=ConsensusConfig(samples=4), max_length=9),
    "small batches": BEAM.model_copy(update={"batch_tokens": 20}),
}


def found(model: Any, compute: Compute, config: SearchConfig, **restrictions: Any) -> list[Any]:
    engine = TorchEngine(model, compute)
    hypotheses = engine.translate_ids(SOURCES, config, **restrictions)
    return [(each.tokens, pytest.approx(each.score, abs=1e-3, nan_ok=True)) for of_one in hypotheses for each in of_one]


@pytest.mark.parametrize("name", ["greedy", "beam"])
@pytest.mark.parametrize("config", list(kinds()))
def test_every_kind_of_model_translates_as_on_the_cpu(config: dict[str, Any], name: str) -> None:
    model, there = pair_of(make(config))
    assert found(there, ON_DEVICE, SEARCHES[name]) == found(model, CPU, SEARCHES[name])


@each_side
@pytest.mark.parametrize("name", [*SEARCHES, "phrases", "prefixes"])
def test_a_search_is_that_of_the_cpu(config: dict[str, Any], name: str) -> None:
    model, there = pair_of(make(config))
    restrictions: dict[str, Any] = {"phrases": {"constraints": PHRASES}, "prefixes": {"prefixes": PREFIXES}}.get(
        name, {}
    )
    search = SEARCHES.get(name, BEAM)
    assert found(there, ON_DEVICE, search, **restrictions) == found(model, CPU, search, **restrictions)


@pytest.mark.parametrize("name", ["greedy", "beam", "draws"])
def test_an_ensemble_translates_as_on_the_cpu(name: str) -> None:
    pairs = [pair_of(make(config, seed=seed)) for config, seed in ((RNN, 1), (BOTH, 2), (RNN, 3))]
    expected, there = (Ensemble([pair[side] for pair in pairs]) for side in (0, 1))
    assert found(there, ON_DEVICE, SEARCHES[name]) == found(expected, CPU, SEARCHES[name])


@each_side
def test_wait_k_is_that_of_the_cpu(config: dict[str, Any]) -> None:
    model, there = pair_of(make(config))
    begins_V = torch.tensor([False, True, False, True, True, False])
    never_V = torch.zeros_like(begins_V)
    expected = WaitKModel(model, 2, begins_V, begins_V, never_V)
    waiting = WaitKModel(there, 2, *(each.to(THERE) for each in (begins_V, begins_V, never_V)))
    assert found(waiting, ON_DEVICE, SEARCHES["greedy"]) == found(expected, CPU, SEARCHES["greedy"])


@each_side
@pytest.mark.parametrize("precision", ["bfloat16", pytest.param("float16", marks=only_on_a_gpu)])
@pytest.mark.parametrize("name", ["greedy", "beam"])
def test_a_search_in_half_precision_gives_probabilities_near_those_of_float32(
    config: dict[str, Any], precision: Any, name: str
) -> None:
    model, there = pair_of(make(config, scale=1.0))
    engine = TorchEngine(there, Compute(THERE, precision))
    best = [of_one[0] for of_one in engine.translate_ids(SOURCES, SEARCHES[name])]
    scored = [row for row, each in enumerate(best) if not math.isnan(each.log_prob)]
    log_p = token_log_probs(
        model, [SOURCES[row] for row in scored], [best[row].tokens for row in scored], CPU, batch_tokens=40
    )
    assert len(scored) == len(SOURCES)
    for row, each in zip(scored, log_p, strict=True):
        if len(best[row].tokens) < 9:  # else cut, without end-of-sentence
            assert best[row].log_prob == pytest.approx(float(each.sum()), abs=0.15 * (1 + len(best[row].tokens)))


@each_side
def test_alignments_and_scores_are_those_of_the_cpu(config: dict[str, Any]) -> None:
    model, there = pair_of(make(config))
    torch.manual_seed(2)
    layer = alignment_layer.AlignmentLayer(model.encoder.size, model.decoder.readout_size, width=4).eval()
    for parameter in layer.parameters():
        torch.nn.init.normal_(parameter)

    def numbers(model: Any, layer: Any, compute: Compute) -> list[Any]:
        views = [
            AlignmentRequest("gradient"),
            AlignmentRequest("input-x-gradient"),
            AlignmentRequest("input-x-gradient", magnitude="signed"),
        ]
        by_gradient = gradient_weights(model, SOURCES, TARGETS, compute, requests=views, batch_tokens=20)
        learnt = alignment_layer.weights(layer, model, SOURCES, TARGETS, compute, batch_tokens=20)
        forced = forced_weights(model, SOURCES, TARGETS, compute, batch_tokens=20)
        log_p = token_log_probs(model, SOURCES, TARGETS, compute, batch_tokens=20)
        return [each for of_pair in (*by_gradient, *learnt, forced) for each in of_pair] + list(log_p)

    there_layer = copy.deepcopy(layer).to(THERE)
    for one, other in zip(numbers(there, there_layer, ON_DEVICE), numbers(model, layer, CPU), strict=True):
        np.testing.assert_allclose(np.asarray(one), np.asarray(other), atol=1e-3)


@each_side
@pytest.mark.parametrize("name", [*SEARCHES, "phrases"])
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_a_search_waits_once_in_eight_steps(config: dict[str, Any], name: str, precision: Any) -> None:
    model = make(config)
    with torch.no_grad():
        if model.output.bias_V is not None:
            model.output.bias_V[EOS] = -30.0
    _, there = pair_of(model)
    steps, run = 0, there.step

    def counted(*arguments: Any) -> Any:
        nonlocal steps
        steps += 1
        return run(*arguments)

    there.step = counted  # type: ignore[method-assign]
    search = SEARCHES.get(name, BEAM).model_copy(
        update={"max_length": 40, "max_length_ratio": 40.0, "batch_tokens": 8192}
    )
    restrictions: dict[str, Any] = {"constraints": PHRASES} if name == "phrases" else {}
    compute = Compute(THERE, precision)
    found(there, compute, search, **restrictions)  # to warm up
    steps = 0
    with waits() as waited:
        found(there, compute, search, **restrictions)
    assert steps > 20
    others = 1 + (name in ("draws", "consensus"))  # the result; and what is drawn depends on the source's tokens
    assert len(waited) <= math.ceil(steps / 8) + others, "\n".join(waited)

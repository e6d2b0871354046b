"""Searches and alignments on a device: the hypotheses and scores of the CPU, and hardly a wait for the device."""

from __future__ import annotations

import copy
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from nmt.alignment.forced import forced_weights
from nmt.alignment.gradient import gradient_weights
from nmt.alignment.request import AlignmentRequest
from nmt.core.device import Compute
from nmt.data.vocabulary import EOS
from nmt.evaluation.perplexity import token_log_probs
from nmt.extras.aligner import layer as alignment_layer
from nmt.extras.decoding.wait_k import WaitKModel, WordStarts
from nmt.models.ensemble import Ensemble
from nmt.search.config import ConsensusConfig, SamplingConfig, SearchConfig
from nmt.search.engine import TorchEngine
from tests.cuda import on_device
from tests.cuda.on_device import BOTH, CPU, GPU, PRETENDED, PREVIOUS, RNN, SOURCES, THERE, Device
from tests.cuda.pretended import on_cuda
from tests.models.variants import kinds, make

PREFIXES = [[4], [], [], [], [5, 4], [1], []]
PHRASES = [(((4,),),), (), (), (((5, 4), (1,)), ((4,),)), (), (((1,),),), ()]

BEAM = SearchConfig(beam=3, n_best=2, coverage_penalty=0.2, max_length=9, repetition_margin=None)
SEARCHES = {
    "greedy": SearchConfig(beam=1, max_length=9, repetition_margin=None),
    "beam": BEAM,
    "repetitions": BEAM.model_copy(update={"no_repeat": 2, "min_length": 3}),
    "said twice": BEAM.model_copy(update={"repetition_margin": 3.0}),
    "groups": SearchConfig(beam=4, groups=2, max_length=9),
    "draws": SearchConfig(sampling=SamplingConfig(seed=3, top_k=4, top_p=0.9), n_best=2, max_length=9),
    "phrases": BEAM,
}
MORE = {
    "average length": SearchConfig(beam=5, length_normalization="average", max_length=9),
    "without padding": BEAM.model_copy(update={"suppress_padding": "renormalized"}),
    "consensus": SearchConfig(consensus=ConsensusConfig(samples=4), max_length=9),
    "small batches": BEAM.model_copy(update={"batch_tokens": 20}),
}
"""Searches whose operations on a device are those of the others."""

each_search = pytest.mark.parametrize(
    "name", [*SEARCHES, *(pytest.param(name, marks=on_device.on_a_gpu) for name in MORE)]
)


def found(model: Any, compute: Compute, config: SearchConfig, **restrictions: Any) -> list[Any]:
    hypotheses = TorchEngine(model, compute).translate_ids(SOURCES, config, **restrictions)
    return [(each.tokens, each.score) for of_one in hypotheses for each in of_one]


def assert_alike(device: Device, model: Any, there: Any, config: SearchConfig, **restrictions: Any) -> list[str]:
    """Asserts that a search on the device finds what the one on the CPU does; returns the host's waits."""
    expected = found(model, CPU, config, **restrictions)
    with device.in_use() as waited:
        hypotheses = found(there, device.compute, config, **restrictions)
    assert hypotheses == [(tokens, pytest.approx(score, abs=device.atol, nan_ok=True)) for tokens, score in expected]
    return waited


@on_device.each_device
@pytest.mark.parametrize("name", ["greedy", "beam"])
@pytest.mark.parametrize("config", [*kinds(), pytest.param(on_device.MARGINAL, id="marginal")])
def test_every_kind_of_model_translates_as_on_the_cpu(config: dict[str, Any], name: str, device: Device) -> None:
    assert_alike(device, *device.pair_of(make(config)), SEARCHES[name])


@on_device.each_device_and_side
@each_search
def test_a_search_is_that_of_the_cpu(device: Device, config: dict[str, Any], name: str) -> None:
    pair, search = device.pair_of(make(config)), (SEARCHES | MORE)[name]
    if name == "phrases":
        assert_alike(device, *pair, search, constraints=PHRASES)
        return
    assert_alike(device, *pair, search, prefixes=PREFIXES)
    if not device.is_pretended:
        assert_alike(device, *pair, search)


@on_device.on_a_gpu
@pytest.mark.parametrize("name", ["greedy", "beam", "draws"])
def test_an_ensemble_translates_as_on_the_cpu(name: str) -> None:
    pairs = [GPU.pair_of(make(config, seed=seed)) for config, seed in ((RNN, 1), (BOTH, 2), (RNN, 3))]
    assert_alike(GPU, *(Ensemble([pair[side] for pair in pairs]) for side in (0, 1)), SEARCHES[name])


@on_device.each_device_and_side
def test_wait_k_is_that_of_the_cpu(device: Device, config: dict[str, Any]) -> None:
    model, there = device.pair_of(make(config))
    begins_V = torch.tensor([False, True, False, True, True, False])
    masks = begins_V, begins_V, torch.zeros_like(begins_V)
    with device.in_use():
        waiting = WaitKModel(there, 2, WordStarts(*(each.to(device.compute.device) for each in masks)))
    waited = assert_alike(device, WaitKModel(model, 2, WordStarts(*masks)), waiting, SEARCHES["greedy"])
    assert not device.is_pretended or len(waited) <= 2 * 10 + 3, "\n".join(waited)


@on_device.on_a_gpu
@on_device.each_side
@pytest.mark.parametrize("precision", ["bfloat16", pytest.param("float16", marks=on_device.only_on_a_gpu)])
@pytest.mark.parametrize("name", ["greedy", "beam"])
def test_a_search_in_half_precision_gives_probabilities_near_those_of_float32(
    config: dict[str, Any], precision: Any, name: str
) -> None:
    model, there = GPU.pair_of(make(config, scale=1.0))
    engine = TorchEngine(there, Compute(THERE, precision))
    best = [of_one[0] for of_one in engine.translate_ids(SOURCES, SEARCHES[name])]
    log_p = token_log_probs(model, SOURCES, [each.tokens for each in best], CPU, batch_tokens=40)
    for one, expected in zip(best, log_p, strict=True):
        assert not math.isnan(one.log_prob)
        if len(one.tokens) < 9:  # else cut, without end-of-sentence
            assert one.log_prob == pytest.approx(float(expected.sum()), abs=0.15 * (1 + len(one.tokens)))


@on_device.each_device_and_side
def test_alignments_and_scores_are_those_of_the_cpu(device: Device, config: dict[str, Any]) -> None:
    model, there = device.pair_of(make(config))
    torch.manual_seed(2)
    layer = alignment_layer.AlignmentLayer(model.encoder.size, model.decoder.readout_size, width=4).eval()
    for parameter in layer.parameters():
        nn.init.normal_(parameter)
    copied = copy.deepcopy(layer)
    product = AlignmentRequest("input-x-gradient")
    requests = [AlignmentRequest("gradient"), product, replace(product, magnitude="signed")]

    def numbers(model: Any, layer: Any, compute: Compute) -> list[Any]:
        by_gradient = gradient_weights(model, *on_device.PAIRS, compute, requests=requests, batch_tokens=20)
        learnt = alignment_layer.weights(layer, model, *on_device.PAIRS, compute, batch_tokens=20)
        forced = forced_weights(model, *on_device.PAIRS, compute, batch_tokens=20)
        log_p = token_log_probs(model, *on_device.PAIRS, compute, batch_tokens=20)
        return [each for of_pair in (*by_gradient, *learnt, forced) for each in of_pair] + list(log_p)

    expected = numbers(model, layer, CPU)
    with device.in_use():
        results = numbers(there, on_cuda(copied) if device.is_pretended else copied.to(THERE), device.compute)
    for one, other in zip(results, expected, strict=True):
        np.testing.assert_allclose(np.asarray(one), np.asarray(other), atol=device.atol)


LONG = {"max_length": 40, "max_length_ratio": 40.0, "batch_tokens": 8192}


@each_search
@pytest.mark.parametrize(
    ("device", "config", "ends", "precision"),
    [
        pytest.param(PRETENDED, PREVIOUS, True, "float32", id="pretended-ends early"),
        pytest.param(PRETENDED, PREVIOUS, False, "float32", id="pretended-ends late"),
        *(
            pytest.param(GPU, config, False, precision, id=f"gpu-{kind}-{precision}", marks=on_device.on_a_gpu)
            for kind, config in {"rnn": RNN, "transformer": BOTH}.items()
            for precision in ("float32", "bfloat16")
        ),
    ],
)
def test_a_search_waits_for_the_device_once_in_eight_steps(
    device: Device, config: dict[str, Any], ends: bool, precision: Any, name: str
) -> None:
    model = make(config)
    if not ends:
        with torch.no_grad():
            model.output.bias_V[EOS] = -30.0
    _, there = device.pair_of(model)
    steps, run = 0, there.step

    def counted(*arguments: Any) -> Any:
        nonlocal steps
        steps += 1
        return run(*arguments)

    there.step = counted
    search = (SEARCHES | MORE)[name].model_copy(update=LONG)
    restrictions: dict[str, Any] = {"constraints": PHRASES} if name == "phrases" else {}
    compute = Compute(device.compute.device, precision)
    if not device.is_pretended:
        found(there, compute, search, **restrictions)  # to warm up
    steps = 0
    with device.in_use() as waited:
        found(there, compute, search, **restrictions)
    assert ends or steps > (30 if device.is_pretended else 20)
    others = 1 + (name in ("draws", "consensus"))  # the result; and what is drawn depends on the source's tokens
    assert len(waited) <= math.ceil(steps / 8) + others, "\n".join(waited)

"""The attention section: what it takes, and what it says of what it does not take."""

from __future__ import annotations

from functools import partial

import pytest

from nmt.attention.config import AttentionConfig
from nmt.attention.registry import SCORES, WEIGHTS
from nmt.config.structure import dump
from tests.models import configs

read = partial(configs.read, section=AttentionConfig)
fault = partial(configs.fault, section=AttentionConfig)


@pytest.mark.parametrize("score", list(SCORES))
@pytest.mark.parametrize("weights", list(WEIGHTS))
def test_every_score_goes_with_every_weighting(score: str, weights: str) -> None:
    config = read(f"score: {score}\nweights: {weights}")
    assert (config.score, config.weights) == (SCORES[score](), WEIGHTS[weights]())
    assert not config.is_none
    assert read(dump(config)) == config


def test_the_default_is_bahdanaus() -> None:
    assert read("{}") == read("score: additive\nweights: softmax")


def test_a_name_stands_for_all_its_defaults() -> None:
    assert read("score: gaussian") == read("score: {kind: gaussian, bandwidth: null, learned: true}")


def test_no_attention() -> None:
    assert read("score: none").is_none
    assert read("score: {kind: none}\nweights: softmax").is_none


@pytest.mark.parametrize("score", ["none", "location"])
def test_keys_that_nothing_reads_are_not_projected(score: str) -> None:
    message = fault(f"score: {score}\nkey_size: 8")
    assert message.endswith(f"key_size: score: {score} reads no keys; leave key_size out")


@pytest.mark.parametrize("weights", ["hard", "{kind: local_m, width: 3}", "sparsemax"])
def test_no_attention_has_nothing_to_weigh(weights: str) -> None:
    message = fault(f"score: none\nweights: {weights}")
    kind = read(f"weights: {weights}").weights.kind
    assert message.startswith("config.yaml")
    assert f"score: none leaves weights: {kind} nothing to weigh; leave weights out" in message


def test_an_unknown_name_lists_the_choices() -> None:
    message = fault("score: bilinear")
    assert message.startswith("config.yaml:1: score: text 'bilinear' is not a choice")
    assert f"the choices are {', '.join(['none', *SCORES])}" in message
    message = fault("weights: softmacks")
    assert "did you mean 'softmax'?" in message
    assert f"the choices are {', '.join(WEIGHTS)}" in message


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("score: {kind: additive, size: 0}", "score.size"),
        ("score: {kind: concat, size: 2.5}", "score.size"),
        ("score: {kind: additive, layers: 0}", "score.layers"),
        ("key_size: 0", "key_size"),
        ("score: {kind: cosine, sharpness: 0}", "score.sharpness"),
        ("score: {kind: gaussian, bandwidth: -1}", "score.bandwidth"),
        ("score: {kind: gaussian, learned: 1}", "score.learned"),
        ("score: {kind: location, positions: 0}", "score.positions"),
        ("score: {kind: location, positions: 1048577}", "score.positions"),
        ("score: {kind: dot, size: 3}", "score.size"),
        ("weights: {kind: local_m, width: 0}", "weights.width"),
        ("weights: {kind: local_p, width: 0}", "weights.width"),
        ("weights: {kind: gumbel, start: 0}", "weights.start"),
        ("weights: {kind: gumbel, end: -0.5}", "weights.end"),
        ("weights: {kind: gumbel, updates: 0}", "weights.updates"),
        ("weights: {kind: hard, training: exact}", "weights.training"),
        ("weights: {kind: hard, discount: 1.5}", "weights.discount"),
        ("weights: {kind: hard, entropy: -1}", "weights.entropy"),
        ("weights: {kind: glimpse, scales: 9}", "weights.scales"),
        ("weights: {kind: glimpse, scales: 0}", "weights.scales"),
        ("weights: {kind: softmax, temperature: 0}", "weights.temperature"),
        ("weights: {kind: entmax, alpha: 1}", "weights.alpha"),
        ("weights: {kind: mocha, chunk: 0}", "weights.chunk"),
    ],
)
def test_a_setting_out_of_range_is_named(text: str, key: str) -> None:
    message = fault(text)
    assert message.startswith(f"config.yaml:1: {key}: "), message

"""Every mechanism by its name in a configuration: trained, taken up again, translating, aligning, measured."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
import yaml

import nmt
from nmt.attention.registry import SCORES, WEIGHTS
from nmt.training.checkpoint import read_tensors
from tests.workflows.runs import lines_of, train_here

Trained = Callable[..., Mapping[str, np.ndarray]]

MECHANISMS = {
    **{f"score {kind}": [f"model.attention.score={kind}"] for kind in SCORES},
    **{f"weights {kind}": [f"model.attention.weights={kind}"] for kind in WEIGHTS},
    "weights hard, summed": [
        "model.attention.weights={kind: hard, training: marginal}",
        "model.decoder.input_feeding=false",
    ],
    **{
        f"context {kind}": [
            "model.attention.score=none",
            f"model.context={{kind: {kind}, summary: mean}}",
            "model.decoder.size=24",
        ]
        for kind in ("every_step", "first_step", "initial_state", "projected_initial_state")
    },
    "classical decoder": [
        "model.attention.score=none", "model.decoder={size: 24, start: raw, context: every_step}",
    ],
    "classical decoder, attention": [
        "model.decoder={size: 24, start: raw, context: every_step, query: previous, query_embedding: true}",
    ],
    **{
        f"decoder {kind}": ["model.attention.score=none", f"model.decoder={{kind: {kind}, size: 20}}"]
        for kind in ("reencoding", "glimpses")
    },
    "residual": [
        f"model.{side}.{setting}" for side in ("encoder", "decoder") for setting in ("layers=2", "residual=true")
    ],
}  # fmt: skip


QUICK = {
    "score additive", "score location", "weights hard", "weights hard, summed", "context every_step", "residual",
    "classical decoder, attention", "decoder reencoding", "decoder glimpses",
}  # fmt: skip


@pytest.fixture
def trained(here: Path) -> Trained:
    """Trains in the current folder until some update and returns the tensors of these files."""

    def until(updates: int, *changes: str, files: Sequence[str] = ("model", "training")) -> Mapping[str, np.ndarray]:
        shared = (f"training.stopping.updates={updates}", "data.prepared=prepared", "training.validation.bleu=false")
        run = train_here(*shared, *changes)
        found: dict[str, np.ndarray] = {}
        for file in files:
            found |= {key: np.asarray(value) for key, value in read_tensors(run / f"latest/{file}.safetensors").items()}
        return found

    return until


def assert_same(one: Mapping[str, np.ndarray], other: Mapping[str, np.ndarray]) -> None:
    assert one.keys() == other.keys()
    assert [key for key in one if not np.array_equal(one[key], other[key])] == []


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in MECHANISMS]
)
def test_trained_in_two_parts_as_in_one_and_used(name: str, trained: Trained) -> None:
    whole = trained(6, "run=whole", *MECHANISMS[name])
    trained(3, "run=parts", *MECHANISMS[name])
    assert_same(whole, trained(6, "run=parts", *MECHANISMS[name]))

    translator = nmt.load("parts", device="cpu", precision="float32")
    sources, targets = map(lines_of, ("test.de", "test.en"))
    assert len(translator.translate(sources)) == len(sources)
    method = translator.aligner.methods[0]
    without = ("context", "classical decoder", "decoder reencoding")
    assert (method == "gradient") == (name.startswith(without) and name != "classical decoder, attention")
    alignments = translator.align(sources, targets, method=method)
    for alignment, source, target in zip(alignments, sources, targets, strict=True):
        assert alignment.weights_TS.shape == (len(target.split()), len(source.split()))
        np.testing.assert_allclose(alignment.weights_TS.sum(axis=1), 1.0, rtol=1e-5)
    assert 1.0 < translator.predict(sources, targets).perplexity < 1000


@pytest.mark.parametrize(
    ("kind", "decoder"),
    [
        ("every_step", {"start": "zeros", "context": "every_step"}),
        ("first_step", {"start": "zeros", "context": "first_step"}),
        ("initial_state", {"start": "raw"}),
        ("projected_initial_state", {"start": "projected"}),
    ],
)
def test_a_run_whose_context_is_that_of_earlier_releases(kind: str, decoder: dict[str, str], trained: Trained) -> None:
    """It translates and trains on as the run of today's keys that it is: with its own file, or with that of today."""
    shared = ["data.valid=null", "model.attention.score=none", "model.decoder.size=24"]
    today = [*shared, *(f"model.decoder.{key}={value}" for key, value in decoder.items()), "model.decoder.summary=mean"]

    trained(2, "run=today", *today)
    shutil.copytree("today", "earlier", symlinks=True)
    written = yaml.safe_load(Path("earlier/config.yaml").read_text(encoding="utf-8"))
    for key in ("start", "context", "summary", "query_embedding"):
        del written["model"]["decoder"][key]
    written["model"]["context"] = {"kind": kind, "summary": "mean"}
    written["run"] = "earlier"
    Path("earlier/config.yaml").write_text(yaml.safe_dump(written), encoding="utf-8")

    one, other = (
        [each.text for each in nmt.load(run, device="cpu", precision="float32").translate(lines_of("test.de"))]
        for run in ("today", "earlier")
    )
    assert one == other
    expected = trained(4, "run=today", *today, files=["model"])
    for overrides in ([*shared, f"model.context={{kind: {kind}, summary: mean}}"], today):
        shutil.copytree("earlier", "run", symlinks=True)
        assert_same(trained(4, "run=run", *overrides, files=["model"]), expected)
        shutil.rmtree("run")

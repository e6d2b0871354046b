"""Every mechanism by its name in a configuration: trained, taken up again, translating, aligning, measured."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
import yaml

import nmt
from nmt import experiment as experiments
from nmt.attention.registry import SCORES, WEIGHTS
from nmt.training.checkpoint import read_tensors
from nmt.workflows.train import train
from tests.workflows.runs import CONFIG, write_corpus

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


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in MECHANISMS]
)
def test_trained_in_two_parts_as_in_one_and_used(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_corpus(tmp_path)
    Path("config.yaml").write_text(CONFIG, encoding="utf-8")

    def trained(run: str, updates: int) -> dict[str, object]:
        overrides = [*MECHANISMS[name], f"run={run}", f"training.stopping.updates={updates}", "data.prepared=prepared"]
        folder = train(experiments.load(Path("config.yaml"), overrides), device="cpu", precision="float32")
        return read_tensors(folder / "latest" / "model.safetensors") | read_tensors(
            folder / "latest" / "training.safetensors"
        )

    whole = trained("whole", 6)
    trained("parts", 3)
    parts = trained("parts", 6)
    assert whole.keys() == parts.keys()
    for key, tensor in whole.items():
        assert np.array_equal(np.asarray(tensor), np.asarray(parts[key])), key

    translator = nmt.load("parts", device="cpu", precision="float32")
    sources = Path("test.de").read_text(encoding="utf-8").splitlines()
    targets = Path("test.en").read_text(encoding="utf-8").splitlines()
    translations = translator.translate(sources)
    assert len(translations) == len(sources)
    method = translator.aligner.methods[0]
    without = ("context", "classical decoder", "decoder reencoding")
    assert (method == "gradient") == (name.startswith(without) and name != "classical decoder, attention")
    for alignment, source, target in zip(
        translator.align(sources, targets, method=method), sources, targets, strict=True
    ):
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
def test_a_run_whose_context_is_that_of_earlier_releases(
    kind: str, decoder: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It translates and trains on as the run of today's keys that it is: with its own file, or with that of today."""
    monkeypatch.chdir(tmp_path)
    write_corpus(tmp_path)
    Path("config.yaml").write_text(CONFIG, encoding="utf-8")
    shared = ["data.prepared=prepared", "data.valid=null", "model.attention.score=none", "model.decoder.size=24"]
    today = [*shared, *(f"model.decoder.{key}={value}" for key, value in decoder.items()), "model.decoder.summary=mean"]

    def trained(run: str, updates: int, overrides: list[str]) -> dict[str, np.ndarray]:
        overrides = [*overrides, f"run={run}", f"training.stopping.updates={updates}"]
        folder = train(experiments.load(Path("config.yaml"), overrides), device="cpu", precision="float32")
        return {key: np.asarray(value) for key, value in read_tensors(folder / "latest" / "model.safetensors").items()}

    trained("today", 2, today)
    shutil.copytree("today", "earlier", symlinks=True)
    written = yaml.safe_load(Path("earlier/config.yaml").read_text(encoding="utf-8"))
    for key in ("start", "context", "summary", "query_embedding"):
        del written["model"]["decoder"][key]
    written["model"]["context"] = {"kind": kind, "summary": "mean"}
    written["run"] = "earlier"
    Path("earlier/config.yaml").write_text(yaml.safe_dump(written), encoding="utf-8")

    sources = Path("test.de").read_text(encoding="utf-8").splitlines()
    found = [
        [each.text for each in nmt.load(run, device="cpu", precision="float32").translate(sources)]
        for run in ("today", "earlier")
    ]
    assert found[0] == found[1]
    expected = trained("today", 4, today)
    for overrides in ([*shared, f"model.context={{kind: {kind}, summary: mean}}"], today):
        shutil.copytree("earlier", "run", symlinks=True)
        resumed = trained("run", 4, overrides)
        shutil.rmtree("run")
        assert resumed.keys() == expected.keys()
        for key, tensor in expected.items():
            assert np.array_equal(resumed[key], tensor), key

"""The output of ``nmt info`` about a run, compared with the run itself."""

from __future__ import annotations

import json
import shutil
from contextlib import chdir
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

import nmt as package
from nmt.workflows.info import inspect, text
from tests.workflows.runs import measured, train_here


@pytest.fixture(scope="module")
def run(trained: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the shared run, with an average and what other commands would leave."""
    run = tmp_path_factory.mktemp("info") / "run"
    shutil.copytree(trained / "run", run, symlinks=True)
    with chdir(trained):
        train_here(f"run={run}", "training.stopping.updates=4", "training.average=2")
    for name in ("aligner.safetensors", "alignment_layer.safetensors"):
        (run / name).touch()
    (run / "exported" / "onnx").mkdir(parents=True)
    (run / "exported" / "onnx" / "nmt.json").write_text('{"checkpoint": "step-00000002"}')
    return run


def tree(run: Path) -> Any:
    return json.loads(json.dumps(asdict(inspect(str(run)))))


FIGURES = ("loss", "perplexity", "accuracy", "bleu", "chrf")


def test_the_parts_are_those_of_the_model(run: Path) -> None:
    found = tree(run)
    model = package.load(run, device="cpu").trained.model
    parameters = sum(parameter.numel() for parameter in model.parameters())
    shares = {part["name"]: part["parameters"] for part in found["parts"]}
    assert found["parameters"] == parameters == sum(shares.values())
    assert list(shares) == ["embedding", "encoder", "attention", "decoder", "output"]
    assert shares["embedding"] == 2 * 60 * 16
    assert shares["encoder"] == 2 * 4 * (12 * 16 + 12 * 12 + 2 * 12)  # both directions of an LSTM
    assert found["vocabulary"] == {"kind": "bpe", "given": None, "joint": True, "source": 60, "target": 60}
    assert (found["bytes"], found["format"]) == ((run / "best" / "model.safetensors").stat().st_size, "F32")


def test_what_was_trained_is_what_the_files_tell(run: Path) -> None:
    found = tree(run)
    figures = {line["update"]: {name: line[name] for name in FIGURES} for line in measured(run, "valid")}
    by_name = {each["name"]: each for each in found["checkpoints"]}
    assert sorted(figures) == [2, 4]
    last = by_name["step-00000004"]
    assert (by_name["step-00000002"]["figures"], last["figures"]) == (figures[2], figures[4])
    assert (found["best"], last["links"]) == (last, ["best", "latest"])
    with chdir(run.parent):
        assert tree(Path("run"))["best"] == last
    average = by_name[(run / "averaged").resolve().name]
    assert (average["links"], average["update"]) == (["averaged"], 4)
    position = json.loads((run / "best" / "state.json").read_text())["position"]
    training, corpus = found["training"], found["corpus"]
    assert training["updates"] == position["update"] == 4
    assert (training["target_tokens"], training["seconds"]) == (position["tokens"], position["seconds"])
    assert training["written"].endswith("+00:00")
    assert (corpus["kept"], corpus["valid"], corpus["languages"]) == (60, 10, ["de", "en"])
    assert found["files"] == ["aligner.safetensors", "alignment_layer.safetensors"]
    assert found["exported"] == [{"format": "onnx", "checkpoint": "step-00000002"}]


def page(run: Path) -> str:
    return text(inspect(str(run)))


def test_a_checkpoint_is_named_in_the_commands_unless_the_run_stands_for_it(run: Path) -> None:
    other = run / "checkpoints" / "step-00000002"
    for given, named in ((run, run), (run / "latest", run), (run / "averaged", run / "averaged"), (other, other)):
        assert f"nmt translate {named} < FILE" in page(given)
    assert f"nmt align {run} --source FILE --target FILE --method trained" in page(run)
    assert "training 4 updates, written " in page(run / "averaged")
    assert "source → embedding → encoder → attention → decoder → output → target" in page(run)


def test_figures_that_are_shown_stand_in_their_columns(run: Path) -> None:
    lines = page(run).splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith("checkpoints"))
    head, *rows = lines[start : lines.index("", start)]
    assert head.split() == ["checkpoints", *FIGURES]
    assert [row.split()[0] for row in rows[:2]] == ["step-00000002", "step-00000004"]
    ends = [head.index(name) + len(name) for name in FIGURES]
    for row in rows:
        assert all(row[end - 1].isdigit() and row[end : end + 1] in ("", " ") for end in ends)


def test_a_run_without_its_corpus_still_tells_of_itself(run: Path, tmp_path: Path) -> None:
    missing = shutil.ignore_patterns("prepared", "metrics.jsonl")
    copy = shutil.copytree(run, tmp_path / "copy", symlinks=True, ignore=missing)
    found = tree(copy)
    assert (found["corpus"]["pairs"], found["corpus"]["files"]) == (None, ["train.de + train.en"])
    assert found["checkpoints"][0]["figures"] == {}
    assert "corpus   train.de + train.en" in page(copy).splitlines()

"""The output of ``nmt info`` about a run, compared with the run itself."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import nmt as package
from nmt.models.names import part_of
from tests.workflows.runs import Command, in_process, nmt

ROOT = Path(__file__).parents[2]


@pytest.fixture
def info(capsys: pytest.CaptureFixture[str]) -> Command:
    return in_process(capsys, "info")


@pytest.fixture(scope="module")
def run(trained: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the shared run, with an average and what other commands would leave."""
    run = tmp_path_factory.mktemp("info") / "run"
    shutil.copytree(trained / "run", run, symlinks=True)
    more = nmt("train", trained / "config.yaml", "--set", f"run={run}", "--set", "training.stopping.updates=4",
               "--set", "training.average=2", "--precision", "float32", folder=trained)  # fmt: skip
    assert more.returncode == 0, more.stderr.decode()
    for name in ("aligner.safetensors", "alignment_layer.safetensors"):
        (run / name).touch()
    (run / "exported" / "onnx").mkdir(parents=True)
    (run / "exported" / "onnx" / "nmt.json").write_text('{"checkpoint": "step-00000002"}')
    return run


def told(info: Command, *arguments: str | Path) -> Any:
    done = info(*arguments, "--json")
    assert (done.code, done.stderr) == (0, "")
    return json.loads(done.stdout)


def test_the_parts_are_those_of_the_model(run: Path, info: Command) -> None:
    found = told(info, run)
    model = package.load(run, device="cpu").trained.model
    sizes = {name: parameter.numel() for name, parameter in model.named_parameters()}
    assert found["parameters"] == sum(sizes.values())
    assert sum(part["parameters"] for part in found["parts"]) == found["parameters"]
    shares = {part["name"]: part["parameters"] for part in found["parts"]}
    assert list(shares) == ["embedding", "encoder", "attention", "decoder", "output"]
    assert shares["embedding"] == 2 * 60 * 16
    assert shares["encoder"] == 2 * 4 * (12 * 16 + 12 * 12 + 2 * 12)  # both directions of an LSTM
    assert found["vocabulary"] == {"kind": "bpe", "given": None, "joint": True, "source": 60, "target": 60}
    assert found["bytes"] == (run / "best" / "model.safetensors").stat().st_size
    assert found["format"] == "F32"


def test_what_was_trained_is_what_the_files_tell(run: Path, info: Command) -> None:
    found = told(info, run)
    figures = {
        line["update"]: {name: line[name] for name in ("loss", "perplexity", "accuracy", "bleu", "chrf")}
        for line in map(json.loads, (run / "metrics.jsonl").read_text().splitlines())
        if line["kind"] == "valid"
    }
    by_name = {each["name"]: each for each in found["checkpoints"]}
    assert sorted(figures) == [2, 4]
    assert by_name["step-00000002"]["figures"] == figures[2]
    assert by_name["step-00000004"]["figures"] == figures[4]
    assert by_name["step-00000004"]["links"] == ["best", "latest"]
    average = by_name[(run / "averaged").resolve().name]
    assert (average["links"], average["update"]) == (["averaged"], 4)
    state = json.loads((run / "best" / "state.json").read_text())
    assert found["training"]["updates"] == state["position"]["update"] == 4
    assert found["training"]["target_tokens"] == state["position"]["tokens"]
    assert found["training"]["seconds"] == state["position"]["seconds"]
    assert found["best"] == by_name["step-00000004"]
    assert found["corpus"]["kept"] == 60
    assert (found["corpus"]["valid"], found["corpus"]["languages"]) == (10, ["de", "en"])
    assert found["files"] == ["aligner.safetensors", "alignment_layer.safetensors"]
    assert found["exported"] == [{"format": "onnx", "checkpoint": "step-00000002"}]
    assert found["training"]["written"].endswith("+00:00")


def test_a_checkpoint_is_named_in_the_commands_unless_the_run_stands_for_it(run: Path, info: Command) -> None:
    assert f"nmt translate {run} < FILE" in info(run).stdout
    assert f"nmt translate {run} < FILE" in info(run / "latest").stdout
    assert f"nmt translate {run}/averaged < FILE" in info(run / "averaged").stdout
    other = run / "checkpoints" / "step-00000002"
    assert f"nmt translate {other} < FILE" in info(other).stdout
    assert f"nmt align {run} --source FILE --target FILE --method trained" in info(run).stdout
    page = info(run / "averaged").stdout
    assert "training 4 updates, written " in page
    assert "source → embedding → encoder → attention → decoder → output → target" in page


def test_figures_that_are_shown_stand_in_their_columns(run: Path, info: Command) -> None:
    lines = info(run).stdout.splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith("checkpoints"))
    head, *rows = lines[start : lines.index("", start)]
    assert head.split() == ["checkpoints", "loss", "perplexity", "accuracy", "bleu", "chrf"]
    assert [row.split()[0] for row in rows[:2]] == ["step-00000002", "step-00000004"]
    ends = [head.index(name) + len(name) for name in ("loss", "perplexity", "accuracy", "bleu", "chrf")]
    for row in rows:
        assert all(row[end - 1].isdigit() and row[end : end + 1] in ("", " ") for end in ends)


@pytest.mark.parametrize(
    ("parameter", "part"),
    [
        ("encoder.embedding.table.weight", "embedding"),
        ("encoder.layers.0.attention.key_weight_QK", "encoder"),
        ("decoder.layers.0.attention.key_weight_QK", "attention"),
        ("decoder.layers.0.self_attention.key_weight_QK", "decoder"),
        ("decoder.attention.score_parameters.v_A", "attention"),
        ("output.bias_V", "output"),
    ],
)
def test_parameters_belong_to_parts(parameter: str, part: str) -> None:
    assert part_of(parameter) == part


def test_a_run_without_its_corpus_still_tells_of_itself(run: Path, tmp_path: Path, info: Command) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(run, copy, symlinks=True, ignore=shutil.ignore_patterns("prepared", "metrics.jsonl"))
    found = told(info, copy)
    assert found["corpus"]["pairs"] is None
    assert found["corpus"]["files"] == ["train.de + train.en"]
    assert found["checkpoints"][0]["figures"] == {}
    assert "corpus   train.de + train.en" in info(copy).stdout.splitlines()

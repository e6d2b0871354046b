"""Weights are used with the configuration, the lengths and the vocabulary of their training, or not at all."""

from __future__ import annotations

import contextlib
import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from nmt import experiment as experiments
from nmt.core.errors import InputError
from nmt.training.run_directory import CHECKSUMS, LENGTHS, MODEL, STATE, read_state
from nmt.translator.loading import TrainedModel, load_trained
from nmt.workflows.average import average
from tests.workflows.runs import TRANSFORMER, edit_state, place, train_here

ENDING = "restore it, or train another model"


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of four updates, whose best checkpoint is one of them or their average."""
    folder = place(tmp_path_factory.mktemp("trained"), TRANSFORMER)
    with contextlib.chdir(folder):
        train_here("training.stopping.updates=4", "training.average=2")
    return folder


@pytest.fixture
def run(trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(trained, tmp_path, dirs_exist_ok=True, symlinks=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "run"


def load(model: Path) -> TrainedModel:
    return load_trained(model, device="cpu", precision="float32")


def edit(run: Path, old: str, new: str) -> None:
    """Edits the first place of a text in a run's configuration."""
    text = (run / experiments.FILE).read_text("utf-8")
    assert old in text
    (run / experiments.FILE).write_text(text.replace(old, new, 1), encoding="utf-8")


def refusal(use: Callable[..., object], *arguments: object) -> str:
    with pytest.raises(InputError) as refused:
        use(*arguments)
    (message,) = refused.value.messages
    return message


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        ("heads: 2", "heads: 8", "model.encoder.heads is 8, but {} was trained with 2"),
        ("activation: relu", "activation: gelu", 'model.encoder.activation is "gelu", but {} was trained with "relu"'),
        ("norm: pre", "norm: post", 'model.encoder.norm is "post", but {} was trained with "pre"'),
        ("kind: scaled_dot", "kind: dot", 'model.encoder.score.kind is "dot", but {} was trained with "scaled_dot"'),
        ("context: 0", "context: 1", "data.context is 1, but {} was trained with 0"),
        ("max_length: 200", "max_length: 20", "data.filters.max_length is 20, but {} was trained with 200"),
        ("languages: null", "languages: [de, en]", 'data.train.languages is ["en"], but {} was trained with []'),
    ],
)  # fmt: skip
def test_another_configuration_is_refused_by_its_key(run: Path, old: str, new: str, found: str) -> None:
    if "languages" in old:  # of all corpora or of none
        edit(run, old, new)
    edit(run, old, new)
    checkpoint = (run / "best").resolve().name
    assert refusal(load, run) == f"{run / experiments.FILE}: {found.format(checkpoint)}; {ENDING}"


def test_what_may_be_edited(run: Path) -> None:
    """Search, names, places, and what training alone depends on."""
    before = load(run)
    edits = {
        "run: run": "run: elsewhere",
        "beam: 5": "beam: 2",
        "source: train.de": "source: moved/train.de",
        "updates: 4": "updates: 9",
        "learning_rate: ": "learning_rate: 0.1  # ",
        "feed_forward: 0.0": "feed_forward: 0.3",
    }
    for old, new in edits.items():
        edit(run, old, new)
    after = load(run)
    assert after.experiment.search.beam == 2
    assert (after.checkpoint, after.lengths) == (before.checkpoint, before.lengths)
    assert experiments.decides("model.embedding.size")
    learning = ("model.embedding.pretrained.source", "model.dropout.layers", "model.attention.weights.discount")
    assert not any(map(experiments.decides, learning))


def test_the_lengths_belong_to_the_weights(run: Path) -> None:
    lengths = run / LENGTHS
    usual = json.loads(lengths.read_text("utf-8"))["usual"]
    ending = f"but {(run / 'best').resolve().name} was trained with {usual}; {ENDING}"
    lengths.write_text('{"usual": 3, "longest": 99}', encoding="utf-8")
    assert refusal(load, run) == f"{lengths}: lengths.usual is 3, {ending}"
    lengths.unlink()
    assert refusal(load, run) == f"{lengths}: lengths.usual is missing, {ending}"


@pytest.mark.parametrize("link", ["latest", "averaged"])
def test_without_checksums_nothing_is_taken_on_trust(run: Path, link: str) -> None:
    """Unless it is of a release that wrote none, which did not note a format either."""
    folder = run / link
    weights, state = folder / MODEL, folder / STATE
    draw, data = random.Random(1), bytearray(weights.read_bytes())
    for _ in range(20):  # in the numbers, which are behind the header
        data[draw.randrange(len(data) // 2, len(data))] ^= 1 << draw.randrange(8)
    weights.write_bytes(data)
    assert "it is not what was written" in refusal(load, folder)
    (folder / CHECKSUMS).unlink()
    message = "unreadable checkpoint; delete or restore its folder: this checkpoint was written with one, and it is"
    assert refusal(load, folder) == f"{folder / CHECKSUMS}: {message} missing"
    old = {key: value for key, value in json.loads(state.read_text("utf-8")).items() if key not in ("format", "nmt")}
    state.write_text(json.dumps(old), encoding="utf-8")
    load(folder)


def test_training_goes_on_with_its_own_configuration_only(run: Path) -> None:
    """Another configuration is refused even if the run's copy of it was edited, too; averages and runs that start from
    it have the same checks."""
    names = sorted(path.name for path in (run / "checkpoints").iterdir())
    settings = ("training.stopping.updates=6", "training.average=2", "model.encoder.heads=4")
    other = ("run=other", "training.start_from=run", *settings)
    edit(run, "heads: 2", "heads: 4")
    for refused in (refusal(train_here, *settings), refusal(train_here, *other), refusal(average, [run])):
        assert "config.yaml: model.encoder.heads is 4, but " in refused
        assert refused.endswith(f" was trained with 2; {ENDING}")
    assert sorted(path.name for path in (run / "checkpoints").iterdir()) == names
    edit(run, "heads: 4", "heads: 2")
    train_here(*settings[:2])
    average([run])
    manifests = [read_state(run / name)["manifest"] for name in ("latest", "averaged", f"checkpoints/{names[0]}")]
    assert manifests[0] == manifests[1] == manifests[2]


def test_damaged_weights_are_not_fine_tuned(run: Path) -> None:
    weights = run / "best" / MODEL
    weights.write_bytes(weights.read_bytes()[:-1] + b"x")
    assert "it is not what was written" in refusal(train_here, "run=other", "training.start_from=run")


def test_a_share_that_an_earlier_version_did_not_count_may_be_counted_since(run: Path) -> None:
    manifest = read_state(run / "best")["manifest"]
    manifest["lengths"]["several"] = None
    edit_state(run / "best", manifest=manifest)
    assert load(run).lengths.several == 0.0


@pytest.mark.parametrize("manifest", [[], {"model": 3}, {"model": {}, "data": {}, "lengths": None, "more": 1}])
def test_a_manifest_that_is_none_is_refused_in_words(run: Path, manifest: object) -> None:
    edit_state(run / "best", manifest=manifest)
    with pytest.raises(InputError, match=str(run / "best" / STATE)):
        load(run)

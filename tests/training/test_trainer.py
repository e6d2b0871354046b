"""The best checkpoint, the end by patience and averages, with validations that have the figures of a list."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from nmt.experiment import load
from nmt.training.run_directory import MODEL, STATE, TRAINING, checkpoint_path, read_state, write_checksums
from nmt.translator.validation import Validation
from nmt.workflows.average import Selection, average
from nmt.workflows.train import train
from tests.workflows.runs import measured

Figures = tuple[float, float, float]
"""BLEU, chrF and loss."""


@pytest.fixture
def run(here: Path) -> Path:
    """The path of a run in the current folder, which holds a corpus and config.yaml."""
    return Path("run")


def start(figures: Sequence[Figures], monkeypatch: pytest.MonkeyPatch, *settings: str) -> None:
    """Trains, with a validation after each update, until there is none left or training ends before."""
    left = iter(figures)
    with monkeypatch.context() as patched:
        patched.setattr(Validation, "__call__", lambda *_: dict(zip(("bleu", "chrf", "loss"), next(left), strict=True)))
        changes = ["training.validation={every: 1, metric: bleu}", *settings]
        train(load(Path("config.yaml"), changes), device="cpu", precision="float32")


def test_where_bleu_is_0_chrf_finds_the_best_and_ends_the_training(
    run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    figures = [(0, 11, 5), (0, 39, 4), (0, 39, 3), (0, 38, 2), (0, 37, 1), (0, 99, 0)]
    start(figures, monkeypatch, "training.stopping={patience: 2}")
    error = capsys.readouterr().err.splitlines()
    told = [line for line in error if line.startswith(("warning", "patience", "best"))]
    assert told == [
        "warning: bleu does not tell this validation from the best before: chrf decides",
        "warning: bleu does not tell this validation from the best before: loss decides",
        "patience ends training: 2 validations without better bleu",
        "best       chrf 39.00 at update 3",
    ]
    assert (run / "best").readlink().name == "step-00000003"
    assert read_state(run / "latest")["standing"] == {
        "best": 0, "best_update": 3, "without_gain": 2, "plateaus": 0, "since_plateau": 2
    }  # fmt: skip
    average([run], selection=Selection(best=2))
    assert read_state(run / "averaged")["averaged"] == ["step-00000003", "step-00000004"]


def test_a_plateau_is_one_of_chrf_too(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plateau = "training.schedule={kind: plateau, patience: 2, decay: 0.5}"
    figures = [(0, 11, 5), (0, 11, 4), (0, 39, 6), (0, 39, 5), (0, 38, 5), (0, 37, 5), (0, 36, 5)]
    start(figures, monkeypatch, plateau, "training.stopping.updates=7")
    assert [line["learning_rate"] for line in measured(run, "train")] == [0.001] * 6 + [0.0005]


@pytest.mark.parametrize(
    ("last", "best"), [((0, 50, 9), "average"), ((0, 39, 3), "average"), ((0, 39, 5), "step"), ((0, 30, 1), "step")]
)
def test_an_average_is_the_best_by_the_same_rule(
    last: Figures, best: str, run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    figures = [(0, 11, 5), (0, 39, 4), (0, 38, 5), last]
    start(figures, monkeypatch, "training.stopping.updates=3", "training.average=2")
    assert (run / "best").readlink().name.startswith(best)


def test_a_run_of_an_older_release_keeps_its_best(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its state has the best BLEU, and no other figures of that validation."""
    start([(20, 30, 5), (10, 40, 4)], monkeypatch, "training.stopping.updates=2")
    newest = checkpoint_path(run, 2)
    state = read_state(newest)
    assert state.pop("best_figures") == {"bleu": 20, "chrf": 30, "loss": 5}
    (newest / STATE).write_text(json.dumps(state), encoding="utf-8")
    write_checksums(newest, (MODEL, TRAINING, STATE))
    start([(15, 50, 3)], monkeypatch, "training.stopping.updates=3")
    assert (run / "best").readlink().name == "step-00000001"
    assert read_state(run / "latest")["standing"]["without_gain"] == 2
    start([(20, 50, 3)], monkeypatch, "training.stopping.updates=4")
    assert (run / "best").readlink().name == "step-00000004"

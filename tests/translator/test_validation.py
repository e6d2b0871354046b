"""Validations of a training: what each measures and writes of attention (``training.snapshots``), what of it a resumed
training keeps, and their table on a terminal."""

from __future__ import annotations

import contextlib
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import nmt
from nmt.alignment.formats import read_jsonl
from nmt.core.errors import InputError
from nmt.data.atomic_folder import remove
from nmt.extras.pages.report.build import _snapshots as snapshots_of
from nmt.training.run_directory import checkpoint_path, snapshot_path, snapshot_paths
from nmt.training.validation import Validated, line
from nmt.translator.validation import Example, Table
from tests.workflows.runs import (
    assert_same_bits,
    edit_state,
    json_lines,
    lines_of,
    measured,
    place,
    train_here,
    write_lines,
)
from tests.workflows.test_terminal import ESCAPE

SETTINGS = (
    "training.stopping.updates=8", "training.validation.every=2", "training.snapshots=3", "training.keep=9",
    "training.validation.bleu=false", "model.decoder.size=8",
)  # fmt: skip


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run of 8 updates in run/. Read it only."""
    folder = place(tmp_path_factory.mktemp("snapshots"))
    start(folder)
    return folder


def start(folder: Path, *settings: str) -> None:
    with contextlib.chdir(folder):
        train_here(*SETTINGS, *settings)


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (folder / "run" / "snapshots").iterdir()}


def test_each_validation_has_figures_and_attention_of_its_model(whole: Path) -> None:
    run = whole / "run"
    assert [update for update, _ in snapshot_paths(run)] == [2, 4, 6, 8]
    sources, references = (lines_of(whole / f"valid.{side}")[:3] for side in ("de", "en"))
    matrices = []
    for figures, (update, path) in zip(measured(run, "valid"), snapshot_paths(run), strict=True):
        found = list(read_jsonl(path))
        translator = nmt.load(checkpoint_path(run, update), device="cpu", precision="float32")
        expected = translator.align(sources, references, level="subword")
        for one, other in zip(found, expected, strict=True):
            assert (one.source_tokens, one.target_tokens) == (other.source_tokens, other.target_tokens)
            np.testing.assert_allclose(one.weights_TS, other.weights_TS, atol=1e-5)
        matrices.append(found[0].weights_TS)
        prediction = translator.predict(*(lines_of(whole / f"valid.{side}") for side in ("de", "en")))
        assert figures["loss"] == pytest.approx(prediction.loss, rel=1e-4)
    assert not np.allclose(matrices[0], matrices[-1], atol=1e-5)


@pytest.mark.parametrize("owes", [False, True], ids=["killed", "stopped in a validation"])
def test_going_on_drops_what_is_beyond_and_makes_the_same_again(whole: Path, tmp_path: Path, owes: bool) -> None:
    folder = shutil.copytree(whole, tmp_path / "again", symlinks=True)
    run = folder / "run"
    for update in (6, 8):
        remove(checkpoint_path(run, update))
    if owes:
        edit_state(checkpoint_path(run, 4), owes_validation=True)
    for update in (4, 6, 8) if owes else (6, 8):
        snapshot_path(run, update).write_text("of a training that is not a more\n")
    snapshot_path(run, 11).write_text("as well\n")
    (run / "snapshots" / ".00000006.jsonl.partial-1-x").write_text("half")
    start(folder)
    assert contents(folder) == contents(whole)


def test_what_is_noted_changes_no_weight(whole: Path, tmp_path: Path) -> None:
    start(place(tmp_path), "training.snapshots=0")
    assert not (tmp_path / "run" / "snapshots").exists()
    assert_same_bits(tmp_path / "run" / "latest", whole / "run" / "latest", "model.safetensors")


def test_a_pair_that_is_too_long_to_align_is_passed_over(whole: Path, tmp_path: Path) -> None:
    def lengths(folder: Path) -> list[int]:
        found = read_jsonl(snapshot_path(folder / "run", 2))
        return [max(len(one.source_tokens), len(one.target_tokens)) - 1 for one in found]

    limit, folder = min(lengths(whole)), place(tmp_path)
    start(folder, f"search.max_source_tokens={limit}", "training.stopping.updates=2", "training.snapshots=10")
    assert 0 < len(lengths(folder)) < 10
    assert max(lengths(folder)) <= limit


def test_a_pair_longer_than_training_reads_is_left_out_of_the_loss(
    whole: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = place(tmp_path)
    for side in ("de", "en"):
        with (folder / f"valid.{side}").open("a") as lines:
            lines.write("eins " * 1001 + "\n")
    start(folder)
    losses = [[line["loss"] for line in measured(each / "run", "valid")] for each in (whole, folder)]
    assert losses[0] == losses[1]
    warning = "line 11 of valid.de + valid.en: left out of loss and accuracy: more than 1000 subwords on a side"
    assert capfd.readouterr().err.count(warning) == 1


def test_a_report_reads_them(whole: Path, tmp_path: Path) -> None:
    run = shutil.copytree(whole / "run", tmp_path / "run", symlinks=True)
    found = snapshots_of(run)
    assert found is not None
    assert found.updates == (2, 4, 6, 8)
    assert [[each.level for each in pair] for pair in found.pairs] == [["subword"] * 4] * 3
    path = run / "snapshots" / snapshot_paths(run)[1][1].name
    lines = json_lines(path)
    for tree in lines:
        words = {f"{side}_words": tree[f"{side}_tokens"] for side in ("source", "target")}
        tree.update(words, level="word", links=[], **dict.fromkeys(("scores", "sure", "source_spans", "target_spans")))
    write_lines(path, map(json.dumps, lines))
    with pytest.raises(InputError, match="is between words, not between subwords; delete it"):
        snapshots_of(run)


VALIDATED = Validated(1200, 7, 3.44, {"loss": 0.25, "bleu": 89.81}, is_best=True)


def test_a_table_has_its_head_once_and_marks_the_best() -> None:
    table = Table(width=80, colour=False)
    assert table(VALIDATED).split("\n") == [
        "  update  epoch     min        loss        bleu",
        "   1,200      7     3.4        0.25       89.81  best",
    ]
    second = table(Validated(2, 1, 0.1, {"loss": 1, "bleu": 2}, is_best=False))
    assert second == "       2      1     0.1        1.00        2.00"
    assert line(VALIDATED) == "update 1200, epoch 7, 3.4 min: valid loss 0.25, bleu 89.81 (best)"


def test_an_example_is_cut_to_the_width_and_coloured_by_the_reference() -> None:
    table = Table(width=40, colour=True)
    table.example = Example("q" * 90, "a dog\x1b[2J", "a cat")
    text = table(VALIDATED)
    assert "\x1b[32ma\x1b[0m \x1b[33mcat\x1b[0m" in text
    assert "\x1b[2J" not in text
    assert max(len(ESCAPE.sub("", each)) for each in text.split("\n")[2:]) <= 40
    plain = Table(width=40, colour=False)
    plain.example = table.example
    assert ESCAPE.sub("", text) == plain(VALIDATED)

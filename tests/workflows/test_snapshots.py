"""``training.snapshots``: what each validation notes of attention, and what of it a resumed training keeps."""

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
from nmt.training import run_directory
from nmt.training.run_directory import checkpoint_path, snapshot_path, snapshot_paths
from tests.workflows.runs import assert_same_bits, json_lines, lines_of, place, train_here, write_lines

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


def test_each_validation_notes_the_attention_of_that_model(whole: Path) -> None:
    run = whole / "run"
    assert [update for update, _ in snapshot_paths(run)] == [2, 4, 6, 8]
    sources, references = (lines_of(whole / f"valid.{side}")[:3] for side in ("de", "en"))
    matrices = []
    for update, path in snapshot_paths(run):
        found = list(read_jsonl(path))
        translator = nmt.load(checkpoint_path(run, update), device="cpu", precision="float32")
        expected = translator.align(sources, references, level="subword")
        for one, other in zip(found, expected, strict=True):
            assert (one.source_tokens, one.target_tokens) == (other.source_tokens, other.target_tokens)
            np.testing.assert_allclose(one.weights_TS, other.weights_TS, atol=1e-5)
        matrices.append(found[0].weights_TS)
    assert not np.allclose(matrices[0], matrices[-1], atol=1e-5)


@pytest.mark.parametrize("owes", [False, True], ids=["killed", "stopped in a validation"])
def test_going_on_drops_what_is_beyond_and_makes_the_same_again(whole: Path, tmp_path: Path, owes: bool) -> None:
    folder = shutil.copytree(whole, tmp_path / "again", symlinks=True)
    run = folder / "run"
    for update in (6, 8):
        remove(checkpoint_path(run, update))
    if owes:
        state = checkpoint_path(run, 4) / run_directory.STATE
        state.write_text(json.dumps(json.loads(state.read_text()) | {"owes_validation": True}))
        files = (run_directory.MODEL, run_directory.TRAINING, run_directory.STATE)
        run_directory.write_checksums(checkpoint_path(run, 4), files)
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


def test_a_report_reads_them(whole: Path, tmp_path: Path) -> None:
    run = shutil.copytree(whole / "run", tmp_path / "run", symlinks=True)
    found = snapshots_of(run)
    assert found is not None
    assert found.updates == (2, 4, 6, 8)
    assert [[each.level for each in pair] for pair in found.pairs] == [["subword"] * 4] * 3
    path = run / "snapshots" / snapshot_paths(run)[1][1].name
    lines = json_lines(path)
    for line in lines:
        words = {f"{side}_words": line[f"{side}_tokens"] for side in ("source", "target")}
        line.update(words, level="word", links=[], **dict.fromkeys(("scores", "sure", "source_spans", "target_spans")))
    write_lines(path, map(json.dumps, lines))
    with pytest.raises(InputError, match="is between words, not between subwords; delete it"):
        snapshots_of(run)

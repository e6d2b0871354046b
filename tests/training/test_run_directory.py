"""Paths, links and checksums of a run directory."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from nmt.core.errors import InputError
from nmt.training import checkpoint
from nmt.training.run_directory import (
    average_path,
    average_paths,
    checkpoint_paths,
    latest_checkpoint,
    prune,
    set_link,
    verify,
)
from tests.training.test_checkpoint import model


def test_averages_of_other_checkpoints_stand_elsewhere(tmp_path: Path) -> None:
    one, two, three = "step-01", "step-02", "step-03"
    groups = [[one, three], [two, three], [one, two, three], ["/runs/a/checkpoints/step-01", three]]
    places = [average_path(tmp_path, group) for group in groups]
    assert len(set(places)) == len(groups)
    assert [place.name.rpartition("-")[0].removeprefix("average-03-of-") for place in places] == ["2", "2", "3", "2"]
    many = average_path(tmp_path, [f"step-{update:08d}" for update in range(100)])
    assert len(f".{many.name}.partial-12345678") < 255  # what a file system takes


def test_only_numbered_folders_are_checkpoints_the_newest_last(tmp_path: Path) -> None:
    saved = [checkpoint.save(tmp_path, update, model(), {}, {}) for update in (9, 99_999_999, 100_000_000)]
    shutil.copytree(saved[0], saved[0].with_name("step-00000009.backup"))
    shutil.copytree(saved[0], saved[0].with_name("damaged-step-00000009"))
    assert checkpoint_paths(tmp_path) == saved


def test_averages_are_neither_gone_on_from_nor_deleted(tmp_path: Path) -> None:
    saved = [checkpoint.save(tmp_path, update, model(), {}, {"update": update}) for update in (8, 9, 10, 11, 12)]
    average = average_path(tmp_path, ["step-00000010", "step-00000012"])
    checkpoint.write(average, {"model.safetensors": {}}, {})
    assert average_paths(tmp_path) == [average]
    assert checkpoint_paths(tmp_path) == saved
    assert latest_checkpoint(tmp_path) == saved[-1]
    assert (tmp_path / "latest").resolve() == saved[-1]
    prune(tmp_path, keep=1, retain=[saved[1]])
    assert checkpoint_paths(tmp_path) == [saved[1], saved[4]]
    assert average.exists()


def test_latest_best_and_prune(tmp_path: Path) -> None:
    saved = [checkpoint.save(tmp_path, update, model(), {}, {"update": update}) for update in (1, 2, 3, 4)]
    assert (tmp_path / "latest").resolve() == saved[3]
    assert (tmp_path / "latest").readlink() == Path("checkpoints/step-00000004")
    set_link(tmp_path, "best", saved[0])
    (tmp_path / "checkpoints" / ".step-00000005.unfinished").mkdir()
    prune(tmp_path, keep=2)
    names = sorted(path.name for path in (tmp_path / "checkpoints").iterdir())
    assert names == ["step-00000001", "step-00000003", "step-00000004"]


def test_checksums_are_those_of_sha256sum(tmp_path: Path) -> None:
    folder = checkpoint.save(tmp_path, 1, model(), {}, {})
    done = subprocess.run(
        ["sha256sum", "--check", "--strict", "SHA256SUMS"], cwd=folder, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["model.safetensors: OK", "training.safetensors: OK", "state.json: OK"]
    (folder / "SHA256SUMS").write_text("", encoding="utf-8")
    with pytest.raises(InputError, match=r"SHA256SUMS: unreadable checkpoint; .*: tells nothing of model.safetensors"):
        verify(folder, ["model.safetensors"])

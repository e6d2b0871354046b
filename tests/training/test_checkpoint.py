"""Checkpoints are whole or not there."""

from __future__ import annotations

import errno
import os
import shutil
import stat
import subprocess
from pathlib import Path

import pytest
import torch
from torch import nn

from nmt.core.errors import InputError
from nmt.data import whole_folder
from nmt.training import checkpoint
from nmt.training.run_directory import (
    CHECKSUMS,
    MODEL,
    STATE,
    TRAINING,
    Damaged,
    average_path,
    average_paths,
    checkpoint_paths,
    latest_checkpoint,
    prune,
    read_state,
    set_link,
    verify,
)


def model(width: int = 3) -> nn.Module:
    return nn.Linear(width, 2)


def test_latest_best_and_prune(tmp_path: Path) -> None:
    saved = [checkpoint.save(tmp_path, update, model(), {}, {"update": update}) for update in (1, 2, 3, 4)]
    assert (tmp_path / "latest").resolve() == saved[3]
    assert (tmp_path / "latest").readlink() == Path("checkpoints/step-00000004")
    set_link(tmp_path, "best", saved[0])
    (tmp_path / "checkpoints" / ".step-00000005.unfinished").mkdir()
    prune(tmp_path, keep=2)
    names = sorted(path.name for path in (tmp_path / "checkpoints").iterdir())
    assert names == ["step-00000001", "step-00000003", "step-00000004"]


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


def test_averages_of_other_checkpoints_stand_elsewhere(tmp_path: Path) -> None:
    one, two, three = "step-01", "step-02", "step-03"
    groups = [[one, three], [two, three], [one, two, three], ["/runs/a/checkpoints/step-01", three]]
    places = [average_path(tmp_path, group) for group in groups]
    assert len(set(places)) == len(groups)
    assert [place.name.rpartition("-")[0].removeprefix("average-03-of-") for place in places] == ["2", "2", "3", "2"]
    many = average_path(tmp_path, [f"step-{update:08d}" for update in range(100)])
    assert len(f".{many.name}.partial-12345678") < 255  # what a file system takes


@pytest.mark.parametrize("file", ["model.safetensors", "state.json"])
def test_a_write_that_fails_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str) -> None:
    old = checkpoint.save(tmp_path, 1, model(), {}, {"update": 1})

    def fail(path: Path) -> None:
        if path.name == file:
            raise OSError(errno.ENOSPC, "the disk is full")

    monkeypatch.setattr(whole_folder, "sync_entry", fail)
    with pytest.raises(InputError, match=r"step-00000002: cannot be written: the disk is full; what was saved before"):
        checkpoint.save(tmp_path, 2, model(), {}, {"update": 2})
    assert [path.name for path in (tmp_path / "checkpoints").iterdir()] == [old.name]
    assert latest_checkpoint(tmp_path) == old
    assert (tmp_path / "latest").resolve() == old


def test_a_whole_checkpoint_counts_even_before_it_is_linked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checkpoint.save(tmp_path, 1, model(), {}, {})
    monkeypatch.setattr(checkpoint, "set_link", lambda *_: None)
    new = checkpoint.save(tmp_path, 2, model(), {}, {})
    assert latest_checkpoint(tmp_path) == new


def test_only_numbered_folders_are_checkpoints_the_newest_last(tmp_path: Path) -> None:
    saved = [checkpoint.save(tmp_path, update, model(), {}, {}) for update in (9, 99_999_999, 100_000_000)]
    shutil.copytree(saved[0], saved[0].with_name("step-00000009.backup"))
    shutil.copytree(saved[0], saved[0].with_name("damaged-step-00000009"))
    assert checkpoint_paths(tmp_path) == saved


def test_a_checkpoint_is_whole_or_not_there_also_while_it_is_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for update in (1, 2, 3):
        checkpoint.save(tmp_path, update, model(), {}, {})

    def cut_off(folder: Path, ignore_errors: bool = False) -> None:
        if not ignore_errors:
            (folder / "model.safetensors").unlink()
            raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(shutil, "rmtree", cut_off)
        with pytest.raises(KeyboardInterrupt):
            prune(tmp_path, keep=1)
    for folder in checkpoint_paths(tmp_path):
        checkpoint.check_resumable(folder)
    prune(tmp_path, keep=1)
    assert [path.name for path in (tmp_path / "checkpoints").iterdir()] == ["step-00000003"]


def test_checksums_are_those_of_sha256sum(tmp_path: Path) -> None:
    folder = checkpoint.save(tmp_path, 1, model(), {}, {})
    done = subprocess.run(
        ["sha256sum", "--check", "--strict", "SHA256SUMS"], cwd=folder, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["model.safetensors: OK", "training.safetensors: OK", "state.json: OK"]
    (folder / "SHA256SUMS").write_text("", encoding="utf-8")
    with pytest.raises(InputError, match=r"SHA256SUMS: unreadable checkpoint, .*: tells nothing of model.safetensors"):
        verify(folder, ["model.safetensors"])


def test_damage_is_named(tmp_path: Path) -> None:
    folder = checkpoint.save(tmp_path, 1, model(), {}, {"update": 1})
    with pytest.raises(InputError, match=r"weight is \(2, 3\), but config.yaml and vocabulary make it \(2, 4\)"):
        checkpoint.load_weights(folder, model(4))
    with pytest.raises(InputError, match=r"misses 0.bias: it is of another model"):
        checkpoint.load_weights(folder, nn.Sequential(model()))
    (folder / "model.safetensors").write_bytes(b"\x08\x00\x00\x00\x00\x00\x00\x00broken!!")
    with pytest.raises(InputError, match=r"model.safetensors: unreadable checkpoint"):
        checkpoint.load_weights(folder, model())
    (folder / "state.json").write_text("{")
    with pytest.raises(InputError, match=r"state.json: unreadable checkpoint"):
        read_state(folder)


def test_shared_weights_are_saved_once_and_stay_shared(tmp_path: Path) -> None:
    one = nn.Linear(3, 3)
    shared = nn.Sequential(one, one)
    folder = checkpoint.save(tmp_path, 1, shared, {}, {})
    assert set(checkpoint.read_tensors(folder / "model.safetensors")) == {"0.weight", "0.bias"}
    other = nn.Linear(3, 3)
    loaded = nn.Sequential(other, other)
    checkpoint.load_weights(folder, loaded)
    assert torch.equal(loaded[1].weight, one.weight)


@pytest.mark.parametrize("name", [MODEL, TRAINING, STATE])
@pytest.mark.parametrize("damage", ["cut", "gone"])
def test_a_checkpoint_without_checksums_is_known_to_be_damaged_by_its_files(
    tmp_path: Path, name: str, damage: str
) -> None:
    folder = checkpoint.save(tmp_path, 1, model(), {"a": torch.ones(3)}, {"update": 1})
    (folder / CHECKSUMS).unlink()
    with pytest.raises(Damaged, match="this checkpoint was written with one, and it is missing"):
        checkpoint.check_resumable(folder)
    (folder / STATE).write_text('{"update": 1}', encoding="utf-8")  # as before formats were noted
    checkpoint.check_resumable(folder)
    (folder / name).unlink() if damage == "gone" else (folder / name).write_bytes((folder / name).read_bytes()[:-3])
    with pytest.raises(Damaged, match=name):
        checkpoint.check_resumable(folder)


def test_weights_may_be_read_by_whom_the_umask_lets(tmp_path: Path) -> None:
    mask = os.umask(0o026)
    try:
        folder = checkpoint.save(tmp_path, 1, model(), {}, {"update": 1})
    finally:
        os.umask(mask)
    assert {stat.S_IMODE(file.stat().st_mode) for file in folder.iterdir()} == {0o640}

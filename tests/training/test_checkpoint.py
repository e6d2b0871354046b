"""Checkpoints are whole or not there."""

from __future__ import annotations

import errno
import os
import shutil
import stat
from pathlib import Path

import pytest
import torch
from torch import nn

from nmt.core.errors import InputError
from nmt.data import atomic_folder
from nmt.training import checkpoint
from nmt.training.run_directory import (
    CHECKSUMS,
    MODEL,
    STATE,
    TRAINING,
    Damaged,
    checkpoint_paths,
    latest_checkpoint,
    prune,
    read_state,
)


def model(width: int = 3) -> nn.Module:
    return nn.Linear(width, 2)


@pytest.mark.parametrize("file", ["model.safetensors", "state.json"])
def test_a_write_that_fails_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str) -> None:
    old = checkpoint.save(tmp_path, 1, model(), {}, {"update": 1})

    def fail(path: Path) -> None:
        if path.name == file:
            raise OSError(errno.ENOSPC, "the disk is full")

    monkeypatch.setattr(atomic_folder, "sync_entry", fail)
    with pytest.raises(InputError, match=r"step-00000002: cannot be written: the disk is full; what was saved before"):
        checkpoint.save(tmp_path, 2, model(), {}, {"update": 2})
    assert [path.name for path in (tmp_path / "checkpoints").iterdir()] == [old.name]
    assert latest_checkpoint(tmp_path) == old
    assert (tmp_path / "latest").resolve() == old


def test_a_whole_checkpoint_counts_even_before_it_is_linked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checkpoint.save(tmp_path, 1, model(), {}, {})
    monkeypatch.setattr("nmt.training.run_directory.set_link", lambda *_: None)
    new = checkpoint.save(tmp_path, 2, model(), {}, {})
    assert latest_checkpoint(tmp_path) == new


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


def test_damage_is_named(tmp_path: Path) -> None:
    folder = checkpoint.save(tmp_path, 1, model(), {}, {"update": 1})
    with pytest.raises(InputError, match=r"weight is \(2, 3\), but config.yaml says \(2, 4\)"):
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

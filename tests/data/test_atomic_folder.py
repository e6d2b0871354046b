"""A folder that takes the place of another is there whole, the old or the new, whenever its maker is killed."""

from __future__ import annotations

import random
import signal
from itertools import count
from pathlib import Path

import pytest

from nmt.data import atomic_folder
from nmt.data.atomic_folder import locked, recover, remove, replace_folder
from tests.workflows.killing import Bomb, fork


def make(folder: Path, text: str) -> None:
    with locked(folder), replace_folder(folder) as partial:
        (partial / "sub").mkdir()
        for name in ("a", "sub/b"):
            (partial / name).write_text(text, encoding="utf-8")


def content(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text("utf-8") for path in folder.rglob("*") if path.is_file()}


OLD, NEW = ({"a": text, "sub/b": text} for text in ("old", "new"))


@pytest.mark.parametrize("exchanges", [True, False], ids=["exchanged", "renamed twice"])
def test_killed_before_each_step(tmp_path: Path, exchanges: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """If two names cannot be exchanged in one step, the folder may be missing until the next call, which restores
    it."""
    if not exchanges:
        monkeypatch.setattr(atomic_folder, "_exchange", lambda first, second: False)
    gone = 0
    for fuse in count():
        (place := tmp_path / str(fuse)).mkdir()
        folder = place / "folder"
        make(folder, "old")

        def replace(bomb: Bomb = Bomb(place, fuse, random.Random(1)), folder: Path = folder) -> None:  # noqa: B008
            bomb.arm()
            make(folder, "new")

        code, where = fork(replace)
        if code == 0:
            break
        assert code == -signal.SIGKILL
        if not folder.exists():
            gone += 1
            assert not exchanges, where
            recover(folder)
        assert content(folder) in (OLD, NEW), where
        make(folder, "new")
        assert content(folder) == NEW
        assert {path.name for path in place.iterdir()} == {"folder", ".folder.lock"}, where
    assert content(folder) == NEW
    assert fuse > 10
    assert gone == (not exchanges)


def test_a_new_folder_that_cannot_take_the_place_leaves_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, rename = tmp_path / "folder", Path.rename
    make(folder, "old")

    def refused(path: Path, target: Path) -> Path:
        if target == folder and "partial" in path.name:
            raise OSError(28, "No space left on device")
        return rename(path, target)

    monkeypatch.setattr(atomic_folder, "_exchange", lambda first, second: False)
    monkeypatch.setattr(Path, "rename", refused)
    with pytest.raises(OSError, match="No space left") as error:
        make(folder, "new")
    assert error.value.filename == str(folder)
    assert content(folder) == OLD
    assert {path.name for path in tmp_path.iterdir()} == {"folder", ".folder.lock"}


def test_a_link_stays_and_what_it_leads_to_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    make(tmp_path / "disk" / "folder", "old")
    (tmp_path / "link").symlink_to("disk/folder")
    make(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink()
    assert content(tmp_path / "disk" / "folder") == NEW


def test_what_cannot_be_removed_stays(tmp_path: Path) -> None:
    """A file of that name, or a folder that another process is removing at the moment."""
    make(tmp_path / "folder", "old")
    (tmp_path / ".folder.partial-file").write_text("")
    recover(tmp_path / "folder")
    assert content(tmp_path / "folder") == OLD


def test_killed_while_a_folder_is_deleted(tmp_path: Path) -> None:
    for fuse in count():
        folder = tmp_path / str(fuse) / "folder"
        make(folder, "old")

        def delete(bomb: Bomb = Bomb(folder.parent, fuse, random.Random(1)), folder: Path = folder) -> None:  # noqa: B008
            bomb.arm()
            remove(folder)

        code, where = fork(delete)
        assert not folder.exists() or content(folder) == OLD, where
        recover(folder)
        assert [path.name for path in folder.parent.glob(".folder.[!l]*")] == []
        if code == 0:
            break
    assert not folder.exists()

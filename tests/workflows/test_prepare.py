"""`nmt prepare`: what makes a prepared folder anew; killed, at once, and on full disks."""

from __future__ import annotations

import fcntl
import os
import signal
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest

from nmt.core.errors import InputError
from nmt.data import atomic_folder
from nmt.data.report import Report
from nmt.data.store import Store
from nmt.data.tokenizer import TokenizerPair
from nmt.workflows import build_corpus
from nmt.workflows.prepare import prepare
from tests.workflows.corpora import PAIRS, Make, config_of, content
from tests.workflows.killing import fork


def test_nothing_is_redone_unless_something_changed(
    tmp_path: Path, tsv: Path, make: Make, capsys: pytest.CaptureFixture[str]
) -> None:
    assert not make().reused
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "prepared").rglob("*")}
    capsys.readouterr()
    again = make()
    assert again.reused
    assert "up to date" in capsys.readouterr().err
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "prepared").rglob("*")} == before
    assert again.train.source(3).tolist() == again.tokenizers.source.encode(PAIRS[3][0])

    tsv.touch()
    assert make().reused
    stat = tsv.stat()
    tsv.write_bytes(tsv.read_bytes().replace(b"Hund", b"Mund", 1))  # the same size and the same time
    os.utime(tsv, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    shorter: dict[str, Any] = {"filters": {"max_length": 5}}
    for change in ({}, {"seed": 2}, {"seed": 2, "force": True}, shorter):
        assert not make(**change).reused, change
    assert make(**shorter, workers=2).reused
    assert [path.name for path in tmp_path.glob(".prepared*")] == [".prepared.lock"]


@pytest.mark.parametrize(
    ("name", "data"),
    [
        *((name, "{") for name in ("report.json", "subwords.model", "train/source.bin", "train/store.json")),
        ("state.json", '{"key": 0}'),  # without it the folder might be anything
    ],
)
def test_a_damaged_folder_is_made_again(tmp_path: Path, make: Make, name: str, data: str) -> None:
    expected = content(make().folder)
    (tmp_path / "prepared" / name).write_text(data)
    assert not make().reused
    assert content(tmp_path / "prepared") == expected


def test_a_failure_leaves_the_folder_as_it_was(tmp_path: Path, make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match=r"prepared: cannot be made: "):
        make(run=tmp_path / "file")
    before = content(make().folder)
    with pytest.raises(InputError, match=r"data\.subwords\.size: 90000 is more than"):
        make(subwords={"size": 90_000})

    def full(path: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(atomic_folder, "sync_entry", full)
    with pytest.raises(InputError, match=r"prepared cannot be written: No space left on device"):
        make(force=True)
    assert content(tmp_path / "prepared") == before
    assert [path.name for path in tmp_path.glob(".prepared*")] == [".prepared.lock"]


def test_what_is_not_ours_is_not_replaced_and_a_link_stays_a_link(tmp_path: Path, make: Make) -> None:
    photos = tmp_path / "photos"
    photos.mkdir()
    (tmp_path / "link").symlink_to(photos)
    for kind in ("word", "char"):  # empty at first: fine
        make(prepared=tmp_path / "link", subwords={"kind": kind})
        assert (tmp_path / "link").is_symlink()
        assert Report.model_validate_json((photos / "report.json").read_text()).pairs == 400
    other = tmp_path / "other"
    other.mkdir()
    (other / "me.jpg").touch()
    with pytest.raises(InputError, match="is not a prepared corpus; name another folder"):
        make(prepared=other, force=True)
    assert (other / "me.jpg").exists()


def test_a_read_only_folder_can_be_used_as_it_is(tmp_path: Path, make: Make) -> None:
    make(prepared=tmp_path / "shared")
    (tmp_path / ".shared.lock").unlink()
    (tmp_path / ".shared.lock").mkdir()  # as good as no permission, which root would have all the same
    assert make(prepared=tmp_path / "shared").reused
    with pytest.raises(InputError, match="has to be made again but its parent is read-only"):
        make(prepared=tmp_path / "shared", force=True)


@pytest.mark.parametrize("which", ["train", "valid", "test"])
def test_a_missing_file_is_named_before_any_work(tmp_path: Path, make: Make, which: str) -> None:
    with pytest.raises(InputError, match=r"nowhere: no such file$"):
        make(**{which: {"pairs": tmp_path / "nowhere"}})


def die(*_: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def then_die(owner: object, name: str) -> None:
    """Has a function end this process after its work."""
    work = getattr(owner, name)
    setattr(owner, name, lambda *arguments: work(*arguments) and die())


@pytest.mark.parametrize(
    ("arm", "is_complete"),
    [
        (lambda: setattr(build_corpus, "_store_train", die), False),
        (lambda: setattr(atomic_folder, "sync_entry", die), False),
        (lambda: then_die(atomic_folder, "_exchange"), True),
    ],
    ids=["stored", "synced", "exchanged"],
)
def test_a_killed_prepare_leaves_nothing_that_is_trusted(
    tmp_path: Path, make: Make, arm: Callable[[], None], is_complete: bool
) -> None:
    make(subwords={"size": 100})

    def work() -> None:
        arm()
        make()

    assert fork(work)[0] == -signal.SIGKILL
    found = make()
    assert (found.report.source.vocabulary, found.reused) == (120, is_complete)
    assert content(found.folder) == content(make(run=tmp_path / "clean").folder)
    make(force=True)
    assert [path.name for path in tmp_path.glob(".prepared*")] == [".prepared.lock"]


def reused(tsv: Path, run: Path) -> bool:
    return prepare(config_of(tsv), run=run, seed=1).reused


def test_several_at_once_do_the_work_once(tmp_path: Path, tsv: Path, make: Make) -> None:
    with get_context("fork").Pool(3) as pool:
        assert sorted(pool.starmap(reused, [(tsv, tmp_path)] * 3, chunksize=1)) == [False, True, True]
    made = make()
    assert (made.reused, len(made.train)) == (True, 400)
    assert Store.open(made.folder / "train").source(7).tolist() == made.train.source(7).tolist()
    assert TokenizerPair.load(made.folder) == made.tokenizers


def test_a_second_prepare_waits_and_says_so(tmp_path: Path, tsv: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with (tmp_path / ".prepared.lock").open("w") as lock, ThreadPoolExecutor() as pool:
        fcntl.flock(lock, fcntl.LOCK_EX)
        second = pool.submit(reused, tsv, tmp_path)
        time.sleep(0.3)
        assert "another process is making it; waiting" in capsys.readouterr().err
        assert not (tmp_path / "prepared").exists()
        fcntl.flock(lock, fcntl.LOCK_UN)
        assert second.result(60) is False


def test_open_stores_outlive_a_new_prepare(make: Make) -> None:
    old = make()
    expected = [old.train.source(index).tolist() for index in range(10)]
    make(subwords={"kind": "char"})
    assert [old.train.source(index).tolist() for index in range(10)] == expected

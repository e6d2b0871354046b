"""SIGTERM at an awkward moment, disks that refuse, damaged checkpoints: nothing is lost, and one line says why.

Trainings run in this process where nothing depends on its end.
"""

from __future__ import annotations

import errno
import fcntl
import itertools
import json
import os
import resource
import shutil
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nmt import experiment as experiments
from nmt.cli.app import main
from nmt.core import log
from nmt.core.errors import InputError
from nmt.data import atomic_folder
from nmt.training import averaging, checkpoint
from nmt.training.checkpoint import read_tensors
from nmt.training.metrics import MetricsWriter
from nmt.training.objective import Objective
from nmt.training.run_directory import checkpoint_path, checkpoint_paths, latest_checkpoint, read_state, set_link
from nmt.translator.validation import Validation
from nmt.workflows import train as workflow
from nmt.workflows.train import train
from tests.workflows.runs import assert_same_bits, measured, place

SETTINGS = [
    "training.stopping.updates=8", "training.validation.every=4", "training.save_every=2", "training.ema=0.5",
    "training.schedule={kind: plateau, warmup: 2, patience: 1, decay: 0.5}",
    "training.validation.bleu=false", "data.prepared=prepared",
]  # fmt: skip


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the corpus and a run of 8 updates in whole/. Read it only."""
    folder = place(tmp_path_factory.mktemp("prepared"))
    with pytest.MonkeyPatch.context() as patched:
        patched.chdir(folder)
        start("run=whole")
    return folder


@pytest.fixture
def here(prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(prepared, tmp_path, dirs_exist_ok=True, symlinks=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def start(*settings: str, skip_damaged: bool = False) -> Path:
    experiment = experiments.load(Path("config.yaml"), [*SETTINGS, *settings])
    return train(experiment, device="cpu", precision="float32", skip_damaged=skip_damaged)


def same_as_whole(run: str = "run", whole: str = "whole") -> None:
    """The run has come to the end of the one that nothing has disturbed."""
    assert_same_bits(Path(run, "latest"), Path(whole, "latest"))
    assert Path(run, "best").readlink() == Path(whole, "best").readlink()
    assert measured(run) == measured(whole)
    states = [read_state(Path(each) / "latest") for each in (whole, run)]
    for state in states:
        del state["position"]["seconds"]
    assert states[0] == states[1]


def slow_validations(monkeypatch: pytest.MonkeyPatch, number: int = signal.SIGTERM, *, first: int = 1) -> None:
    """Has the ``first`` validation of this process, and those after it, take ten minutes after a signal has come."""
    real, count = Validation.__call__, itertools.count(1)

    def held(self: Validation, model: Any, snapshot: Path | None) -> Any:
        if next(count) >= first:
            os.kill(os.getpid(), number)
            wait_long()
        return real(self, model, snapshot)

    monkeypatch.setattr(Validation, "__call__", held)


def wait_long() -> None:
    time.sleep(600)


each_signal = pytest.mark.parametrize(
    ("number", "ends"), [(signal.SIGTERM, SystemExit), (signal.SIGINT, KeyboardInterrupt)]
)


@each_signal
def test_a_signal_during_an_update_saves_and_ends(
    number: int, ends: type[BaseException], here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At an update without a checkpoint of its own."""
    backward, calls = Objective.backward, itertools.count(1)

    def signalled(*arguments: Any, **options: Any) -> Any:
        if next(calls) == 3:
            os.kill(os.getpid(), number)
        return backward(*arguments, **options)

    with monkeypatch.context() as patched:
        patched.setattr(Objective, "backward", signalled)
        with pytest.raises(ends):
            start()
    assert latest_checkpoint(Path("run")) == checkpoint_path(Path("run"), 3)
    start()
    same_as_whole()


def test_killed_between_the_last_checkpoint_and_its_link(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    set_link(Path("whole"), "latest", checkpoint_path(Path("whole"), 6))
    start("run=whole")
    assert "nothing to do" in capfd.readouterr().err
    assert Path("whole/latest").resolve() == checkpoint_path(Path("whole"), 8).resolve()


@each_signal
def test_a_signal_ends_a_validation_that_would_take_long(
    number: int, ends: type[BaseException], here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        slow_validations(patched, number)
        for _ in range(2):  # the second one is stopped in the validation that the first one owes
            began = time.monotonic()
            with pytest.raises(ends) as ended:
                start()
            assert time.monotonic() - began < 60
            assert latest_checkpoint(Path("run")) == checkpoint_path(Path("run"), 4)
            assert read_state(checkpoint_path(Path("run"), 4))["owes_validation"] is True
            assert [line["update"] for line in measured("run", "valid")] == []
        if isinstance(ended.value, SystemExit):
            assert ended.value.code == 143
    start()
    same_as_whole()


@pytest.mark.parametrize("first", [2, 3], ids=["last update", "average"])
def test_a_signal_ends_the_last_validations(first: int, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    start("run=other", "training.average=2")
    with monkeypatch.context() as patched:
        slow_validations(patched, first=first)
        with pytest.raises(SystemExit):
            start("training.average=2")
    assert not Path("run/averaged").exists()
    start("training.average=2")
    same_as_whole(whole="other")
    weights = [Path(run, "averaged", "model.safetensors").read_bytes() for run in ("run", "other")]
    assert weights[0] == weights[1]


def test_a_validation_that_is_killed_after_measuring_is_not_told_twice(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        slow_validations(patched)
        with pytest.raises(SystemExit):
            start()
    with monkeypatch.context() as patched:

        def killed(*_: object) -> None:
            raise RuntimeError("killed")

        patched.setattr(atomic_folder, "sync_entry", killed)
        with pytest.raises(RuntimeError, match="killed"):
            start()
    assert [line["update"] for line in measured("run", "valid")] == [4]
    start()
    same_as_whole()


@pytest.mark.parametrize("moment", ["the old one is set aside", "the new one has its name"])
def test_killed_while_a_checkpoint_takes_the_place_of_another(
    moment: str, here: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Only the checkpoint of the update whose validation was missing is written twice."""
    with monkeypatch.context() as patched:
        slow_validations(patched)
        with pytest.raises(SystemExit):
            start()
    with monkeypatch.context() as patched:
        rename, dies = Path.rename, moment == "the old one is set aside"

        def killed(path: Path, target: Path) -> Path:
            is_new = ".partial-" in path.name
            if dies and is_new:
                os.kill(os.getpid(), signal.SIGKILL)
            renamed = rename(path, target)
            if is_new:
                os.kill(os.getpid(), signal.SIGKILL)
            return renamed

        patched.setattr(atomic_folder, "_exchange", lambda first, second: False)  # as on some file systems
        patched.setattr(Path, "rename", killed)
        assert in_fork(command) == (-signal.SIGKILL, "")
    assert Path("run/checkpoints/.step-00000004.replaced").exists()
    assert Path("run/checkpoints/step-00000004").exists() != dies
    start()
    assert "going on from update 4\n" in capfd.readouterr().err
    same_as_whole()
    assert not list(Path("run/checkpoints").glob(".*"))


def test_a_signal_while_a_checkpoint_is_written_lets_it_be_whole(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        sync = atomic_folder.sync_entry

        def signalled(path: Path) -> None:
            if path.name == "model.safetensors" and "step-00000002" in str(path):
                os.kill(os.getpid(), signal.SIGTERM)
            sync(path)

        patched.setattr(atomic_folder, "sync_entry", signalled)
        with pytest.raises(SystemExit) as ended:
            start()
    assert ended.value.code == 143
    assert checkpoint_paths(Path("run")) == [checkpoint_path(Path("run"), 2), checkpoint_path(Path("run"), 3)]
    for folder in checkpoint_paths(Path("run")):
        checkpoint.check_resumable(folder)
    start()
    same_as_whole()


# ------------------------------------------------------------------------------------------------ disks that refuse


def in_fork(work: Callable[[], None]) -> tuple[int, str]:
    """The exit code of a fork of this process, and what it says on stderr."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.dup2(writing, 2)
        sys.stderr = os.fdopen(2, "w")
        code = 70
        try:
            work()
        except SystemExit as ended:
            code = int(ended.code or 0)
        finally:
            sys.stderr.flush()
            os._exit(code)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        said = pipe.read()
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), said


def command(*settings: str) -> None:
    choices = [part for each in (*SETTINGS, *settings) for part in ("--set", each)]
    main(["train", "config.yaml", "--precision", "float32", "--device", "cpu", "--quiet", *choices])


@pytest.mark.parametrize("file", ["training.safetensors"])
def test_no_room_for_a_checkpoint(file: str, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The size of a file is limited, which cuts off a write like a full disk."""
    start("training.stopping.updates=4")
    sizes = {name: Path("run/latest", name).stat().st_size for name in ("model.safetensors", "training.safetensors")}
    assert sizes["model.safetensors"] < sizes["training.safetensors"]

    write = checkpoint.write

    def limited(*arguments: Any) -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (sizes[file] - 1, resource.RLIM_INFINITY))
        write(*arguments)

    with monkeypatch.context() as patched:
        patched.setattr(checkpoint, "write", limited)
        code, said = in_fork(command)
    assert (code, said.count("\n")) == (2, 1), said
    assert said.startswith("error: run/checkpoints/step-00000006: cannot be written: File too large; what was saved")
    assert sorted(path.name for path in Path("run/checkpoints").iterdir()) == ["step-00000002", "step-00000004"]
    for folder in checkpoint_paths(Path("run")):
        checkpoint.check_resumable(folder)
    start()
    same_as_whole()


@pytest.mark.parametrize("file", ["model.safetensors", "SHA256SUMS"])
def test_a_full_disk(file: str, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    start("training.stopping.updates=4")
    with monkeypatch.context() as patched:
        sync = atomic_folder.sync_entry

        def full(path: Path) -> None:
            if path.name == file:
                os.truncate(path, path.stat().st_size // 2)
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            sync(path)

        patched.setattr(atomic_folder, "sync_entry", full)
        with pytest.raises(
            InputError, match=r"^run/checkpoints/step-00000006: cannot be written: No space left on dev"
        ):
            start()
    assert sorted(path.name for path in Path("run/checkpoints").iterdir()) == ["step-00000002", "step-00000004"]
    start()
    same_as_whole()


def test_a_full_disk_for_the_metrics(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Names the file; half a line is dropped by the next start."""
    start("training.stopping.updates=4")
    size = Path("run/metrics.jsonl").stat().st_size
    write = MetricsWriter.write

    def limited(metrics: MetricsWriter, *arguments: Any) -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size + 20, resource.RLIM_INFINITY))
        write(metrics, *arguments)

    with monkeypatch.context() as patched:
        patched.setattr(MetricsWriter, "write", limited)
        assert in_fork(command) == (2, "error: run/metrics.jsonl: File too large\n")
    assert Path("run/metrics.jsonl").stat().st_size == size + 20
    start()
    same_as_whole()


@pytest.mark.parametrize("begun", [False, True], ids=["new", "begun"])
def test_a_directory_that_may_not_be_written(begun: bool, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if begun:
        start("training.stopping.updates=2")
    else:
        Path("run").mkdir()
    before = sorted(path.name for path in Path("run").rglob("*"))
    real = Path.open

    def refused(path: Path, mode: str = "r", *arguments: Any, **named: Any) -> Any:
        if "run" in path.parts and mode != "r":
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))
        return real(path, mode, *arguments, **named)

    def read_only() -> None:
        monkeypatch.setattr(Path, "open", refused)
        command()

    assert in_fork(read_only) == (2, "error: run/.lock: Read-only file system\n")
    assert sorted(path.name for path in Path("run").rglob("*")) == before


# ------------------------------------------------------------------------------------------------- two trainings


def test_the_lock_goes_with_its_process(here: Path) -> None:
    """The lock is also released if the process is killed; the note of its owner, which then remains, excludes
    nobody."""
    Path("run").mkdir()
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        with workflow._exclusive_run(Path("run")):
            os.write(writing, b"locked")
            wait_long()
    try:
        os.read(reading, 6)
        with pytest.raises(InputError, match=rf"^run: process {child} on \S+ is training in it; wait for it, or set "):
            start()
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    assert Path("run/.lock").read_text().startswith(f"process {child} ")
    start()
    assert Path("run/.lock").read_text() == ""


def test_a_file_system_without_locks_is_warned_of(
    here: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def refused(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", refused)
    Path("run").mkdir()
    with workflow._exclusive_run(Path("run")):
        pass
    assert capfd.readouterr().err == (
        "warning: run: cannot be locked (No locks available): see to it that no other training uses it\n"
    )


def test_a_deleted_lock_file_admits_nobody(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first training goes on to its end. A release from before the directory itself was locked, which locks the
    file only, is kept out too, and keeps others out."""
    write = MetricsWriter.write

    def second(metrics: MetricsWriter, kind: str, update: int, values: Any) -> None:
        write(metrics, kind, update, values)
        if (kind, update) == ("train", 3):
            with Path("run/.lock").open() as lock, pytest.raises(BlockingIOError):
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            Path("run/.lock").unlink()
            code, said = in_fork(command)
            assert (code, said.count("\n")) == (2, 1)
            assert said.startswith("error: run: another process is training in it; wait for it, or set another run")

    with monkeypatch.context() as patched:
        patched.setattr(MetricsWriter, "write", second)
        start()
    same_as_whole()
    with Path("run/.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert in_fork(command)[0] == 2


def test_a_prepare_beside_a_training_disturbs_neither(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In its midst: of another vocabulary, at the same place. And begun before: the training waits."""
    write = MetricsWriter.write

    def prepared_anew(metrics: MetricsWriter, kind: str, update: int, values: Any) -> None:
        write(metrics, kind, update, values)
        if (kind, update) == ("train", 3):
            assert in_fork(lambda: main([*other, "--force"]))[0] == 0

    other = ["prepare", "config.yaml", "--quiet", "--set", "data.prepared=prepared", "--set", "data.subwords.size=50"]
    with monkeypatch.context() as patched:
        patched.setattr(MetricsWriter, "write", prepared_anew)
        start()
    same_as_whole()
    shutil.rmtree("run")
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        exchange = atomic_folder._exchange

        def slowly(first: Path, second: Path) -> bool:
            os.write(writing, b"at work")
            time.sleep(1)
            return exchange(first, second)

        atomic_folder._exchange = slowly
        try:
            main([*other, "--force"])
        finally:
            os._exit(0)
    os.read(reading, 7)
    start()
    same_as_whole()
    os.waitpid(child, 0)


def test_a_copy_of_a_training_at_work_goes_on(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The copies are made by ``cp -r`` before each step of a checkpoint, and of the deletion of an older one."""
    copies = itertools.count()

    def copied(event: str, arguments: tuple[Any, ...]) -> None:
        named = [each for each in arguments[:2] if isinstance(each, (str, Path))]
        if event in ("open", "os.rename", "os.rmdir") and any("step-00000004" in str(each) for each in named):
            os.spawnvp(os.P_WAIT, "cp", ["cp", "-r", "run", f"copy-{next(copies)}"])

    def train_beside() -> None:
        sys.addaudithook(copied)
        start("training.keep=1")
        sys.exit(0)

    assert in_fork(train_beside)[0] == 0
    for copy in (found := sorted(Path().glob("copy-*")))[::3]:
        start(f"run={copy}", "training.keep=1")
        same_as_whole(str(copy))
    assert len(found) > 5


# -------------------------------------------------------------------------------------- a run directory that is gone


def deleted() -> None:
    shutil.rmtree("run")


def moved() -> None:
    Path("run").rename("moved")


def replaced() -> None:
    Path("run").rename("moved")
    Path("run").mkdir()


def deleted_in_a_race() -> None:
    """Deletes the run like ``rm -r`` when a checkpoint is written meanwhile: the directory itself remains."""
    shutil.rmtree("run", ignore_errors=True)
    Path("run/checkpoints").mkdir(parents=True)


def deleted_slowly() -> None:
    """Deletes the run like ``rm -r``, which has not finished when a checkpoint misses its folder."""
    shutil.rmtree("run/checkpoints")
    time.sleep = lambda _: shutil.rmtree("run")


MOMENTS: dict[str, tuple[object, str]] = {
    "the first line": (experiments, "save"),
    "an update": (MetricsWriter, "write"),
    "a validation": (Validation, "_write_snapshot"),
    "a checkpoint": (checkpoint, "_write_tensors"),
    "the average": (averaging, "average_weights"),
    "the last line": (workflow, "_outcome"),
}


@pytest.mark.parametrize(
    ("change", "moment"),
    [*((deleted, moment) for moment in MOMENTS), (moved, "a checkpoint"), (replaced, "a validation"),
     (replaced, "an update"), (deleted_in_a_race, "an update"), (deleted_slowly, "a checkpoint")],
    ids=lambda each: each if isinstance(each, str) else each.__name__,
)  # fmt: skip
def test_a_run_directory_that_is_gone_is_not_made_anew(
    change: Callable[[], None], moment: str, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In one line, and at the latest when something is to be written."""
    owner, name = MOMENTS[moment]
    real, calls = getattr(owner, name), itertools.count(1)
    before: list[Path] = []

    def then(*arguments: Any, **named: Any) -> Any:
        if next(calls) == (3 if moment == "an update" else 1):
            change()
            before.extend(Path("run").rglob("*"))
        return real(*arguments, **named)

    monkeypatch.setattr(owner, name, then)
    code, said = in_fork(lambda: command("training.average=2", "training.snapshots=1"))
    assert said.startswith("error: run: was deleted or moved while it trained; "), said
    assert (code, said.count("\n")) == (1, 1)
    assert Path("run").exists() == (change in (replaced, deleted_in_a_race))
    assert [path for path in Path("run").rglob("*") if path.is_file()] == []
    if Path("moved").exists():
        monkeypatch.setattr(owner, name, real)
        start("run=moved", "training.average=2", "training.snapshots=1")
        assert read_tensors(Path("moved/latest/model.safetensors")).keys()


# ------------------------------------------------------------------------------------------------------- damage


def cut_off(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def flip_a_bit(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[-20 if path.suffix == ".safetensors" else 8] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize(
    ("file", "damage"),
    [("model.safetensors", cut_off), ("training.safetensors", flip_a_bit), ("state.json", Path.unlink)],
)
def test_damage_is_named_and_can_be_skipped(
    file: str, damage: Callable[[Path], None], here: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    start("training.stopping.updates=6")
    damage(Path("run/checkpoints/step-00000006", file))
    with pytest.raises(InputError) as refused:
        start()
    assert str(refused.value).startswith(f"run/checkpoints/step-00000006/{file}: unreadable checkpoint, ")
    assert str(refused.value).endswith("; or go on from the newest whole one with nmt train --skip-damaged")
    assert "\n" not in str(refused.value)
    capfd.readouterr()
    log.set_verbosity(log.Verbosity.NORMAL)
    start(skip_damaged=True)
    said = capfd.readouterr().err
    assert f"warning: run/checkpoints/step-00000006/{file}: unreadable checkpoint" in said
    assert "set aside as damaged-step-00000006\n" in said
    assert "going on from update 4\n" in said
    assert Path("run/checkpoints/damaged-step-00000006").is_dir()
    same_as_whole()


def test_several_damaged_ones_are_skipped_and_whole_ones_never(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    start("training.stopping.updates=6")
    for update in (4, 6):
        flip_a_bit(checkpoint_path(Path("run"), update) / "training.safetensors")
    start("training.stopping.updates=7", skip_damaged=True)
    assert "going on from update 2\n" in capfd.readouterr().err
    start(skip_damaged=True)
    assert "going on from update 7\n" in capfd.readouterr().err
    names = sorted(path.name for path in Path("run/checkpoints").glob("damaged-*"))
    assert names == ["damaged-step-00000004", "damaged-step-00000006"]


def test_where_none_is_whole_nothing_is_touched(here: Path) -> None:
    start("training.stopping.updates=2")
    flip_a_bit(Path("run/latest/model.safetensors"))
    with pytest.raises(
        InputError, match=r"^run: holds no checkpoint that is whole; run/checkpoints/step-00000002/model"
    ):
        start(skip_damaged=True)
    assert [path.name for path in Path("run/checkpoints").iterdir()] == ["step-00000002"]


def _forget_format(state: Path) -> None:
    """Checksums came before it."""
    tree = json.loads(state.read_text("utf-8"))
    del tree["format"]
    state.write_text(json.dumps(tree), encoding="utf-8")


def test_a_checkpoint_from_before_checksums_is_gone_on_from_with_a_note(
    here: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    start("training.stopping.updates=4")
    for sums in Path("run/checkpoints").glob("*/SHA256SUMS"):
        sums.unlink()
        _forget_format(sums.with_name("state.json"))
    log.set_verbosity(log.Verbosity.VERBOSE)
    try:
        start()
    finally:
        log.set_verbosity(log.Verbosity.NORMAL)
    assert "run/checkpoints/step-00000004: has no SHA256SUMS" in capfd.readouterr().err
    same_as_whole()
    cut_off(Path("run/latest/model.safetensors"))
    Path("run/latest/SHA256SUMS").unlink()
    _forget_format(Path("run/latest/state.json"))
    with pytest.raises(InputError, match="unreadable checkpoint"):
        checkpoint.check_resumable(Path("run/latest"))

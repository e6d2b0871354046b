"""``nmt train``: the run directory and what it refuses. SIGTERM at an awkward moment, disks that refuse, damaged
checkpoints: nothing is lost, and one line says why.

Trainings run in this process where nothing depends on its end.
"""

from __future__ import annotations

import errno
import fcntl
import itertools
import os
import resource
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
import yaml

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
from tests.workflows.killing import fork
from tests.workflows.runs import (
    CONFIG,
    Command,
    Done,
    assert_same_bits,
    in_process,
    json_lines,
    measured,
    place,
    settings_of,
    train_here,
)

RUN = Path("run")
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
    return train_here(*SETTINGS, *settings, skip_damaged=skip_damaged)


def same_as_whole(run: str = "run", whole: str = "whole") -> None:
    """The run has come to the end of the one that nothing has disturbed."""
    assert_same_bits(Path(run, "latest"), Path(whole, "latest"))
    assert Path(run, "best").readlink() == Path(whole, "best").readlink()
    assert measured(run) == measured(whole)
    states = [read_state(Path(each) / "latest") for each in (whole, run)]
    for state in states:
        del state["position"]["seconds"]
    assert states[0] == states[1]


def names(folder: str = "run/checkpoints", pattern: str = "*") -> list[str]:
    return sorted(path.name for path in Path(folder).glob(pattern))


@contextmanager
def before(owner: object, name: str, action: Callable[..., object]) -> Iterator[None]:
    """Has a function call ``action`` with its positional arguments before it does its work."""
    real = getattr(owner, name)

    def both(*arguments: Any, **named: Any) -> Any:
        action(*arguments)
        return real(*arguments, **named)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(owner, name, both)
        yield


def interrupt(number: int = signal.SIGTERM) -> None:
    os.kill(os.getpid(), number)


def slow_validations(number: int = signal.SIGTERM, *, first: int = 1) -> Any:
    """Has the ``first`` validation, and those after it, take ten minutes after a signal has come."""
    count = itertools.count(1)

    def hold(*_: object) -> None:
        if next(count) >= first:
            interrupt(number)
            wait_long()

    return before(Validation, "__call__", hold)


def wait_long() -> None:
    time.sleep(600)


# ------------------------------------------------------------------------------------------------ the run directory


@pytest.fixture
def train(capsys: pytest.CaptureFixture[str]) -> Callable[..., Done]:
    """Trains through the command line in the current folder, with changes of config.yaml."""
    command = in_process(capsys, "train", "config.yaml", "--precision", "float32")
    return lambda *changes, more=(): command(*settings_of(*changes), *more)


@pytest.mark.usefixtures("copied")
def test_a_run_is_complete_and_nothing_is_left_to_do(train: Command) -> None:
    assert {*names("run")} >= {"config.yaml", "subwords.model", "metrics.jsonl", "checkpoints", "best", "latest"}
    resolved = yaml.safe_load(Path("run/config.yaml").read_text())
    assert resolved["training"]["optimizer"]["beta2"] == 0.98  # defaults are written out
    lines = json_lines("run/metrics.jsonl")
    assert [(line["kind"], line["update"]) for line in lines] == [("train", 1), ("train", 2), ("valid", 2)]
    assert lines[-1].keys() >= {"loss", "perplexity", "accuracy", "bleu"}
    before = sorted((path, path.stat().st_mtime_ns) for path in Path("run/checkpoints").rglob("*"))
    done = train()
    assert (done.code, "nothing to do" in done.stderr) == (0, True)
    assert before == sorted((path, path.stat().st_mtime_ns) for path in Path("run/checkpoints").rglob("*"))
    done = train("training.stopping.updates=3")  # is no other configuration
    assert (done.code, "going on from update 2" in done.stderr) == (0, True)
    assert Path("run/latest").readlink().name == "step-00000003"


@pytest.mark.usefixtures("copied")
def test_what_another_configuration_or_corpus_has_made_is_left_alone(train: Command, nmt: Command) -> None:
    keys = "model.decoder.size, seed"
    assert train("model.decoder.size=24", "seed=9").error.replace("seed, model.decoder.size", keys) == (
        f"run: was made by a configuration with other {keys}; go on with its own, nmt train run/config.yaml (more "
        "updates: --set training.stopping.updates=N --extend), or set another run"
    )
    before = Path("run/subwords.model").read_bytes()
    for side, line in (("de", "eins eins eins eins zwei.\n"), ("en", "one one one one two.\n")):
        with Path(f"train.{side}").open("a") as corpus:
            corpus.write(line)
    assert "was trained on another corpus" in train("training.stopping.updates=3").error
    assert Path("run/subwords.model").read_bytes() == before
    assert nmt("translate", "run", stdin=b"eins zwei.\n").code == 0


@pytest.mark.usefixtures("copied")
def test_a_schedule_to_the_end_is_extended_or_cut_short_on_request(train: Command) -> None:
    def until(updates: int, *more: str) -> Done:
        schedule = "training.schedule={kind: linear, warmup: 1}"
        return train("run=other", schedule, f"training.stopping.updates={updates}", more=more)

    assert until(4).code == 0
    assert until(8).error == (
        "other: its learning rate follows a schedule of 4 updates, and training.stopping.updates is 8 now; add "
        "--extend to go on by the new schedule, or set another run"
    )
    assert until(8, "--extend").code == 0
    assert until(8).code == 0  # what was extended is the run's configuration by now
    rates = {line["update"]: line["learning_rate"] for line in measured("other", "train")}
    # linear from the first update to 0 at the last: by the schedule of 4 updates until 4, then by that of 8
    expected = {2: 2 / 3, 3: 1 / 3, 4: 0.0, 5: 3 / 7, 6: 2 / 7, 7: 1 / 7, 8: 0.0}
    assert {update: rates[update] / rates[1] for update in expected} == pytest.approx(expected)
    cut = until(6, "--extend")
    assert (cut.code, "nothing to do" in cut.stderr) == (0, True)


def test_a_config_is_mended_until_there_is_a_checkpoint(
    train: Command, nmt: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has no valid corpus."""
    monkeypatch.chdir(place(tmp_path, CONFIG.replace("  valid: {source: valid.de, target: valid.en}\n", "")))
    assert "nowhere.de" in train("data.train.source=nowhere.de").error
    assert "data.subwords.size" in train("data.subwords.size=999").error
    assert train().code == 0
    assert nmt("translate", "run", stdin=b"eins.\n").output.count("\n") == 1


def test_a_configuration_in_the_run_directory_is_not_overwritten(
    nmt: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(place(tmp_path, CONFIG))
    Path("run").mkdir()
    own = Path("config.yaml").rename("run/config.yaml")
    text = own.read_text()
    assert nmt("train", own).error.startswith("run/config.yaml: training writes the complete configuration there")
    assert own.read_text() == text
    own.rename("mine.yaml")
    own.write_text(experiments.dump(experiments.load(Path("mine.yaml"))))  # of a training without a checkpoint
    assert nmt("train", "mine.yaml").code == 0


@pytest.mark.usefixtures("copied")
@pytest.mark.parametrize("run", ["train.de", "train.de/x"])
def test_a_run_directory_that_cannot_be_made_is_named(run: str, train: Command) -> None:
    assert train(f"run={run}").error.startswith(f"run: {run}: cannot be")


@pytest.mark.usefixtures("copied")
def test_a_loss_that_is_not_finite_names_the_lines(train: Command) -> None:
    changes = ("training.clip_norm=null", "training.stopping.updates=9", "training.validation.every=99")
    error = train("run=other", "training.optimizer.learning_rate=1e38", *changes).error
    assert "is not finite at update" in error
    assert "train.de + train.en lines " in error


@pytest.mark.usefixtures("copied")
def test_cuda_without_one_is_a_clear_error(train: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    assert train(more=("--device", "cuda")).error == "--device cuda: no CUDA device is there; use --device cpu or auto"


# -------------------------------------------------------------------------------------------------------- a signal


each_signal = pytest.mark.parametrize(
    ("number", "ends"), [(signal.SIGTERM, SystemExit), (signal.SIGINT, KeyboardInterrupt)]
)


@each_signal
def test_a_signal_during_an_update_saves_and_ends(number: int, ends: type[BaseException], here: Path) -> None:
    """At an update without a checkpoint of its own."""
    calls = itertools.count(1)
    third = before(Objective, "backward", lambda *_: interrupt(number) if next(calls) == 3 else None)
    with third, pytest.raises(ends):
        start()
    assert latest_checkpoint(RUN) == checkpoint_path(RUN, 3)
    start()
    same_as_whole()


def test_killed_between_the_last_checkpoint_and_its_link(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    set_link(Path("whole"), "latest", checkpoint_path(Path("whole"), 6))
    start("run=whole")
    assert "nothing to do" in capfd.readouterr().err
    assert Path("whole/latest").resolve() == checkpoint_path(Path("whole"), 8).resolve()


@each_signal
def test_a_signal_ends_a_validation_that_would_take_long(number: int, ends: type[BaseException], here: Path) -> None:
    with slow_validations(number):
        for _ in range(2):  # the second one is stopped in the validation that the first one owes
            began = time.monotonic()
            with pytest.raises(ends) as ended:
                start()
            assert time.monotonic() - began < 60
            assert latest_checkpoint(RUN) == checkpoint_path(RUN, 4)
            assert read_state(checkpoint_path(RUN, 4))["owes_validation"] is True
            assert measured("run", "valid") == []
    assert getattr(ended.value, "code", 143) == 143
    start()
    same_as_whole()


@pytest.mark.parametrize("first", [2, 3], ids=["last update", "average"])
def test_a_signal_ends_the_last_validations(first: int, here: Path) -> None:
    start("run=other", "training.average=2")
    with slow_validations(first=first), pytest.raises(SystemExit):
        start("training.average=2")
    assert not Path("run/averaged").exists()
    start("training.average=2")
    same_as_whole(whole="other")
    assert_same_bits(Path("run/averaged"), Path("other/averaged"), "model.safetensors")


def test_a_validation_that_is_killed_after_measuring_is_not_told_twice(here: Path) -> None:
    with slow_validations(), pytest.raises(SystemExit):
        start()
    killed = before(atomic_folder, "sync_entry", Mock(side_effect=RuntimeError("killed")))
    with killed, pytest.raises(RuntimeError, match="killed"):
        start()
    assert [line["update"] for line in measured("run", "valid")] == [4]
    start()
    same_as_whole()


@pytest.mark.parametrize("moment", ["the old one is set aside", "the new one has its name"])
def test_killed_while_a_checkpoint_takes_the_place_of_another(
    moment: str, here: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Only the checkpoint of the update whose validation was missing is written twice."""
    with slow_validations(), pytest.raises(SystemExit):
        start()
    rename, dies = Path.rename, moment == "the old one is set aside"

    def killed(path: Path, target: Path) -> Path:
        is_new = ".partial-" in path.name
        renamed = path if is_new and dies else rename(path, target)
        if is_new:
            interrupt(signal.SIGKILL)
        return renamed

    with monkeypatch.context() as patched:
        patched.setattr(atomic_folder, "_exchange", lambda first, second: False)  # as on some file systems
        patched.setattr(Path, "rename", killed)
        assert in_fork(command) == (-signal.SIGKILL, "")
    assert Path("run/checkpoints/.step-00000004.replaced").exists()
    assert Path("run/checkpoints/step-00000004").exists() != dies
    start()
    assert "going on from update 4\n" in capfd.readouterr().err
    same_as_whole()
    assert names(pattern=".*") == []


def test_a_signal_while_a_checkpoint_is_written_lets_it_be_whole(here: Path) -> None:
    def signalled(path: Path) -> None:
        if path.name == "model.safetensors" and "step-00000002" in str(path):
            interrupt()

    with before(atomic_folder, "sync_entry", signalled), pytest.raises(SystemExit) as ended:
        start()
    assert ended.value.code == 143
    assert checkpoint_paths(RUN) == [checkpoint_path(RUN, 2), checkpoint_path(RUN, 3)]
    for folder in checkpoint_paths(RUN):
        checkpoint.check_resumable(folder)
    start()
    same_as_whole()


# ------------------------------------------------------------------------------------------------ disks that refuse


def in_fork(work: Callable[[], object]) -> tuple[int, str]:
    """The exit code of a fork of this process, and what it says on stderr."""
    return fork(work, descriptor=2)


def command(*settings: str) -> None:
    changes = settings_of(*SETTINGS, *settings)
    main(["train", "config.yaml", "--precision", "float32", "--device", "cpu", "--quiet", *changes])


@pytest.mark.parametrize(
    ("owner", "file", "room", "message"),
    [
        (checkpoint, "latest/training.safetensors", -1,
         "checkpoints/step-00000006: cannot be written: File too large; what was saved"),
        (MetricsWriter, "metrics.jsonl", 20, "metrics.jsonl: File too large\n"),  # the next start drops half a line
    ],
)  # fmt: skip
def test_no_room(owner: object, file: str, room: int, message: str, here: Path) -> None:
    """The size of a file is limited, which cuts off a write like a full disk."""
    start("training.stopping.updates=4")
    size = (RUN / file).stat().st_size + room
    with before(owner, "write", lambda *_: resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))):
        code, said = in_fork(command)
    assert (code, said.count("\n")) == (2, 1), said
    assert said.startswith(f"error: run/{message}")
    assert owner is checkpoint or (RUN / file).stat().st_size == size
    assert names() == ["step-00000002", "step-00000004"]
    start()
    same_as_whole()


@pytest.mark.parametrize("begun", [False, True], ids=["new", "begun"])
def test_a_directory_that_may_not_be_written(begun: bool, here: Path) -> None:
    if begun:
        start("training.stopping.updates=2")
    RUN.mkdir(exist_ok=True)
    contents = sorted(RUN.rglob("*"))

    def refuse(path: Path, mode: str = "r", *_: object) -> None:
        if "run" in path.parts and mode != "r":
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))

    with before(Path, "open", refuse):
        assert in_fork(command) == (2, "error: run/.lock: Read-only file system\n")
    assert sorted(RUN.rglob("*")) == contents


# ------------------------------------------------------------------------------------------------- two trainings


def test_the_lock_goes_with_its_process(here: Path) -> None:
    """The lock is also released if the process is killed; the note of its owner, which then remains, excludes
    nobody."""
    RUN.mkdir()
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        with workflow._exclusive_run(RUN):
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


def test_a_file_system_without_locks_is_warned_of(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    RUN.mkdir()
    refused = OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))
    with before(fcntl, "flock", Mock(side_effect=refused)), workflow._exclusive_run(RUN):
        pass
    message = "run: cannot be locked (No locks available): see to it that no other training uses it"
    assert capfd.readouterr().err == f"warning: {message}\n"


def at_update_3(action: Callable[[], object]) -> Any:
    """Has a training do something when it is about to write the measurements of its third update."""
    return before(MetricsWriter, "write", lambda _, *line: action() if line[:2] == ("train", 3) else None)


def test_a_deleted_lock_file_admits_nobody(here: Path) -> None:
    """The first training goes on to its end. A release from before the directory itself was locked, which locks the
    file only, is kept out too, and keeps others out."""

    def second() -> None:
        with Path("run/.lock").open() as lock, pytest.raises(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        Path("run/.lock").unlink()
        code, said = in_fork(command)
        assert (code, said.count("\n")) == (2, 1)
        assert said.startswith("error: run: another process is training in it; wait for it, or set another run")

    with at_update_3(second):
        start()
    same_as_whole()
    with Path("run/.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert in_fork(command)[0] == 2


def test_a_prepare_beside_a_training_disturbs_neither(here: Path) -> None:
    """In its midst: of another vocabulary, at the same place. And begun before: the training waits."""
    settings = ("--set", "data.prepared=prepared", "--set", "data.subwords.size=50")

    def prepare() -> None:
        main(["prepare", "config.yaml", "--quiet", *settings, "--force"])

    codes = []
    with at_update_3(lambda: codes.append(in_fork(prepare)[0])):
        start()
    assert codes == [0]
    same_as_whole()
    shutil.rmtree("run")
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            with before(atomic_folder, "_exchange", lambda *_: (os.write(writing, b"at work"), time.sleep(1))):
                prepare()
        finally:
            os._exit(0)
    os.read(reading, 7)
    start()
    same_as_whole()
    # it has done its work; the fork of a process with threads may wait for a lock of one of them for ever
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def test_a_copy_of_a_training_at_work_goes_on(here: Path) -> None:
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
    for copy in (found := names(".", "copy-*"))[::3]:
        start(f"run={copy}", "training.keep=1")
        same_as_whole(copy)
    assert len(found) > 5


# -------------------------------------------------------------------------------------- a run directory that is gone


def deleted() -> None:
    shutil.rmtree("run")


def moved() -> None:
    RUN.rename("moved")


def replaced() -> None:
    moved()
    RUN.mkdir()


def deleted_in_a_race() -> None:
    """Deletes the run like ``rm -r`` when a checkpoint is written meanwhile: the directory itself remains."""
    deleted()
    Path("run/checkpoints").mkdir(parents=True)


def deleted_slowly() -> None:
    """Deletes the run like ``rm -r``, which has not finished when a checkpoint misses its folder."""
    shutil.rmtree("run/checkpoints")
    time.sleep = lambda _: deleted()


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
def test_a_run_directory_that_is_gone_is_not_made_anew(change: Callable[[], None], moment: str, here: Path) -> None:
    """In one line, and at the latest when something is to be written."""
    calls, which = itertools.count(1), 3 if moment == "an update" else 1
    settings = ("training.average=2", "training.snapshots=1")
    with before(*MOMENTS[moment], lambda *_: change() if next(calls) == which else None):
        code, said = in_fork(lambda: command(*settings))
    assert said.startswith("error: run: was deleted or moved while it trained; "), said
    assert (code, said.count("\n")) == (1, 1)
    assert RUN.exists() == (change in (replaced, deleted_in_a_race))
    assert [path for path in RUN.rglob("*") if path.is_file()] == []
    if Path("moved").exists():
        start("run=moved", *settings)
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
    unreadable = f"run/checkpoints/step-00000006/{file}: unreadable checkpoint"
    remedy = "; or go on from the newest whole one with nmt train --skip-damaged"
    with pytest.raises(InputError, match=f"^{unreadable}; .*{remedy}$"):
        start()
    capfd.readouterr()
    log.set_verbosity(log.Verbosity.NORMAL)
    start(skip_damaged=True)
    said = capfd.readouterr().err
    for message in (f"warning: {unreadable}", "set aside as damaged-step-00000006\n", "going on from update 4\n"):
        assert message in said
    assert Path("run/checkpoints/damaged-step-00000006").is_dir()
    same_as_whole()


def test_several_damaged_ones_are_skipped_and_whole_ones_never(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    start("training.stopping.updates=2")
    flip_a_bit(Path("run/latest/model.safetensors"))
    message = r"^run: holds no checkpoint that is whole; run/checkpoints/step-00000002/model"
    with pytest.raises(InputError, match=message):
        start(skip_damaged=True)
    assert names() == ["step-00000002"]
    flip_a_bit(Path("run/latest/model.safetensors"))
    start("training.stopping.updates=6")
    for update in (4, 6):
        flip_a_bit(checkpoint_path(RUN, update) / "training.safetensors")
    start("training.stopping.updates=7", skip_damaged=True)
    assert "going on from update 2\n" in capfd.readouterr().err
    start(skip_damaged=True)
    assert "going on from update 7\n" in capfd.readouterr().err
    assert names(pattern="damaged-*") == ["damaged-step-00000004", "damaged-step-00000006"]

"""Several processes learn what one learns.

Processes are forked from a server that has imported torch and not computed with it, and meet by the variables that
torchrun sets; torchrun itself starts them where its own part is tested.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from multiprocessing.context import ForkServerContext, ForkServerProcess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.torch
import torch
from hypothesis import given
from hypothesis import strategies as st

from nmt.core.errors import InputError
from nmt.training import checkpoint
from nmt.training.checkpoint import read_tensors
from nmt.training.distributed import LaunchEnvironment, ProcessGroup, shares
from nmt.training.processes import Processes
from nmt.training.trainer import Trainer
from tests.workflows.runs import assert_same_bits, error, nmt, place

NO_DROPOUT = "model.dropout={embedding: 0.0, layers: 0.0}"
ENDLESS = ("training.stopping.updates=1000000", "training.validation.every=1000000", "training.save_every=1000000")


# -------------------------------------------------------------------------------------------- pure functions


@given(
    lengths=st.lists(st.integers(1, 100), max_size=40).map(lambda each: np.array(each, np.int32)),
    size=st.integers(1, 5),
)
def test_shares_have_each_row_once_in_order_and_weigh_alike(lengths: Any, size: int) -> None:
    parts = shares(lengths, size)
    assert len(parts) == size
    assert sorted(row for part in parts for row in part.tolist()) == list(range(len(lengths)))
    assert all(part.tolist() == sorted(part.tolist()) for part in parts)
    tokens = [int(lengths[part].sum()) for part in parts]
    assert max(tokens) - min(tokens) <= max(lengths, default=0)
    rows = [len(part) for part in parts]
    assert max(rows) - min(rows) <= 1


WHOLE = {"RANK": "1", "WORLD_SIZE": "2", "LOCAL_RANK": "1", "MASTER_ADDR": "localhost", "MASTER_PORT": "1234"}


def test_the_environment_says_which_process_this_is() -> None:
    assert LaunchEnvironment.of(WHOLE) == LaunchEnvironment(rank=1, size=2, local_rank=1, local_size=1)
    assert LaunchEnvironment.of({**WHOLE, "LOCAL_WORLD_SIZE": "2"}).local_size == 2


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"LOCAL_RANK": None, "MASTER_PORT": None}, "LOCAL_RANK, MASTER_PORT not"),
        ({"RANK": None}, "WORLD_SIZE is set, but RANK not"),
        ({"RANK": "2"}, "RANK=2 is not below WORLD_SIZE=2"),
        ({"WORLD_SIZE": "two"}, "WORLD_SIZE=two is not a whole number"),
        ({"MASTER_PORT": "70000"}, "MASTER_PORT=70000 is not a port"),
    ],
)
def test_an_environment_that_makes_no_sense_is_refused(change: dict[str, str | None], says: str) -> None:
    with pytest.raises(InputError, match=says) as refused:
        LaunchEnvironment.of({name: value for name, value in (WHOLE | change).items() if value is not None})
    assert "\n" not in str(refused.value)


def test_each_process_takes_its_own_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr("torch.cuda.device_count", lambda: 2)
    second = ProcessGroup(LaunchEnvironment(rank=3, size=4, local_rank=1))
    assert [second.device(name) for name in ("auto", "cuda", "cpu")] == ["cuda:1", "cuda:1", "cpu"]
    assert Processes().device("cuda:1") == "cuda:1"
    with pytest.raises(InputError, match="--device cuda:1: is one GPU for 4 processes"):
        second.device("cuda:1")
    with pytest.raises(InputError, match="more processes than GPUs"):
        ProcessGroup(LaunchEnvironment(rank=2, size=4, local_rank=2)).device("auto")


def test_the_others_are_asked_for_their_sums_once_a_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many parts this process makes of its share: they do not know how many."""
    asked: list[Sequence[float]] = []

    def total(self: ProcessGroup, values: Sequence[float]) -> list[float]:
        asked.append(values)
        return [value + 10.0 for value in values]

    monkeypatch.setattr(ProcessGroup, "all_reduce", total)
    summed = ProcessGroup(LaunchEnvironment(0, 2)).batch_all_reduce()
    assert [summed(torch.tensor(own)).tolist() for own in ([1.0, 2.0], [3.0, 4.0])] == [[11.0, 12.0], [13.0, 14.0]]
    assert asked == [[1.0, 2.0]]


# ------------------------------------------------------------------------------------------------ processes


def _environment(rank: int, size: int, port: int) -> dict[str, str]:
    return {
        "RANK": str(rank), "WORLD_SIZE": str(size), "LOCAL_RANK": str(rank), "MASTER_ADDR": "localhost",
        "MASTER_PORT": str(port),
    }  # fmt: skip


def _arguments(settings: Sequence[str]) -> list[str]:
    given = [part for setting in settings for part in ("--set", setting)]
    return ["train", "config.yaml", "--device", "cpu", "--precision", "float32", *given]


def _process(folder: Path, rank: int, environment: dict[str, str], settings: Sequence[str]) -> None:
    """The command line in a forked process, its stderr in a file."""
    os.chdir(folder)
    os.environ.update(environment)
    with (folder / f"stderr-{rank}").open("wb") as file:
        os.dup2(file.fileno(), 2)
    from nmt.cli.app import main

    main(_arguments(settings))


def _weights_of_each(folder: Path, rank: int, environment: dict[str, str], settings: Sequence[str]) -> None:
    """The same, and leaves the weights that this process ends with."""
    train = Trainer.train

    def spy(self: Trainer) -> None:
        train(self)
        safetensors.torch.save_file(checkpoint.named_weights(self.model), folder / f"weights-{rank}.safetensors")

    Trainer.train = spy  # type: ignore[method-assign]
    _process(folder, rank, environment, settings)


def _slow_to_save(folder: Path, rank: int, environment: dict[str, str], settings: Sequence[str]) -> None:
    """The same, but a checkpoint takes a second to write."""
    write = checkpoint.write

    def slowly(*arguments: Any) -> None:
        time.sleep(1.0)
        write(*arguments)

    checkpoint.write = slowly
    _process(folder, rank, environment, settings)


def _configured_by_rank(folder: Path, rank: int, environment: dict[str, str], settings: Sequence[str]) -> None:
    _process(folder, rank, environment, [*settings, f"training.label_smoothing=0.{rank}"])


def _sums_of_each(folder: Path, rank: int, environment: dict[str, str], settings: Sequence[str]) -> None:
    """Leaves behind what this process has summed, and what it was told that all have."""
    asked: list[dict[str, list[float]]] = []
    batch_all_reduce = ProcessGroup.batch_all_reduce

    def noting(self: ProcessGroup) -> Callable[[torch.Tensor], torch.Tensor]:
        summed = batch_all_reduce(self)

        def noted(own_N: torch.Tensor) -> torch.Tensor:
            all_N = summed(own_N)
            asked.append({"own": own_N.tolist(), "all": all_N.tolist()})
            return all_N

        return noted

    ProcessGroup.batch_all_reduce = noting  # type: ignore[method-assign]
    try:
        _process(folder, rank, environment, settings)
    finally:
        (folder / f"sums-{rank}.json").write_text(json.dumps(asked), encoding="utf-8")


@pytest.fixture(scope="module")
def context() -> Iterator[ForkServerContext]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("OMP_NUM_THREADS", "1")
        context = multiprocessing.get_context("forkserver")
        # what takes seconds to import, the compiler too, which torch's optimizers load
        context.set_forkserver_preload(["nmt.workflows.train", "nmt.cli.app", "torch._dynamo", "sacrebleu"])
        yield context


Begin = Callable[..., list[ForkServerProcess]]


@pytest.fixture
def begin(context: ForkServerContext) -> Iterator[Begin]:
    """Starts so many processes in a folder."""
    started: list[ForkServerProcess] = []

    def start(folder: Path, size: int, *settings: str, target: Callable[..., None] = _process) -> list[Any]:
        with socket.socket() as free:
            free.bind(("localhost", 0))
            port = free.getsockname()[1]
        ranks = [(rank, _environment(rank, size, port) if size > 1 else {}) for rank in range(size)]
        processes = [context.Process(target=target, args=(folder, *each, settings)) for each in ranks]
        started.extend(processes)
        for process in processes:
            process.start()
        return processes

    yield start
    for process in started:
        process.kill()
        process.join()


Start = Callable[..., None]


@pytest.fixture
def start(begin: Begin) -> Start:
    """The same, to a good end."""

    def run(folder: Path, *arguments: Any, **options: Any) -> None:
        assert not any(ended(begin(folder, *arguments, **options))), said(folder, 0)

    return run


def ended(processes: Sequence[ForkServerProcess], seconds: float = 60.0) -> list[int | None]:
    """The exit codes; None for a process that has not ended by then."""
    deadline = time.monotonic() + seconds
    for process in processes:
        process.join(max(deadline - time.monotonic(), 0.0))
    return [process.exitcode for process in processes]


def said(folder: Path, rank: int) -> str:
    return (folder / f"stderr-{rank}").read_text(encoding="utf-8")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The corpus, with links for two pairs of three."""
    pairs = (place(tmp_path) / "train.de").read_text(encoding="utf-8").splitlines()
    links = [" ".join(f"{n}-{n}" for n in range(len(pair.split()))) * (i % 3 > 0) for i, pair in enumerate(pairs)]
    (tmp_path / "train.align").write_text("".join(f"{each}\n" for each in links), encoding="utf-8")
    return tmp_path


def lines(run: Path, kind: str = "train") -> list[dict[str, Any]]:
    path = run / "metrics.jsonl"
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    return [each for each in map(json.loads, text.split("\n")[:-1]) if each["kind"] == kind]


def losses(run: Path) -> list[float]:
    assert [line["update"] for line in lines(run)] == list(range(1, len(lines(run)) + 1))
    return [line["loss"] for line in lines(run)]


def wait_for_updates(folder: Path, updates: int) -> None:
    wait_until(lambda: len(lines(folder / "run")) >= updates)


def wait_until(has_happened: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not has_happened():
        assert time.monotonic() < deadline, "it never came so far"
        time.sleep(0.02)


GUIDED = (
    "data.train={source: train.de, target: train.en, links: train.align}",
    "training.guided_attention={weight: 5}", "training.accumulate=2", "training.batching.batch_tokens=25",
)  # fmt: skip


@pytest.mark.parametrize(
    ("size", "settings"),
    [
        pytest.param(2, ["training.accumulate=2", "training.ema=0.9"], marks=pytest.mark.slow),
        pytest.param(2, ["training.normalization=sentences", "training.clip_norm=5.0"], marks=pytest.mark.slow),
        pytest.param(2, ["data.subwords={kind: unigram, size: 36, sampling: 0.2}"], marks=pytest.mark.slow),
        pytest.param(3, ["training.batching.batch_tokens=25"], marks=pytest.mark.slow),  # with empty shares
        (3, GUIDED),
    ],
)
def test_several_processes_learn_what_one_learns(
    size: int, settings: Sequence[str], folder: Path, start: Start
) -> None:
    settings = [*settings, NO_DROPOUT, "training.stopping.updates=15", "training.validation.every=6"]
    settings.append("training.optimizer.learning_rate=0.02")
    start(folder, 1, "run=one", *settings)
    start(folder, size, "run=several", *settings)
    one, several = folder / "one", folder / "several"
    assert len(losses(one)) == 15
    assert losses(one)[-1] < 0.8 * losses(one)[0]
    assert losses(several) == pytest.approx(losses(one), abs=1e-4)
    guidance = [[line.get("guidance", 0.0) for line in lines(run)] for run in (one, several)]
    assert guidance[1] == pytest.approx(guidance[0], abs=1e-4)
    assert any(guidance[0]) == any("guided" in each for each in settings)
    measured = [[line["loss"] for line in lines(run, "valid")] for run in (one, several)]
    assert len(measured[0]) == 3
    assert measured[1] == pytest.approx(measured[0], abs=1e-3)
    states = [json.loads((run / "latest" / "state.json").read_text())["position"] for run in (one, several)]
    assert [state["tokens"] for state in states] == [states[0]["tokens"]] * 2


def test_all_end_with_the_same_bits_and_one_writes_and_speaks(folder: Path, start: Start) -> None:
    settings = ("training.stopping.updates=12", "training.validation.every=6", "training.average=2")
    start(folder, 3, *settings, target=_weights_of_each)
    saved = read_tensors(folder / "run" / "latest" / "model.safetensors")
    for rank in range(3):
        own = read_tensors(folder / f"weights-{rank}.safetensors")
        assert own.keys() == saved.keys()
        assert all(own[name].numpy().tobytes() == tensor.numpy().tobytes() for name, tensor in saved.items())
    assert [line["update"] for line in lines(folder / "run")] == list(range(1, 13))
    assert [line["update"] for line in lines(folder / "run", "valid")] == [6, 12]
    assert len(lines(folder / "run", "average")) == 1
    assert "3 processes, each on cpu" in said(folder, 0)
    assert said(folder, 1) == said(folder, 2) == ""


def test_rewards_are_centred_with_the_draws_of_all_processes(folder: Path, start: Start) -> None:
    """Each asks the others once for a batch, those with an empty share too."""
    settings = ("training.stopping.updates=6", "training.batching.batch_tokens=25", "training.accumulate=2")
    start(folder, 3, *settings, "model.attention={weights: hard}", target=_sums_of_each)
    asked = [json.loads((folder / f"sums-{rank}.json").read_text(encoding="utf-8")) for rank in range(3)]
    assert len(asked[0]) == 6 * 2
    for own, *others in zip(*asked, strict=True):
        everything = [sum(values) for values in zip(own["own"], *(each["own"] for each in others), strict=True)]
        for each in (own, *others):
            assert each["all"] == pytest.approx(everything, abs=1e-4)
    draws = [[each["own"][0] for each in of_rank] for of_rank in asked]
    assert any(not all(each) and any(each) for each in zip(*draws, strict=True)), "an empty share, others not"


def test_what_the_first_has_measured_decides_for_all(folder: Path, start: Start) -> None:
    """At a learning rate that changes nothing each validation is a plateau, and patience is over after the third."""
    settings = (
        "training.stopping={patience: 2}", "training.validation={every: 2, metric: bleu}",
        "training.schedule={kind: plateau, patience: 1, decay: 0.5}", "training.optimizer.learning_rate=1e-20",
    )  # fmt: skip
    start(folder, 2, *settings, target=_weights_of_each)
    assert [line["learning_rate"] * 1e20 for line in lines(folder / "run")] == pytest.approx([1, 1, 1, 1, 0.5, 0.5])
    assert (folder / "weights-0.safetensors").read_bytes() == (folder / "weights-1.safetensors").read_bytes()


def test_processes_draw_different_dropout(folder: Path, start: Start) -> None:
    """If all processes dropped the same, a batch of two equal pairs in two processes would learn as from one pair."""
    (pair, *_) = zip(*((folder / f"train.{side}").read_text().splitlines() for side in ("de", "en")), strict=True)
    settings = (
        "training.stopping.updates=5", "data.filters.duplicates=false", "data.subwords.kind=char", "data.valid=null",
        "model.dropout={embedding: 0.5, layers: 0.5}",
    )  # fmt: skip
    for size, run in ((1, "one"), (2, "two")):
        for side, line in zip(("de", "en"), pair, strict=True):
            (folder / f"train.{side}").write_text(f"{line}\n" * size, encoding="utf-8")
        start(folder, size, f"run={run}", *settings)
    assert all(abs(a - b) > 1e-4 for a, b in zip(losses(folder / "one"), losses(folder / "two"), strict=True))


@pytest.mark.slow
def test_a_run_goes_on_with_other_numbers_of_processes(folder: Path, start: Start) -> None:
    settings = (NO_DROPOUT, "training.accumulate=2", "training.schedule={kind: constant, warmup: 20}")
    start(folder, 1, "run=whole", "training.stopping.updates=30", *settings)
    for size, updates in ((2, 11), (1, 19), (2, 30)):
        start(folder, size, f"training.stopping.updates={updates}", *settings)
        if updates > 11:
            assert "going on from update" in said(folder, 0)
    assert len(losses(folder / "run")) == 30
    assert losses(folder / "run") == pytest.approx(losses(folder / "whole"), abs=1e-4)


def test_going_on_with_as_many_processes_is_exact(folder: Path, start: Start) -> None:
    """This includes dropout: the first process' generators are in the checkpoint, the others' are functions of the
    update."""
    start(folder, 2, "run=whole", "training.stopping.updates=7")
    start(folder, 2, "training.stopping.updates=4")
    start(folder, 2, "training.stopping.updates=7")
    assert_same_bits(folder / "whole" / "latest", folder / "run" / "latest")


def test_a_process_that_is_killed_ends_the_others(folder: Path, begin: Begin) -> None:
    processes = begin(folder, 3, *ENDLESS)
    wait_for_updates(folder, 3)
    processes[1].kill()
    killed = time.monotonic()
    assert ended(processes) == [2, -signal.SIGKILL, 2]
    assert time.monotonic() - killed < 20
    assert "error: process 0 of 3: lost touch with the others" in said(folder, 0)
    assert said(folder, 2).startswith("error: process 2 of 3: lost touch with the others")
    assert said(folder, 2).count("\n") == 1


def test_a_signal_to_one_stops_all_after_the_same_update(folder: Path, begin: Begin) -> None:
    processes = begin(folder, 2, *ENDLESS, target=_slow_to_save)
    wait_for_updates(folder, 3)
    assert processes[1].pid is not None
    os.kill(processes[1].pid, signal.SIGTERM)
    assert ended(processes[1:]) == [143]
    # torchrun ends all when one has ended: by now all must be on disk
    assert (folder / "run" / "latest").exists()
    assert ended(processes) == [143, 143]
    update = len(losses(folder / "run"))
    assert [each.name for each in (folder / "run" / "checkpoints").iterdir()] == [f"step-{update:08d}"]
    assert f"interrupted at update {update}; saved" in said(folder, 0)
    assert "Traceback" not in said(folder, 0) + said(folder, 1)


def test_a_loss_that_is_not_finite_ends_all_with_the_same_words(folder: Path, begin: Begin) -> None:
    """The words of one process, with the lines of the whole batch."""
    settings = (NO_DROPOUT, "training.optimizer.learning_rate=1e38", "training.stopping.updates=50", "data.valid=null")
    assert ended(begin(folder, 1, "run=one", *settings)) == [2]
    alone = said(folder, 0).splitlines()[-1]
    assert "is not finite at update" in alone
    assert ended(begin(folder, 2, *settings)) == [2, 2]
    assert said(folder, 0).splitlines()[-1] == said(folder, 1).splitlines()[-1] == alone


def test_processes_that_were_started_differently_are_told_so(folder: Path, begin: Begin) -> None:
    assert ended(begin(folder, 2, "training.stopping.updates=2", target=_configured_by_rank)) == [2, 2]
    assert "its configuration is not that of process 0" in said(folder, 1)
    assert "another process disagrees" in said(folder, 0)
    assert not (folder / "run" / "config.yaml").exists()


# ------------------------------------------------------------------------------------ torchrun, and nmt's own launcher


@contextmanager
def running(folder: Path, *arguments: str, **options: Any) -> Iterator[subprocess.Popen[str]]:
    """A program in another process, which runs the folder's sitecustomize.py and does not outlive the context."""
    path = f"{folder}:{Path(__file__).parents[2]}"
    process = subprocess.Popen(
        [sys.executable, "-m", *arguments], cwd=folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"}, **options,
    )  # fmt: skip
    try:
        yield process
    finally:
        process.kill()
        process.wait()


TORCHRUN = ("torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m", "nmt", *_arguments(ENDLESS))
OWN = ("nmt", *_arguments(ENDLESS), "--processes", "2")


@pytest.mark.parametrize(
    ("options", "environment", "message"),
    [
        ((), {"WORLD_SIZE": "2"}, "environment: WORLD_SIZE is set, but RANK, LOCAL_RANK, MASTER_ADDR"),
        (("--processes", "2"), WHOLE, "--processes 2: RANK is set, as by torchrun; use one of the two"),
    ],
)
def test_half_an_environment_and_two_launchers_are_refused(
    options: Sequence[str], environment: dict[str, str], message: str, folder: Path
) -> None:
    done = nmt("train", "config.yaml", *options, folder=folder, environment=environment)
    assert error(done).startswith(message)
    assert done.stderr.count(b"\n") == 1


@pytest.mark.slow
def test_sigterm_to_torchrun_saves_once(folder: Path) -> None:
    with running(folder, *TORCHRUN) as launcher:
        wait_for_updates(folder, 3)
        launcher.terminate()
        _, stderr = launcher.communicate(timeout=60)
    assert launcher.returncode != 0
    update = len(losses(folder / "run"))
    assert stderr.count(f"interrupted at update {update}; saved") == 1
    assert stderr.count("stopping after this update") == 1
    assert [each.name for each in (folder / "run" / "checkpoints").iterdir()] == [f"step-{update:08d}"]


def test_ctrl_c_stops_all_that_nmt_started(folder: Path) -> None:
    with running(folder, *OWN, start_new_session=True) as process:
        wait_for_updates(folder, 3)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does
        _, stderr = process.communicate(timeout=60)
    assert process.returncode == 130
    assert stderr.count("interrupted at update") == 1
    assert "Traceback" not in stderr
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)  # nobody is left


@pytest.mark.slow
def test_processes_started_by_nmt_are_those_that_torchrun_starts(folder: Path, start: Start) -> None:
    """The same bits, with dropout; what the first one says is said once."""
    start(folder, 2, "run=torchrun", "training.stopping.updates=3")
    done = nmt(*_arguments(["run=own", "training.stopping.updates=3"]), "--processes", "2", folder=folder)
    assert done.returncode == 0, done.stderr.decode()
    assert b"2 processes, each on cpu (1 threads), float32" in done.stderr
    assert done.stderr.count(b"update 2, epoch") == 1
    whole, own = (folder / run / "latest" / "model.safetensors" for run in ("torchrun", "own"))
    assert whole.read_bytes() == own.read_bytes()


@pytest.mark.slow
def test_torch_takes_up_the_share_of_the_cores(folder: Path) -> None:
    arguments = ["--set", "training.stopping.updates=1", "--processes", "2"]
    done = nmt("train", "config.yaml", *arguments, folder=folder, environment={"OMP_NUM_THREADS": ""})
    assert done.returncode == 0, done.stderr.decode()
    threads = max(1, len(os.sched_getaffinity(0)) // 2)
    assert f"2 processes, each on cpu ({threads} threads)" in done.stderr.decode()


def test_a_fault_of_the_input_is_one_line_however_many_find_it(folder: Path) -> None:
    (folder / "train.en").unlink()
    started = time.monotonic()
    done = nmt("train", "config.yaml", "--processes", "3", "--precision", "float32", folder=folder)
    assert "train.en: no such file" in error(done)
    assert done.stderr.count(b"\n") == 1
    assert time.monotonic() - started < 120


FAULT = """
import os, sys

def fail(*arguments, **options):
    global calls
    calls += 1
    if calls == {call}:
        from nmt.core.errors import InputError
        print({words!r}, end="", file=sys.stderr, flush=True)
        {failure}
    return backward(*arguments, **options)

calls = 0
if os.environ.get("RANK") == "1":
    if {call} == 1:
        fail()
    from nmt.training.objective import Objective
    backward, Objective.backward = Objective.backward, fail
"""


LOST = "error: process 0 of 2: lost touch with the others"
GONE = "error: another process has ended; its own message says why"
KEY_ERROR = "raise KeyError('a fault of ours')"
INPUT_ERROR = "raise InputError('a fault of its data')"


@pytest.mark.parametrize(
    ("call", "words", "failure", "code", "beginnings"),
    [
        pytest.param(1, "last words\n", "os._exit(3)", 2, ["last words", GONE], id="before all have met"),
        pytest.param(3, "last words\n", "os._exit(3)", 2, ["last words", LOST], id="dies"),
        pytest.param(3, "", INPUT_ERROR, 2, ["error: a fault of its data", LOST], id="input", marks=pytest.mark.slow),
        pytest.param(
            3, "", KEY_ERROR, 1, ["[rank1]: Traceback (most recent call last):"], id="fault", marks=pytest.mark.slow
        ),
    ],
)
def test_a_started_process_that_fails_ends_all_and_is_heard(
    folder: Path, call: int, words: str, failure: str, code: int, beginnings: list[str]
) -> None:
    """At its start, or in its third update, after others have gone well; also where SIGINT is ignored, as in what a
    script starts in the background."""
    text = FAULT.format(call=call, words=words, failure=failure)
    (folder / "sitecustomize.py").write_text(text, encoding="utf-8")
    started = time.monotonic()
    ignored = partial(signal.signal, signal.SIGINT, signal.SIG_IGN)
    with running(folder, *OWN, "--quiet", preexec_fn=ignored) as process:
        _, stderr = process.communicate(timeout=120)
    assert process.returncode == code, stderr
    lines = stderr.splitlines()
    assert len(lines) == len(beginnings) or code == 1
    for line, beginning in zip(lines, beginnings, strict=False):
        assert line.startswith(beginning)
    assert ("KeyError: 'a fault of ours'" in stderr) == (code == 1)
    assert time.monotonic() - started < 90


@pytest.mark.parametrize("moment", ["start-up", pytest.param("training", marks=pytest.mark.slow)])
@pytest.mark.parametrize("rank", [0, 1])
def test_a_kill_of_one_ends_all_that_nmt_started(rank: int, moment: str, folder: Path) -> None:
    """In one line, and long before processes that wait for each other give up."""
    (folder / "sitecustomize.py").write_text(
        "import os\n"
        "if os.environ.get('RANK') == '1':\n"
        "    with open('unfinished', 'w') as file: file.write(str(os.getpid()))\n"
        "    os.rename('unfinished', 'pid')\n",
        encoding="utf-8",
    )
    with running(folder, *OWN, "--quiet") as first:
        wait_until((folder / "pid").exists)
        other = int((folder / "pid").read_text())
        if moment == "training":
            wait_for_updates(folder, 3)
        os.kill((first.pid, other)[rank], signal.SIGKILL)
        killed = time.monotonic()
        _, stderr = first.communicate(timeout=60)
        wait_until(lambda: not _lives(other))
        assert time.monotonic() - killed < 60
    code = -signal.SIGKILL if rank == 0 else 2
    message = f"error: process {rank}: Killed; the same command goes on from the last checkpoint\n"
    assert (first.returncode, stderr) == (code, message)


def _lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False

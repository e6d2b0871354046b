"""Training on a CUDA device: updates of the CPU, checkpoints that either device goes on from, and hardly a wait."""

from __future__ import annotations

import json
import math
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from nmt.core.device import SYNC_INTERVAL, Compute
from nmt.core.errors import InputError
from nmt.training import distributed, metrics, objective
from nmt.training.config import OptimizerConfig
from nmt.training.distributed import LaunchEnvironment, ProcessGroup
from nmt.training.optimizer import NamedOptimizer
from nmt.training.trainer import Trainer
from tests.cuda import on_device
from tests.cuda.on_device import DEVICE, GPU, IS_GPU, NO_DROPOUT, SIDES, THERE, tensors_of, train_in
from tests.models.variants import make
from tests.workflows.runs import error, nmt

pytestmark = pytest.mark.cuda


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a corpus and a configuration, in which the test runs."""
    on_device.write_config(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def assert_near(run: Path, expected: Path, *, atol: float = 2e-4) -> None:
    """Asserts that two runs have the same weights and moments but for rounding."""
    one, other = tensors_of(run), tensors_of(expected)
    for name in other:
        if "generator/" not in name:
            assert one[name].allclose(other[name], atol=atol, rtol=1e-2), name


# ---- one update

LINKED = "data.train={source: train.de, target: train.en, links: train.align}"
SAMPLED = "kind: scheduled_sampling, schedule: {kind: linear, start: 0.5, end: 0.2, updates: 10}"

OBJECTIVES: dict[str, list[str]] = {
    "teacher forcing": [],
    "guided attention": [LINKED, "training.guided_attention={weight: 0.5}"],
    "r-drop": ["training.r_drop=1.0"],
    "scheduled sampling": [f"training.feed={{{SAMPLED}}}"],
    "scheduled sampling, drawn": [f"training.feed={{{SAMPLED}, guess: sample, unit: sentence}}"],
    "free running": ["training.feed=free_running"],
    "risk": ["training.risk={samples: 3, cross_entropy: 0.1}"],
    "ema": ["training.ema=0.9"],
    "lora": ["training.start_from=base", "training.lora={rank: 2}"],
    "frozen": ["training.freeze=['encoder.*']"],
    "accumulated": ["training.accumulate=2", "training.normalization=sentences"],
    "subword sampling": ["data.subwords.sampling=0.2"],
    "recomputed": ["training.recompute=true"],
    "decays": ["training.optimizer={kind: adamw, weight_decay: 0.01, layer_decay: 0.8}"],
    "averaged": ["training.average=2", "training.validation.every=1", "training.validation.metric=bleu"],
    "snapshots": ["training.snapshots=2"],
    "hard attention": ["model.attention.weights=hard"],
    "gumbel attention": ["model.attention.weights=gumbel"],
}

UNFIT = {("transformer", "hard attention"), ("transformer", "gumbel attention")}


@pytest.mark.parametrize(
    ("kind", "name"), [(kind, name) for kind in SIDES for name in OBJECTIVES if (kind, name) not in UNFIT]
)
def test_two_updates_are_those_of_the_cpu(kind: str, name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both sides use the draws of the same generator."""
    on_device.draw_on_the_host(monkeypatch)
    monkeypatch.setitem(SYNC_INTERVAL, "cpu", 8)  # draws depend on the rows that are still there
    settings = [*SIDES[kind], *OBJECTIVES[name]]
    if name == "lora":
        train_in(folder, *SIDES[kind], "run=base", updates=2, device="cpu")
    runs = [
        train_in(folder, *settings, f"run=run-{side}", updates=2, device=device)
        for side, device in enumerate(("cpu", DEVICE))
    ]
    kept = ("loss", "perplexity", "gradient_norm", "risk", "guidance", "bleu")
    expected, found = ([{key: line[key] for key in kept if key in line} for line in metrics.read(run)] for run in runs)
    assert len(expected) >= 3
    assert found == [pytest.approx(each, rel=2e-3, abs=1e-4) for each in expected]


# ---- resuming


@on_device.each_kind
def test_training_goes_from_the_cpu_to_the_device_and_back(kind: str, folder: Path) -> None:
    settings = [*SIDES[kind], NO_DROPOUT]
    expected = train_in(folder, *settings, "run=whole", updates=8, device="cpu")
    for updates, device in ((2, "cpu"), (4, DEVICE), (6, "cpu"), (8, DEVICE)):
        run = train_in(folder, *settings, "run=changing", updates=updates, device=device)
    assert_near(run, expected)
    generators = {name for name in tensors_of(run) if "generator/" in name}
    assert len(generators) == 1 + IS_GPU
    logged = [[line["loss"] for line in metrics.read(each)] for each in (run, expected)]
    assert logged[0][-1] == pytest.approx(logged[1][-1], rel=1e-3)


@on_device.each_kind
@pytest.mark.parametrize("precision", ["float32", "bfloat16", pytest.param("float16", marks=on_device.only_on_a_gpu)])
def test_resumed_training_is_bit_identical(kind: str, precision: str, folder: Path) -> None:
    feed = "training.feed={kind: scheduled_sampling, guess: sample, schedule: {kind: linear, warmup: 1, updates: 5}}"
    settings = [*SIDES[kind], feed, "data.subwords.sampling=0.1", "training.accumulate=2", "training.ema=0.9"]
    runs = [train_in(folder, *settings, f"run={name}", updates=6, precision=precision) for name in ("one", "again")]
    for updates in (3, 6):
        resumed = train_in(folder, *settings, "run=resumed", updates=updates, precision=precision)
    one, *others = (
        {name: each.numpy().tobytes() for name, each in tensors_of(run).items()} for run in (*runs, resumed)
    )
    for other in others:  # the first is a training without any resuming
        assert [name for name in one if one[name] != other[name]] == []


# ---- loss scaling


@on_device.only_on_a_gpu
def test_an_overflow_in_float16_skips_the_update_and_halves_the_scale() -> None:
    model = make(on_device.RNN).to(THERE).train()
    optimizer = NamedOptimizer(model, OptimizerConfig(), Compute(THERE, "float16"))
    scales = []
    for overflows in (False, True, False):
        before = [each.detach().clone() for each in model.parameters()]
        total = sum(((each**2).sum() for each in model.parameters()), start=torch.zeros((), device=THERE))
        optimizer.scaled(total * (math.inf if overflows else 1.0)).backward()
        optimizer.unscale()
        optimizer.step(1.0)
        is_same = [torch.equal(one, other) for one, other in zip(before, model.parameters(), strict=True)]
        assert all(is_same) if overflows else not any(is_same)
        assert all(each.grad is None for each in model.parameters())
        scales.append(optimizer.loss_scale()["scale"])
    assert scales == [65536.0, 32768.0, 32768.0]
    later = NamedOptimizer(model, OptimizerConfig(), Compute(THERE, "float16"))
    later.restore(optimizer.tensors(), optimizer.loss_scale())
    assert later.loss_scale() == optimizer.loss_scale()


@on_device.only_on_a_gpu
def test_the_loss_scale_is_in_the_checkpoint_and_training_goes_on_from_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    backward, calls = objective.Objective.backward, 0

    def overflowing(own: Any, *arguments: Any, **options: Any) -> Tensor:
        nonlocal calls
        calls += 1
        losses_4 = backward(own, *arguments, **options)
        if calls == 2:
            next(each.grad for each in own._model.parameters() if each.grad is not None).fill_(math.inf)
        return losses_4

    monkeypatch.setattr(objective.Objective, "backward", overflowing)
    scales = []
    for updates in (1, 2, 3):
        run = train_in(folder, "training.save_every=1", updates=updates, precision="float16")
        scales.append(json.loads((run / "latest" / "state.json").read_text())["loss_scale"]["scale"])
    assert scales == [65536.0, 32768.0, 32768.0]
    assert all(tensor.isfinite().all() for name, tensor in tensors_of(run).items() if "generator" not in name)


@pytest.mark.parametrize("precision", ["float32", "bfloat16", *(["tf32", "float16"] if IS_GPU else [])])
@on_device.each_kind
def test_every_precision_learns_and_translates(kind: str, precision: str, folder: Path) -> None:
    settings = [*SIDES[kind], "training.optimizer.learning_rate=0.01", "training.validation.every=60"]
    run = train_in(folder, *settings, updates=60, precision=precision)
    losses = [line["loss"] for line in metrics.read(run) if line["kind"] == "train"]
    assert losses[-1] < 0.75 * losses[0]
    assert all(math.isfinite(loss) for loss in losses)


# ---- out of memory


@contextmanager
def little_memory(patch: pytest.MonkeyPatch, *, tokens: int, is_real: bool, parts: list[int]) -> Iterator[None]:
    """Losses of more target tokens than that do not fit: PyTorch says so itself, or (not ``is_real``) a stand-in."""
    loss, each = objective.token_loss, 1 << 22
    if is_real:
        torch.zeros(1, device=THERE)
        _, whole = torch.cuda.mem_get_info(THERE)
        most = torch.cuda.memory_reserved(THERE) + (64 << 20) + tokens * each
        torch.cuda.set_per_process_memory_fraction(min(1.0, most / whole), THERE)

    def limited(model: Any, source_BS: Tensor, target_BT: Tensor, *rest: Any, **options: Any) -> Any:
        parts.append(len(target_BT))
        if is_real:
            # memory that the loss of so many tokens would take; too much, it raises torch.OutOfMemoryError
            held = torch.empty(target_BT.numel() * each + (64 << 20), dtype=torch.uint8, device=THERE)
            del held
        elif target_BT.numel() > tokens:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        return loss(model, source_BS, target_BT, *rest, **options)

    with patch.context() as inner:
        inner.setattr(objective, "token_loss", limited)
        try:
            yield
        finally:
            if is_real:
                torch.cuda.set_per_process_memory_fraction(1.0, THERE)
                torch.cuda.empty_cache()


@on_device.each_kind
@pytest.mark.parametrize("is_real", [False, pytest.param(True, marks=on_device.only_on_a_gpu)], ids=["told", "real"])
def test_a_batch_that_does_not_fit_is_learnt_from_in_parts(
    kind: str, is_real: bool, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = [*SIDES[kind], NO_DROPOUT, "training.accumulate=2", "training.batching.batch_tokens=120"]
    expected = train_in(folder, *settings, "run=whole", updates=3)
    assert "did not fit" not in capsys.readouterr().err
    parts: list[int] = []
    with little_memory(monkeypatch, tokens=60, is_real=is_real, parts=parts):
        run = train_in(folder, *settings, "run=parts", updates=3)
    assert "did not fit into memory" in capsys.readouterr().err
    assert min(parts) <= max(parts) // 2
    assert_near(run, expected)


# ---- several processes


@pytest.fixture
def as_by_torchrun(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sets the variables of torchrun for a single process."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    found = {"RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    for name, value in found.items():
        monkeypatch.setenv(name, value)


def test_a_world_of_one_process_learns_what_a_process_by_itself_does(
    folder: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """Over gloo on the CPU, and over gloo and NCCL on a GPU, with the variables of torchrun."""
    expected = train_in(folder, "run=alone", updates=3)
    request.getfixturevalue("as_by_torchrun")
    plain = train_in(folder, "run=torchrun", updates=3)
    monkeypatch.setattr(distributed, "launched", lambda variables: ProcessGroup(LaunchEnvironment.of(variables)))
    joined = train_in(folder, "run=joined", updates=3)
    for run in (plain, joined):
        # each update is seeded anew only in processes other than the first
        assert_near(run, expected, atol=1e-5)


@pytest.mark.usefixtures("as_by_torchrun")
def test_collective_operations_of_one_process() -> None:
    processes = ProcessGroup(LaunchEnvironment())
    parameters = [torch.nn.Parameter(torch.randn(3, 4, device=THERE)) for _ in range(3)]
    for each in parameters[:2]:
        each.grad = torch.randn_like(each)
    before = [None if each.grad is None else each.grad.cpu().clone() for each in parameters]
    with processes.connected(THERE):
        processes.sum_gradients(parameters)
        for parameter, gradient in zip(parameters, before, strict=True):
            assert (parameter.grad is None) == (gradient is None)
            if parameter.grad is not None and gradient is not None:
                GPU.close(parameter.grad, gradient)
        processes.broadcast_parameters(parameters)
        assert processes.all_reduce([1.0, 2.5]) == [1.0, 2.5]
        assert processes.broadcast({"a": [1, "b"]}) == {"a": [1, "b"]}
        GPU.close(processes.batch_all_reduce()(torch.ones(3, device=THERE)), torch.ones(3))
        processes.wait()


@on_device.only_on_a_gpu
def test_more_processes_than_gpus_are_refused_in_one_line(folder: Path) -> None:
    count = torch.cuda.device_count() + 1
    done = nmt("train", "config.yaml", "--device", "cuda", "--processes", str(count), folder=folder, environment={})
    said = error(done)
    assert said.startswith(f"--device cuda: more processes than GPUs ({count - 1})")
    with pytest.raises(InputError, match="is one GPU for 2 processes"):
        LaunchEnvironment(0, 2, 0, 2).device("cuda:0")


def test_two_processes_on_the_cpu_of_a_machine_with_a_gpu(folder: Path) -> None:
    done = nmt("train", "config.yaml", "--device", "cpu", "--processes", "2", folder=folder, environment={})
    assert done.returncode == 0, done.stderr.decode()
    assert b"2 processes, each on cpu" in done.stderr


# ---- waits

WARM_UP = 24


def waits_of_updates(folder: Path, patch: pytest.MonkeyPatch, *settings: str, precision: str) -> tuple[int, list[str]]:
    """A number of updates after the first few, and the lines at which the host waited in them."""
    step, count = Trainer.step, 0
    with on_device.waits() as waited:

        def counted(*arguments: Any, **options: Any) -> Any:
            nonlocal count
            result = step(*arguments, **options)
            count += 1
            if count == WARM_UP:
                waited.clear()
            return result

        patch.setattr(Trainer, "step", counted)
        on_device.train_without_files(patch, folder, *settings, updates=WARM_UP + 16, precision=precision)
    return count - WARM_UP, waited


@on_device.each_kind
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_the_host_waits_at_most_once_in_eight_updates(
    kind: str, precision: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    count, waited = waits_of_updates(folder, monkeypatch, *SIDES[kind], precision=precision)
    assert count == 16
    # and the one of the last update of the warm-up
    assert len(waited) <= count // 8 + 1, "\n".join(waited)

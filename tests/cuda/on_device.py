"""The devices whose results are held to those of the CPU: a GPU, and one that is pretended.

``NMT_TEST_DEVICE=cpu pytest tests/cuda -m cuda`` runs the tests of a GPU on the CPU, against itself: that finds errors
of the tests before a GPU is at hand. What a CPU cannot do is skipped there.
"""

from __future__ import annotations

import copy
import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import nmt
from nmt.core.device import Compute
from nmt.experiment import load
from nmt.models.seq2seq import Seq2Seq
from nmt.training.checkpoint import read_tensors
from nmt.training.trainer import Trainer
from nmt.workflows.train import train
from tests.cuda.pretended import CUDA, DRAWN, Pretended, line_of_nmt, on_cuda, pretended
from tests.models.variants import TRANSFORMER, WIRINGS, tree
from tests.workflows.runs import CONFIG, write_corpus

DEVICE = os.environ.get("NMT_TEST_DEVICE", "cuda")
THERE = torch.device(DEVICE, 0) if DEVICE == "cuda" else torch.device(DEVICE)
IS_GPU = THERE.type == "cuda"

CPU = Compute(torch.device("cpu"), "float32")

on_a_gpu = pytest.mark.cuda
only_on_a_gpu = pytest.mark.skipif(not IS_GPU, reason="is of CUDA alone")

RNN, PREVIOUS = tree(decoder=WIRINGS["feeding"]), tree(decoder=WIRINGS["previous"])
BOTH = tree(encoder=TRANSFORMER, decoder=TRANSFORMER, score="scaled_dot")
MARGINAL = tree(score="general", weights={"kind": "hard", "training": "marginal"}, decoder=WIRINGS["parallel"])
each_side = pytest.mark.parametrize("config", [RNN, BOTH], ids=["rnn", "transformer"])

SOURCE_BS = torch.tensor([[4, 5, 1, 4, 3], [5, 3, 0, 0, 0], [5, 5, 4, 3, 0]])
TARGET_BT = torch.tensor([[4, 5, 4, 3], [5, 3, 0, 0], [1, 4, 5, 3]])
SOURCES = [[4, 5, 1, 4], [], [5], [5, 5, 4], [1, 1, 4, 4, 5, 5], [], [4, 5]]
TARGETS = [[4, 5], [], [5, 1, 4], [4], [5, 5, 4], [1], []]
PAIRS = SOURCES, TARGETS

SIDES = {
    "rnn": [],
    "transformer": [
        *(f"model.{side}={{kind: transformer, layers: 2, size: 16, heads: 2}}" for side in ("encoder", "decoder")),
        "model.attention.score=scaled_dot",
    ],
}
"""Settings of ``CONFIG`` for a recurrent model and for a Transformer."""

each_kind = pytest.mark.parametrize("kind", list(SIDES))

NO_DROPOUT = "model.dropout={embedding: 0.0, layers: 0.0}"


@dataclass(frozen=True)
class Device:
    """A device, and how near to the CPU its results are."""

    compute: Compute
    atol: float

    @property
    def is_pretended(self) -> bool:
        return self is PRETENDED

    def pair_of(self, model: Seq2Seq[Any, Any]) -> tuple[Seq2Seq[Any, Any], Any]:
        """The model, and a copy of it on the device; both with the operations that commands use."""
        nmt.accelerate()
        copied = copy.deepcopy(model)
        return model, on_cuda(copied) if self.is_pretended else copied.to(THERE)

    @contextmanager
    def in_use(self) -> Iterator[list[str]]:
        """The context of what is computed on the device; the lines of nmt at which the host waits for it."""
        with pretended() if self.is_pretended else waits() as device:
            yield device.waits if isinstance(device, Pretended) else device

    def close(self, there: Tensor, expected: Tensor, name: str = "", **tolerances: float) -> None:
        """Asserts that a tensor of the device has the values of one of the CPU."""
        assert there.device.type == self.compute.device.type, f"{name} is on {there.device}"
        largest = float(expected.detach().abs().amax()) if expected.numel() and not self.is_pretended else 0.0
        found = there.detach().cpu().to(expected.dtype)
        # a sum of numbers of that size is rounded by it
        atol = tolerances.get("atol", self.atol) * max(largest, 1.0)
        said = {"equal_nan": True, "msg": lambda text: f"{name}: {text}"}
        torch.testing.assert_close(found, expected.detach(), atol=atol, rtol=tolerances.get("rtol", 1e-3), **said)


GPU, PRETENDED = Device(Compute(THERE, "float32"), 1e-3), Device(Compute(CUDA, "float32"), 1e-4)

DEVICES = [pytest.param(PRETENDED, id="pretended"), pytest.param(GPU, marks=on_a_gpu, id="gpu")]

each_device = pytest.mark.parametrize("device", DEVICES)
each_device_and_side = pytest.mark.parametrize(
    ("device", "config"),
    [
        pytest.param(*device.values, config, marks=device.marks, id=f"{device.id}-{kind}")
        for device, rnn in zip(DEVICES, (PREVIOUS, RNN), strict=True)
        for kind, config in {"rnn": rnn, "transformer": BOTH}.items()
    ],
)


def draw_on_the_host(patch: pytest.MonkeyPatch) -> None:
    """Has every draw come from the generator of the CPU, so that both devices draw the same numbers."""

    def in_place(name: str) -> Callable[..., Tensor]:
        on_host = getattr(Tensor, name)
        return lambda tensor, *rest, **options: tensor.copy_(
            on_host(torch.empty(tensor.shape, dtype=tensor.dtype), *rest, **options)
        )

    def made(name: str) -> Callable[..., Tensor]:
        on_host = getattr(torch, name)
        return lambda *shape, device=None, **options: on_host(*shape, **options).to(device or "cpu")

    def alike(name: str) -> Callable[..., Tensor]:
        on_host = getattr(torch, name)
        return lambda like, **options: on_host(torch.empty(like.shape, dtype=like.dtype), **options).to(like.device)

    for name in ("exponential_", "uniform_", "random_"):
        patch.setattr(Tensor, name, in_place(name))
    patch.setattr(torch, "rand", made("rand"))
    patch.setattr("nmt.nn.dropout.F", DRAWN)
    for name in ("rand_like", "randn_like"):
        patch.setattr(torch, name, alike(name))


def write_config(folder: Path) -> None:
    """A corpus with the links of its pairs, and a configuration with whole paths, which trains ``folder/run``."""
    write_corpus(folder)
    for part in ("train", "valid"):
        lines = (folder / f"{part}.de").read_text().splitlines()
        links = [" ".join(f"{n}-{n}" for n in range(len(line.split()))) for line in lines]
        (folder / f"{part}.align").write_text("".join(f"{each}\n" for each in links))
    text = CONFIG.replace("run: run", f"run: {folder}/run")
    for part in ("train", "valid"):
        text = text.replace(f"{part}.", f"{folder}/{part}.")
    (folder / "config.yaml").write_text(text)


def train_in(folder: Path, *settings: str, updates: int, device: str = DEVICE, precision: str = "float32") -> Path:
    """The run directory after training up to so many updates."""
    experiment = load(folder / "config.yaml", [*settings, f"training.stopping.updates={updates}"])
    nmt.accelerate()
    return train(experiment, device=device, precision=precision)


def train_without_files(patch: pytest.MonkeyPatch, folder: Path, *settings: str, **options: Any) -> None:
    """Trains, with neither log nor validation nor checkpoint, so that the host waits for updates alone."""
    patch.setattr(Trainer, "_validate", lambda *_: None)
    patch.setattr(Trainer, "_save", lambda *_: None)
    rarely = [f"training.{name}=100" for name in ("log_every", "validation.every", "save_every")]
    train_in(folder, "training.validation.first=0", *rarely, *settings, **options)


def tensors_of(run: Path) -> dict[str, Tensor]:
    """Weights, state of the optimizer and generators of the newest checkpoint."""
    files = (run / "latest" / "model.safetensors", run / "latest" / "training.safetensors")
    return {f"{path.stem}/{name}": tensor for path in files for name, tensor in read_tensors(path).items()}


@contextmanager
def waits() -> Iterator[list[str]]:
    """The lines of nmt at which the host waits for the GPU in the body, by PyTorch's own count; none on a CPU."""
    found: list[str] = []
    if not IS_GPU:
        yield found
        return
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = lambda message, *_: found.append(f"{line_of_nmt()}: {message}")
        torch.cuda.set_sync_debug_mode("warn")
        try:
            yield found
        finally:
            torch.cuda.set_sync_debug_mode("default")
    found[:] = [each for each in found if "called a synchroniz" in each]

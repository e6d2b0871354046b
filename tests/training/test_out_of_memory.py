"""Batches that do not fit into memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from nmt.core.errors import InputError
from nmt.data.batching import Batch, halves, pad
from nmt.experiment import load
from nmt.models.loss import token_loss
from nmt.models.seq2seq import Seq2Seq
from nmt.training import checkpoint
from nmt.training.objective import Losses
from nmt.training.out_of_memory import OutOfMemoryRetry
from nmt.training.run_directory import MODEL
from nmt.workflows.train import train
from tests.workflows.runs import CONFIG, write_corpus

NO_LOSS = Losses(0.0, 0.0, 0.0, 0.0)


def batch_of(*lengths: tuple[int, int]) -> Batch:
    """Pairs of so many source and target tokens, each made of its own number."""
    source_BS, source_length_B = pad([[row + 10] * source for row, (source, _) in enumerate(lengths)])
    target_BT, target_length_B = pad([[row + 50] * target for row, (_, target) in enumerate(lengths)])
    return Batch(source_BS, source_length_B, target_BT, target_length_B, np.arange(len(lengths)) + 100)


def rows(batch: Batch) -> list[tuple[int, list[int], list[int]]]:
    return [
        (int(pair), source[:length].tolist(), target[:target_length].tolist())
        for pair, source, length, target, target_length in zip(
            batch.pairs_B, batch.source_BS, batch.source_length_B, batch.target_BT, batch.target_length_B, strict=True
        )
    ]


def test_halves_have_each_pair_once_the_long_ones_first_and_no_needless_padding() -> None:
    whole = batch_of((3, 2), (9, 9), (1, 1), (4, 8), (2, 2))
    longer, shorter = halves(whole)
    assert sorted(rows(longer) + rows(shorter)) == rows(whole)
    assert longer.pairs_B.tolist() == [101, 103]
    assert longer.source_BS.shape == (2, 10)
    assert shorter.source_BS.shape == (3, 4)
    assert shorter.target_BT.shape == (3, 3)


class Small:
    """Learns from at most ``limit`` tokens at once; notes from which pairs."""

    def __init__(self, limit: int, error: Exception | None = None) -> None:
        self.limit = limit
        self.error = error or torch.OutOfMemoryError("no more")
        self.weight = torch.nn.Linear(1, 1, bias=False)
        self.tried: list[tuple[int, list[int]]] = []

    def backward(self, batch: Batch | None, number: int) -> Losses[float]:
        """Its gradient is the sum of the pairs' numbers, half of which is there when memory ends."""
        self.tried.append((number, [] if batch is None else sorted(batch.pairs_B.tolist())))
        if batch is None:
            return NO_LOSS
        fits = batch.source_BS.size + batch.target_BT.size <= self.limit
        (self.weight(torch.ones(1, 1)) * float(batch.pairs_B.sum()) * (1.0 if fits else 0.5)).sum().backward()
        if not fits:
            raise self.error
        return Losses(float(batch.pairs_B.sum()), float(len(batch.pairs_B)), 0.0, 0.0)

    def learn(self, *batches: Batch | None, update: int = 1) -> list[Losses[float]]:
        return learn(retry_of(self.weight), batches, self.backward, update=update)


def retry_of(model: torch.nn.Module) -> OutOfMemoryRetry:
    return OutOfMemoryRetry(model, torch.device("cpu"), lambda batch: f"pair {batch.pairs_B.tolist()}")


def learn(
    retry: OutOfMemoryRetry, batches: Sequence[Batch | None], backward: Callable[..., Losses[float]], *, update: int = 1
) -> list[Losses[float]]:
    """The losses of each batch, as the trainer sums them."""
    losses: list[Losses[float]] = []
    for attempt in retry.attempts(batches, update=update):
        losses = [NO_LOSS] * len(batches)
        with attempt:
            for number, part in attempt:
                losses[number] += backward(part, number)
    return losses


def test_an_update_is_made_again_with_a_batch_in_parts(capsys: pytest.CaptureFixture[str]) -> None:
    small = Small(limit=20)
    retry = retry_of(small.weight)
    batches = [batch_of((2, 2)), batch_of(*[(4, 4)] * 4), None]
    losses = learn(retry, batches, small.backward, update=7)
    assert losses == [Losses(100.0, 1.0, 0.0, 0.0), Losses(406.0, 4.0, 0.0, 0.0), NO_LOSS]
    assert small.weight.weight.grad is not None
    assert small.weight.weight.grad.item() == 506.0  # of each pair once, nothing of what failed
    failed, parts = [(0, [100]), (1, [100, 101, 102, 103])], [[100, 101], [102, 103]]
    assert small.tried == [*failed, (0, [100]), (1, parts[0]), (1, parts[1]), (2, [])]
    message = capsys.readouterr().err
    assert "update 7: a batch of 4 pairs of up to 5 and 5 subwords did not fit into memory" in message
    small.tried.clear()
    learn(retry, [batch_of(*[(4, 4)] * 4)], small.backward, update=8)  # as large: not tried again
    assert small.tried == [(0, parts[0]), (0, parts[1])]
    assert capsys.readouterr().err == ""


def test_parts_of_parts_down_to_single_pairs() -> None:
    small = Small(limit=12)
    assert small.learn(batch_of(*[(4, 4)] * 5)) == [Losses(510.0, 5.0, 0.0, 0.0)]
    assert sorted(small.tried[-5:]) == [(0, [pair]) for pair in range(100, 105)]


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        RuntimeError("[enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't allocate memory: you"),
        RuntimeError("std::bad_alloc"),
        RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
        RuntimeError("could not create a primitive"),
        RuntimeError("could not execute a primitive"),
    ],
    ids=["python", "allocator", "library", "cublas", "onednn", "onednn scratch"],
)
def test_lack_of_memory_has_many_names(error: Exception) -> None:
    assert Small(limit=12, error=error).learn(batch_of(*[(4, 4)] * 2)) == [Losses(201.0, 2.0, 0.0, 0.0)]


def test_what_failed_has_drawn_nothing() -> None:
    """So that the parts draw what they would draw if their size had been known before."""
    drawn: list[float] = []

    def backward(batch: Batch | None, number: int) -> Losses[float]:
        assert batch is not None
        drawn.append(torch.rand(()).item())
        if len(batch.pairs_B) > 1:
            raise MemoryError
        return NO_LOSS

    retry = retry_of(torch.nn.Linear(1, 1))
    for seed in (0, 0):  # the second time it is known
        torch.manual_seed(seed)
        learn(retry, [batch_of((2, 2)), batch_of((2, 2), (2, 2))], backward)
    failed, known = drawn[:5], drawn[5:]
    assert failed[2:] == known
    assert len(set(known)) == 3


def test_a_pair_that_does_not_fit_is_named() -> None:
    with pytest.raises(InputError, match=r"update 3: memory is not enough for a single pair of 7 and 6 .*pair \[101\]"):
        Small(limit=12).learn(batch_of((2, 2), (6, 5)), update=3)


@pytest.mark.parametrize("text", ["shapes cannot be multiplied", "could not create a primitive descriptor for a sum"])
def test_other_errors_are_not_taken_for_a_lack_of_memory(text: str) -> None:
    with pytest.raises(RuntimeError, match=text):
        Small(limit=0, error=RuntimeError(text)).learn(batch_of((2, 2)))


def test_training_in_parts_makes_the_same_model(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two batches for each update, in float32 and without dropout: what differs is rounding."""
    parts: list[int] = []

    def spy(model: Seq2Seq[Any, Any], source_BS: Tensor, target_BT: Tensor, *rest: Any, **options: Any) -> Any:
        parts.append(len(target_BT))
        if parts_only and target_BT.numel() > 30:
            raise MemoryError
        return token_loss(model, source_BS, target_BT, *rest, **options)

    monkeypatch.setattr("nmt.training.objective.token_loss", spy)
    settings = ("model.dropout={embedding: 0, layers: 0}", "training.accumulate=2", "training.stopping.updates=4")
    weights = []
    for parts_only in (False, True):
        run = train(load(Path("config.yaml"), [f"run=run-{parts_only}", *settings]), device="cpu", precision="float32")
        weights.append(checkpoint.read_tensors(run / "latest" / MODEL))
    assert min(parts) < max(parts) // 2
    for name, whole in weights[0].items():
        torch.testing.assert_close(weights[1][name], whole, atol=1e-5, rtol=1e-4)


_LITTLE_MEMORY = """
import resource, sys
from pathlib import Path
from nmt.experiment import load
from nmt.training import objective
from nmt.workflows.train import train

real, held = objective.token_loss, []

def limited(model, source_BS, target_BT, *rest, **options):
    if not held:  # all is loaded by now
        status = Path("/proc/self/status").read_text()
        size = int(next(line for line in status.splitlines() if line.startswith("VmSize")).split()[1]) << 10
        resource.setrlimit(resource.RLIMIT_AS, (size + (int(sys.argv[1]) << 20),) * 2)
    held.append(target_BT.shape[0])
    return real(model, source_BS, target_BT, *rest, **options)

objective.token_loss = limited
train(load(Path("config.yaml")), device="cpu", precision="float32")
print(held)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits of address space are Linux's")
def test_a_process_that_gets_no_more_memory_goes_on(tmp_path: Path) -> None:
    write_corpus(tmp_path, train=300)
    config = CONFIG.replace("size: 20", "size: 1024, input_feeding: false")
    (tmp_path / "config.yaml").write_text(config.replace("batch_tokens: 60", "batch_tokens: 4000"), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", _LITTLE_MEMORY, "400"], cwd=tmp_path, capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "did not fit into memory" in done.stderr
    tried = json.loads(done.stdout)
    assert f"a batch of {max(tried)} pairs" in done.stderr
    assert max(tried) // 2 in tried

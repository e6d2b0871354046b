"""Several processes, on one machine or on many, that train one model.

Each process takes its share of the rows of every batch, losses are divided by the count of the whole batch, and
gradients are summed over all processes. So an update learns from the same rows as in one process, and all processes
make the same update.

This is not ``torch.nn.parallel.DistributedDataParallel``, which wraps ``forward``, whereas training calls other methods
of the model; takes the mean over processes, whereas their shares differ in size; and expects a pass from each process,
whereas a small batch leaves some without a row, and one that runs out of memory repeats its update in smaller parts,
where the others would have added gradients of a pass that failed. It can also send gradients while others are still
computed, but on the CPU this takes cores away from the computation.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from itertools import accumulate, groupby
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, distributed, nn
from torch.distributed.rendezvous import rendezvous

from nmt.core.errors import InputError
from nmt.training.processes import Processes

T = TypeVar("T")

_VARIABLES = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT")

GATHERING = timedelta(minutes=5)
"""Time that a process waits for the others at the start: the nodes of a cluster do not start at the same time."""

PATIENCE = timedelta(hours=2)
"""Time that a process waits for the others later. The first process prepares the corpus, translates the valid corpus
and writes checkpoints, all of any size, while the others wait; torch's default of half an hour (ten minutes on CUDA)
may be too short for that. A process that has ended is noticed earlier, because its connections close at once."""

_BUCKET = 1 << 23
"""Number of elements of gradients that are sent together: few messages are needed, and while one is sent, the next one
is put together."""


@dataclass(frozen=True)
class LaunchEnvironment:
    """The start of this process: by itself, or by a launcher such as torchrun as one of several."""

    rank: int = 0
    """Number of this process among all, from 0."""
    size: int = 1
    """Number of processes."""
    local_rank: int = 0
    """Number of this process on its machine, from 0."""
    local_size: int = 1
    """Number of processes on its machine, or 1 if the launcher does not set it."""

    @staticmethod
    def of(environment: Mapping[str, str]) -> LaunchEnvironment:
        """The launch that RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR and MASTER_PORT describe. Raises InputError where
        some are missing or make no sense."""
        # an empty variable counts as none, and not all launchers say how many processes are on this machine
        given = {"LOCAL_WORLD_SIZE": "1"} | {name: text for name, text in environment.items() if text}
        if missing := [name for name in _VARIABLES if name not in given]:
            there = "RANK" if "RANK" in environment else "WORLD_SIZE"
            raise InputError(
                f"environment: {there} is set, but {', '.join(missing)} not: start several processes with torchrun, "
                f"which sets all of {', '.join(_VARIABLES)}; for a single one unset RANK and WORLD_SIZE"
            )
        numbers = []
        for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_PORT"):
            if not (given[name].isascii() and given[name].isdecimal()):
                raise InputError(f"environment: {name}={given[name]} is not a whole number")
            numbers.append(int(given[name]))
        rank, size, local_rank, local_size, port = numbers
        if not rank < size:
            raise InputError(f"environment: RANK={rank} is not below WORLD_SIZE={size}: ranks count from 0")
        if port >= 1 << 16:
            raise InputError(f"environment: MASTER_PORT={port} is not a port, which are below 65536")
        return LaunchEnvironment(rank, size, local_rank, local_size)


class ProcessGroup(Processes):
    """One of several processes, over torch's process group. Sums are the same bits in all of them."""

    def __init__(self, launch: LaunchEnvironment) -> None:
        self.rank, self.size = launch.rank, launch.size
        self._launch = launch

    def device(self, name: str) -> str:
        kind, _, number = name.partition(":")
        if kind not in ("auto", "cuda") or not torch.cuda.is_available():
            return name
        # a GPU for each process
        if number:
            raise InputError(f"--device {name}: is one GPU for {self.size} processes; --device cuda gives each its own")
        rank, size, count = self._launch.local_rank, self._launch.local_size, torch.cuda.device_count()
        if max(rank + 1, size) > count:
            raise InputError(f"--device {name}: more processes than GPUs ({count}); start one each or use --device cpu")
        return f"cuda:{rank}"

    @contextmanager
    def connected(self, device: torch.device) -> Iterator[None]:
        # they meet at MASTER_ADDR and MASTER_PORT and communicate by gloo, or by NCCL for tensors on a CUDA device
        if device.type == "cuda":
            torch.cuda.set_device(device)  # NCCL's buffers go to the current one
        _gather(self._launch, device)
        try:
            yield
        except PeerLost:
            raise  # taking leave of a process that is gone may wait for it
        except BaseException:
            distributed.destroy_process_group()
            raise
        else:
            distributed.destroy_process_group()

    def share(self, lengths_B: npt.NDArray[np.integer]) -> npt.NDArray[np.int64]:
        return shares(lengths_B, self.size)[self.rank]

    def all_reduce(self, values: Sequence[float]) -> list[float]:
        values_N = torch.tensor(values, dtype=torch.float64)
        with self._in_touch():
            distributed.all_reduce(values_N)
        return [float(value) for value in values_N.tolist()]

    def sum_gradients(self, parameters: Sequence[nn.Parameter]) -> None:
        holders = self.all_reduce([float(parameter.grad is not None) for parameter in parameters])
        learning = [parameter for parameter, count in zip(parameters, holders, strict=True) if count > 0]
        with self._in_touch():
            sent = []
            for bucket in _buckets(learning):
                # an empty share has no gradient, so it adds 0 to the sum
                flat_N = torch.cat([(torch.zeros_like(p) if p.grad is None else p.grad).flatten() for p in bucket])
                sent.append((bucket, flat_N, distributed.all_reduce(flat_N, async_op=True)))
            for bucket, flat_N, work in sent:
                work.wait()
                parts = torch.split(flat_N, [parameter.numel() for parameter in bucket])
                for parameter, part_N in zip(bucket, parts, strict=True):
                    parameter.grad = part_N.view_as(parameter)

    def batch_all_reduce(self) -> Callable[[Tensor], Tensor]:
        others: list[float] = []

        def summed(own_N: Tensor) -> Tensor:
            if not others:
                own = own_N.tolist()
                others.extend(total - value for total, value in zip(self.all_reduce(own), own, strict=True))
            return own_N + own_N.new_tensor(others)

        return summed

    def broadcast_parameters(self, tensors: Sequence[Tensor]) -> None:
        with self._in_touch():
            for tensor in tensors:
                distributed.broadcast(tensor.detach(), src=0)

    def broadcast(self, value: T) -> T:
        # not broadcast_object_list, which unpickles
        text = bytearray(json.dumps(value).encode()) if self.is_first else bytearray()
        size_1 = torch.tensor([len(text)])
        with self._in_touch():
            distributed.broadcast(size_1, src=0)
            text_N = torch.frombuffer(text or bytearray(int(size_1)), dtype=torch.uint8)
            distributed.broadcast(text_N, src=0)
        received: T = json.loads(text_N.numpy().tobytes())
        return received

    def wait(self) -> None:
        self.all_reduce([0.0])  # not barrier, which on CUDA occupies a device

    def check_agreement(self, facts: Mapping[str, str | int]) -> None:
        expected = self.broadcast(dict(facts))
        other = next((name for name, value in facts.items() if expected[name] != value), None)
        differing = self.all_reduce([float(other is not None)])[0]
        if other is not None:
            raise InputError(
                f"process {self.rank} of {self.size}: its {other} is not that of process 0 ({facts[other]}, not "
                f"{expected[other]}); start all with the same command, on the same files (a file system that all share)"
            )
        if differing:
            raise InputError(f"process {self.rank} of {self.size}: another process disagrees, its message says in what")

    @contextmanager
    def _in_touch(self) -> Iterator[None]:
        try:
            yield
        except RuntimeError as error:
            raise PeerLost(
                f"process {self.rank} of {self.size}: lost touch with the others: one has ended, and its own message "
                f"says why, or cannot be reached; the same command goes on from the last checkpoint ({_reason(error)})"
            ) from None


def launched(environment: Mapping[str, str]) -> Processes:
    """Returns the processes that a launcher such as torchrun has started, according to its environment variables."""
    launch = LaunchEnvironment.of(environment)
    return ProcessGroup(launch) if launch.size > 1 else Processes()


class PeerLost(InputError):
    """Another process has ended or cannot be reached."""


def _gather(launch: LaunchEnvironment, device: torch.device) -> None:
    """Waits for all processes, by notes in a store, which is torchrun's own or in the first process."""
    job = os.environ.get("TORCHELASTIC_RUN_ID", "")
    names = [f"nmt/{job}/{rank}" for rank in range(launch.size)]
    try:
        if os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True":
            store = next(rendezvous("env://", timeout=GATHERING))[0]
        else:
            host, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
            store = distributed.TCPStore(  # type: ignore[attr-defined]
                host, port, is_master=launch.rank == 0, timeout=GATHERING, wait_for_workers=False, multi_tenant=True
            )
        store.set(names[launch.rank], device.type)
        deadline = time.monotonic() + GATHERING.total_seconds()
        while not store.check(names):  # it polls instead of blocking, so that signals are handled
            if time.monotonic() > deadline:
                raise RuntimeError("timeout")
            time.sleep(0.1)
        kinds = sorted({store.get(name).decode() for name in names})
        if len(kinds) == 1:
            backend = "cpu:gloo,cuda:nccl" if device.type == "cuda" else "gloo"
            distributed.init_process_group(
                backend, store=store, rank=launch.rank, world_size=launch.size, timeout=PATIENCE
            )
    except (RuntimeError, ValueError) as error:
        raise InputError(
            f"process {launch.rank} of {launch.size}: not all processes have met at MASTER_ADDR and MASTER_PORT: is "
            f"each started, and can it reach that machine and port? ({_reason(error)})"
        ) from None
    if len(kinds) > 1:
        raise InputError(f"processes compute on {' and '.join(kinds)}: give all the same --device, cpu or cuda")


def shares(lengths_B: npt.NDArray[np.integer], size: int) -> list[npt.NDArray[np.int64]]:
    """Divides the rows of a batch among ``size`` processes: each row goes to one of them, and the rows of a process
    keep the order of the batch. Rows are dealt out by falling length, back and forth, so that no two shares differ by
    more than the longest row. If there are fewer rows than processes, some get none."""
    order_B = np.argsort(-lengths_B.astype(np.int64), kind="stable")
    turn_B, place_B = np.divmod(np.arange(len(order_B)), size)
    owner_B = np.where(turn_B % 2 == 0, place_B, size - 1 - place_B)
    return [np.sort(order_B[owner_B == rank]) for rank in range(size)]


def _buckets(parameters: Sequence[nn.Parameter]) -> Iterator[list[nn.Parameter]]:
    """Yields the parameters in order, in groups of about ``_BUCKET`` elements."""
    ends = accumulate(parameter.numel() for parameter in parameters)
    for _, group in groupby(zip(ends, parameters, strict=True), key=lambda pair: pair[0] // _BUCKET):
        yield [parameter for _, parameter in group]


def _reason(error: Exception) -> str:
    """Returns the message of torch without the position in its source code and its advice."""
    text = re.sub(r"^\[\S+:\d+\] ", "", " ".join(str(error).split()))
    return text.split(". ")[0][:200] or type(error).__name__

"""The processes that train one model, from the view of one of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

T = TypeVar("T")


class Processes:
    """The process that trains by itself: it waits for nobody. ``more.distributed.ProcessGroup`` is one of several.

    All processes must call, in the same order, what changes a tensor or returns what others have sent. Raises
    InputError where another process is gone.
    """

    rank: int = 0
    size: int = 1

    @property
    def is_first(self) -> bool:
        """True in the process that writes, measures and talks to people."""
        return self.rank == 0

    def device(self, name: str) -> str:
        """The device for ``compute`` that this process takes where the user named ``name``."""
        return name

    @contextmanager
    def connected(self, device: torch.device) -> Iterator[None]:
        """Connects the processes for the body. Raises InputError where some do not come."""
        yield

    def share(self, lengths_B: npt.NDArray[np.integer]) -> npt.NDArray[np.int64]:
        """The rows of a batch that this process learns from, by the cost of each row."""
        return np.arange(len(lengths_B))

    def all_reduce(self, values: Sequence[float]) -> list[float]:
        """Each of the values summed over all processes, in float64."""
        return list(values)

    def sum_gradients(self, parameters: Sequence[nn.Parameter]) -> None:
        """Sums the gradients of parameters over all processes. A parameter with a gradient in some process then has it
        in all; one without keeps None, so that the optimizer leaves it as it is."""

    def batch_all_reduce(self) -> Callable[[Tensor], Tensor]:
        """An all-reduce of sums over one batch, (N,) to (N,). The first call communicates; later calls, for further
        parts of a batch that memory is not enough for, or for parts made again, add the same sums of the others."""
        return lambda own_N: own_N

    def broadcast_parameters(self, tensors: Sequence[Tensor]) -> None:
        """Gives tensors the values that they have in the first process."""

    def broadcast(self, value: T) -> T:
        """The ``value`` of the first process, anything that JSON can hold."""
        return value

    def wait(self) -> None:
        """Returns when all processes have called it."""

    def check_agreement(self, facts: Mapping[str, str | int]) -> None:
        """Raises InputError in each process where the facts, by name, differ from those of the first."""

    @contextmanager
    def main_process_first(self) -> Iterator[None]:
        """Runs the body in the first process, then in the others, who find what the first has made."""
        if not self.is_first:
            self.wait()
        yield
        if self.is_first:
            self.wait()


def launched(environment: Mapping[str, str]) -> Processes:
    """The processes that a launcher such as torchrun has started, by its variables; without them this process."""
    if "RANK" not in environment and "WORLD_SIZE" not in environment:
        return Processes()
    from nmt.training.more.distributed import LaunchEnvironment, ProcessGroup

    launch = LaunchEnvironment.of(environment)
    return ProcessGroup(launch) if launch.size > 1 else Processes()

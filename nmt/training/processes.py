"""The processes that train one model, as seen by one of them."""

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
    """The process that trains by itself: it waits for nobody. ``distributed.ProcessGroup`` is one of several.

    All processes must call the methods that change tensors or return values from other processes, and in the same
    order. They raise InputError if another process is gone.
    """

    rank: int = 0
    size: int = 1

    @property
    def is_first(self) -> bool:
        """Returns True in the process that writes, measures and logs."""
        return self.rank == 0

    def device(self, name: str) -> str:
        """Returns the device for ``compute`` of this process if the user has named ``name``."""
        return name

    @contextmanager
    def connected(self, device: torch.device) -> Iterator[None]:
        """Connects the processes in the body of the context. Raises InputError if some do not start."""
        yield

    def share(self, lengths_B: npt.NDArray[np.integer]) -> npt.NDArray[np.int64]:
        """Chooses the rows of a batch that this process learns from, by the cost of each row."""
        return np.arange(len(lengths_B))

    def all_reduce(self, values: Sequence[float]) -> list[float]:
        """Sums each of the values over all processes, in float64."""
        return list(values)

    def sum_gradients(self, parameters: Sequence[nn.Parameter]) -> None:
        """Sums the gradients of parameters over all processes. A parameter with a gradient in some process then has it
        in all; a parameter without a gradient keeps None, so that the optimizer does not change it."""

    def batch_all_reduce(self) -> Callable[[Tensor], Tensor]:
        """Creates an all-reduce of sums over one batch, (N,) to (N,). Its first call communicates. Later calls add the
        same sums of the other processes: they are for further parts of a batch that does not fit into memory, or for
        repeated parts."""
        return lambda own_N: own_N

    def broadcast_parameters(self, tensors: Sequence[Tensor]) -> None:
        """Sets tensors to their values in the first process."""

    def broadcast(self, value: T) -> T:
        """Returns the ``value`` of the first process, which may be anything that JSON can represent."""
        return value

    def wait(self) -> None:
        """Returns when all processes have called it."""

    def check_agreement(self, facts: Mapping[str, str | int]) -> None:
        """Raises InputError in all processes if the facts, by name, differ from those of the first in any of them."""

    @contextmanager
    def main_process_first(self) -> Iterator[None]:
        """Runs the body in the first process, then in the others, which can use the results of the first."""
        if not self.is_first:
            self.wait()
        yield
        if self.is_first:
            self.wait()

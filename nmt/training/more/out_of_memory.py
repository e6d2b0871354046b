"""Memory: how much training takes, and what to do where it is not enough."""

from __future__ import annotations

import re
import resource
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import torch
from torch import nn

from nmt.core import log
from nmt.core.errors import InputError
from nmt.core.seed import generator_states, restore_generators
from nmt.data.batching import Batch, halves
from nmt.training.objective import Losses

_KIBI, _GIBI = 1 << 10, 1 << 30

_NO_MEMORY = re.compile(r"can't allocate memory|std::bad_alloc|ALLOC_FAILED|could not (create|execute) a primitive$")
"""What torch's allocator on a CPU, C++ libraries, those of CUDA and oneDNN say. oneDNN says *a primitive descriptor*
where it has no code for something."""


def peak(device: torch.device) -> float:
    """The most memory held since ``reset_peak``, in GiB: a device's tensors on CUDA, else all of this process.

    Where the system cannot start a count anew (elsewhere than on Linux) it is the most since the process began.
    """
    held = torch.cuda.max_memory_allocated(device) if device.type == "cuda" else _resident_peak()
    return held / _GIBI


def reset_peak(device: torch.device) -> None:
    """Starts the count of ``peak`` anew."""
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
        return
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")  # proc(5): resets the high-water mark of resident memory


def _resident_peak() -> int:
    """The high-water mark of the process, in bytes."""
    try:
        status = Path("/proc/self/status").read_text(encoding="utf-8")
        (line,) = (line for line in status.splitlines() if line.startswith("VmHWM:"))
        return int(line.split()[1]) * _KIBI
    except (OSError, ValueError):
        unit = 1 if sys.platform == "darwin" else _KIBI
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


Backward = Callable[[Batch | None, int], Losses]
"""Adds the gradients of a batch, or of a part of it, and returns its losses. Arguments: the batch, None where this
process has no rows of it; its number among those of the update, from 0."""


class OutOfMemoryRetry:
    """Learns from batches, from each in as many parts as memory needs.

    A batch for which memory is not enough is halved, and all of the update begins again: what a backward pass had added
    to the gradients before it failed is not known. Later batches as large are halved before they are tried. Parts give
    the gradients of the whole but for rounding, and other draws of dropout; what failed has drawn nothing.
    """

    def __init__(self, model: nn.Module, device: torch.device, place: Callable[[Batch], str]) -> None:
        """``place`` says, for people, where a batch's pairs come from."""
        self._model = model
        self._device = device
        self._place = place
        self.too_large: int | None = None
        """Tokens, padding included, of the smallest batch that did not fit."""

    def learn(self, batches: Sequence[Batch | None], backward: Backward, *, update: int) -> list[Losses]:
        """The losses of each batch, after ``backward`` has added the gradients of all its parts. Raises InputError
        where a pair by itself does not fit."""
        states = generator_states(self._device)
        while True:
            parts = [[None] if each is None else self._parts(each) for each in batches]
            losses: list[Losses] = []
            for number, each in enumerate(parts):
                found = self._losses(each, number, backward, update)
                if found is None:
                    break
                losses.append(found)
            else:
                return losses
            self._model.zero_grad(set_to_none=True)
            restore_generators(states, self._device)

    def _losses(self, parts: Sequence[Batch | None], number: int, backward: Backward, update: int) -> Losses | None:
        """Of all parts together; None where one did not fit."""
        total = Losses()
        for part in parts:
            losses = _tried(backward, part, number)
            if losses is None:
                assert part is not None
                self._note(part, update)
                return None
            total += losses
        return total

    def _note(self, batch: Batch, update: int) -> None:
        """Remembers that a batch did not fit, and says so."""
        self.too_large = _cells(batch)
        rows, source, target = len(batch.pairs_B), batch.source_BS.shape[1], batch.target_BT.shape[1]
        if rows == 1:
            raise InputError(
                f"update {update}: memory is not enough for a single pair of {source} and {target} subwords "
                f"({self._place(batch)}): lower data.filters.max_length, set training.recompute, or take a smaller "
                "model"
            )
        log.warning(
            f"update {update}: a batch of {rows} pairs of up to {source} and {target} subwords did not fit into "
            "memory; it and others as large are learnt from in two parts (training.batching.batch_tokens is their "
            "size, training.recompute spares memory)"
        )
        if self._device.type == "cuda":
            torch.cuda.empty_cache()  # blocks in sizes that nothing asks for again

    def _parts(self, batch: Batch) -> list[Batch]:
        if self.too_large is None or _cells(batch) < self.too_large or len(batch.pairs_B) == 1:
            return [batch]
        return [part for half in halves(batch) for part in self._parts(half)]


def _cells(batch: Batch) -> int:
    return batch.source_BS.size + batch.target_BT.size


def _tried(backward: Backward, batch: Batch | None, number: int) -> Losses | None:
    """The losses; None where memory was not enough. The exception ends here, and with it all tensors of the pass."""
    try:
        return backward(batch, number)
    except (torch.OutOfMemoryError, MemoryError):
        return None
    except RuntimeError as error:
        if not _NO_MEMORY.search(str(error)):
            raise
        return None

"""Recovery from a lack of memory: an update is made again, with the batch that did not fit in parts."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from types import TracebackType

import torch
from torch import nn

from nmt.core import log
from nmt.core.errors import InputError
from nmt.core.seed import generator_states, restore_generators
from nmt.data.batching import Batch, halves

_NO_MEMORY = re.compile(r"can't allocate memory|std::bad_alloc|ALLOC_FAILED|could not (create|execute) a primitive$")
"""The messages of torch's allocator on a CPU, of C++ libraries, of CUDA's and of oneDNN. oneDNN says *a primitive
descriptor* where it has no code for something."""


class OutOfMemoryRetry:
    """Attempts at an update, with each batch in as many parts as memory needs.

    A batch that does not fit is halved, and the whole update begins again: a failed backward pass leaves an unknown
    part of its gradients. Later batches as large are halved before they are tried. Parts give the gradients of the
    batch but for rounding, and other draws of dropout; a failed attempt has drawn nothing.
    """

    def __init__(self, model: nn.Module, device: torch.device, describe: Callable[[Batch], str]) -> None:
        """``describe`` names, for people, the lines that a batch comes from."""
        self._model = model
        self._device = device
        self._describe = describe
        self.too_large: int | None = None
        """Tokens, padding included, of the smallest batch that did not fit."""

    def attempts(self, batches: Sequence[Batch | None], *, update: int) -> Iterator[Attempt]:
        """Attempts until one fits. Raises InputError where a single pair does not fit."""
        states = generator_states(self._device)
        while True:
            attempt = Attempt([[None] if batch is None else self._parts(batch) for batch in batches])
            yield attempt
            if attempt.failed is None:
                return
            # here the tensors of the failed pass are gone: no exception holds them any longer
            self._note(attempt.failed, update)
            self._model.zero_grad(set_to_none=True)
            restore_generators(states, self._device)

    def _note(self, batch: Batch, update: int) -> None:
        """Remembers the size of a batch that did not fit, and reports it."""
        self.too_large = _tokens(batch)
        rows, source, target = len(batch.pairs_B), batch.source_BS.shape[1], batch.target_BT.shape[1]
        if rows == 1:
            raise InputError(
                f"update {update}: memory is not enough for a single pair of {source} and {target} subwords "
                f"({self._describe(batch)}): lower data.filters.max_length, set training.recompute, or take a smaller "
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
        if self.too_large is None or _tokens(batch) < self.too_large or len(batch.pairs_B) == 1:
            return [batch]
        return [part for half in halves(batch) for part in self._parts(half)]


class Attempt:
    """One attempt at an update. As a context it ends the body where memory is not enough, and no exception leaves it;
    its items are the parts to learn from, each with the number of its batch. A part is None where this process has no
    rows of the batch."""

    def __init__(self, parts: Sequence[Sequence[Batch | None]]) -> None:
        self._parts = parts
        self._current: Batch | None = None
        self.failed: Batch | None = None
        """The part that did not fit; None where all did."""

    def __iter__(self) -> Iterator[tuple[int, Batch | None]]:
        for number, parts in enumerate(self._parts):
            for self._current in parts:
                yield number, self._current

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> bool:
        lacks_memory = isinstance(error, (torch.OutOfMemoryError, MemoryError)) or (
            isinstance(error, RuntimeError) and _NO_MEMORY.search(str(error)) is not None
        )
        if lacks_memory:
            self.failed = self._current
        return lacks_memory


def _tokens(batch: Batch) -> int:
    return batch.source_BS.size + batch.target_BT.size

"""Recovery from a lack of memory: an update is repeated, with the batch that did not fit divided into parts."""

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
"""Messages of torch's allocator on a CPU, of C++ libraries, of CUDA's libraries and of oneDNN. oneDNN says *a primitive
descriptor* if it has no code for an operation, which is not a lack of memory."""


class OutOfMemoryRetry:
    """Attempts at an update, with each batch in as many parts as are needed to fit into memory.

    A batch that does not fit is halved, and the whole update starts again, because a failed backward pass leaves an
    unknown part of its gradients. Later batches of that size are halved before they are tried. Except for rounding and
    other draws of dropout, parts give the gradients of the whole batch. The random state is restored after a failed
    attempt.
    """

    def __init__(self, model: nn.Module, device: torch.device, describe: Callable[[Batch], str]) -> None:
        """``describe`` names the lines that a batch comes from, for messages."""
        self._model = model
        self._device = device
        self._describe = describe
        self.too_large: int | None = None
        """Tokens, padding included, of the smallest batch that did not fit."""

    def attempts(self, batches: Sequence[Batch | None], *, update: int) -> Iterator[Attempt]:
        """Yields attempts until one fits. Raises InputError if a single pair does not fit."""
        states = generator_states(self._device)
        while True:
            attempt = Attempt([[None] if batch is None else self._parts(batch) for batch in batches])
            yield attempt
            if attempt.failed is None:
                return
            # the tensors of the failed pass are gone by now: no exception refers to them any longer
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
            torch.cuda.empty_cache()  # cached blocks of sizes that are not needed again

    def _parts(self, batch: Batch) -> list[Batch]:
        if self.too_large is None or _tokens(batch) < self.too_large or len(batch.pairs_B) == 1:
            return [batch]
        return [part for half in halves(batch) for part in self._parts(half)]


class Attempt:
    """One attempt at an update. As a context manager it ends the body if memory is not enough, without raising an
    exception. Iterating over it yields the parts to learn from, each with the number of its batch. A part is None if
    this process has no rows of the batch."""

    def __init__(self, parts: Sequence[Sequence[Batch | None]]) -> None:
        self._parts = parts
        self._current: Batch | None = None
        self.failed: Batch | None = None
        """The part that did not fit, or None."""

    def __iter__(self) -> Iterator[tuple[int, Batch | None]]:
        for number, parts in enumerate(self._parts):
            for self._current in parts:
                yield number, self._current

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> bool:
        if lacks_memory(error):
            self.failed = self._current
        return lacks_memory(error)


def lacks_memory(error: object) -> bool:
    """Returns True for an exception that says that there is not enough memory."""
    return isinstance(error, (torch.OutOfMemoryError, MemoryError)) or (
        isinstance(error, RuntimeError) and _NO_MEMORY.search(str(error)) is not None
    )


def _tokens(batch: Batch) -> int:
    return batch.source_BS.size + batch.target_BT.size

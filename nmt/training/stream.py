"""The batches of training, update by update, prepared while the preceding update is computed."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from typing import TypeVar, cast

import numpy as np
import numpy.typing as npt
import torch

from nmt.core.device import Compute
from nmt.core.errors import InputError
from nmt.data.batching import Batch, BatchingConfig, Indices, collate, epoch_batches
from nmt.data.store import Store
from nmt.data.tokenizer import TokenizerPair
from nmt.training.processes import Processes

T = TypeVar("T")
N = TypeVar("N", bound=np.generic)

AHEAD = 2
"""Number of updates that are prepared in advance."""


@dataclass(frozen=True)
class TrainingData:
    """The corpus of a training."""

    train: Store
    tokenizers: TokenizerPair
    sampling: float
    """Strength of subword sampling; 0 means no sampling."""
    fingerprint: str
    """Fingerprint of the prepared corpus; a checkpoint can resume only with the same one."""
    linked: bool = False
    """If True, batches have the links of their pairs."""


@dataclass(frozen=True)
class Position:
    """Position of training, which together with weights, optimizer and generators determines the next updates."""

    update: int = 0
    epoch: int = 0
    batch: int = 0
    """Number of batches of the epoch already used."""
    tokens: int = 0
    """Number of target tokens so far, end-of-sentence included."""
    seconds: float = 0.0
    """Time of training so far, validations included."""


@dataclass(frozen=True)
class PreparedUpdate:
    """The batches of one update."""

    pairs: list[Indices]
    """The pairs of each batch, of all processes."""
    shares: list[Batch | None]
    """The share of this process in each batch; None means no rows."""
    following: Position
    """Position after the update, except for tokens and seconds."""
    epoch_batches: int
    """Number of batches of the epoch."""

    @property
    def tokens(self) -> int:
        """Number of target tokens of the shares, end-of-sentence included."""
        return sum(int(share.target_length_B.sum()) for share in self.shares if share is not None)

    @property
    def linked(self) -> int:
        """Number of target tokens of the shares that have links."""
        return sum(share.links.targets for share in self.shares if share is not None and share.links is not None)


@dataclass(frozen=True)
class Stream:
    """The endless sequence of updates of a training, which depends only on data, seed and position."""

    data: TrainingData
    batching: BatchingConfig
    accumulate: int
    """Number of batches of an update."""
    seed: int
    processes: Processes
    compute: Compute

    def after(self, position: Position) -> Iterator[PreparedUpdate]:
        """Yields the updates after ``position``. Raises InputError if no pair is left to train on."""
        while True:
            epoch = position.epoch
            order = epoch_batches(self.data.train, self.batching, seed=self.seed, epoch=epoch)
            if len(order) == 0:
                raise InputError("data.train: no pair is left to train on; see the report of nmt prepare")
            for first in range(position.batch, len(order), self.accumulate):
                last = min(first + self.accumulate, len(order))
                pairs = [order[index] for index in range(first, last)]
                # the last update of an epoch may have fewer batches than the others
                at_end = last == len(order)
                position = Position(position.update + 1, epoch + at_end, 0 if at_end else last)
                yield PreparedUpdate(pairs, [self._share(pairs_B, epoch) for pairs_B in pairs], position, len(order))
            del order  # before the next one is created: it takes 4 bytes for each pair

    def _share(self, pairs_B: Indices, epoch: int) -> Batch | None:
        """Prepares the share of this process in a batch."""
        store, sampling = self.data.train, None
        # processes get rows of about the same number of tokens, not the same number of rows
        lengths_B = store.source_lengths[pairs_B].astype(np.int64) + store.target_lengths[pairs_B]
        own_B = pairs_B[self.processes.share(lengths_B)]
        if len(own_B) == 0:
            return None
        if self.data.sampling > 0.0:
            from nmt.data.sampling import SubwordSampling

            sampling = SubwordSampling(self.data.tokenizers, self.data.sampling, self.seed, epoch)
        if self.data.linked:
            from nmt.data.token_links import collate_linked

            batch = collate_linked(store, own_B, sampling=sampling)
        else:
            batch = collate(store, own_B, sampling=sampling)
        if self.compute.device.type != "cuda":
            return batch
        links = None
        if batch.links is not None:
            arrays = {field.name: _pinned(getattr(batch.links, field.name)) for field in fields(batch.links)}
            links = replace(batch.links, **arrays)
        return replace(batch, source_BS=_pinned(batch.source_BS), target_BT=_pinned(batch.target_BT), links=links)


def _pinned(array: npt.NDArray[N]) -> npt.NDArray[N]:
    """Copies an array to page-locked memory, from which a GPU reads without the host waiting."""
    pinned: npt.NDArray[N] = torch.from_numpy(array).pin_memory().numpy()
    return pinned


@contextmanager
def prefetched(items: Iterable[T], ahead: int = AHEAD) -> Iterator[Iterator[T]]:
    """Yields an iterator over the same items in the same order. A thread, which ends with the context, takes up to
    ``ahead`` of them in advance. An error in taking an item is raised when it is that item's turn."""
    iterator, end = iter(items), object()

    def taken(pool: Executor) -> Iterator[T]:
        ready = deque(pool.submit(next, iterator, end) for _ in range(ahead))
        while (item := ready.popleft().result()) is not end:
            ready.append(pool.submit(next, iterator, end))
            yield cast(T, item)

    pool = ThreadPoolExecutor(1, thread_name_prefix="prefetch")
    try:
        yield taken(pool)
    finally:
        pool.shutdown(cancel_futures=True)

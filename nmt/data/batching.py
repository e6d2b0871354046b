"""Batches of about equally many tokens, of pairs of similar length; their order is a function of seed and epoch.

B: pairs in the batch; S, T: source and target tokens, the end-of-sentence token included.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, overload

import numpy as np
import numpy.typing as npt
from pydantic import Field

from nmt.config.structure import Structure
from nmt.data.store import Store
from nmt.data.vocabulary import EOS, PAD

if TYPE_CHECKING:
    from nmt.data.sampling import SubwordSampling
    from nmt.data.token_links import TokenLinks

Indices = npt.NDArray[np.int64]
TokenIds: TypeAlias = Sequence[Sequence[int]]
"""The tokens of several sentences."""


class BatchingConfig(Structure):
    """Grouping of the pairs into batches."""

    batch_tokens: int = Field(4096, ge=1)
    """Most target tokens of a batch, with end tokens and padding; a longer pair is one batch."""
    max_sentences: int | None = Field(None, ge=1)
    """Most pairs of a batch; null: no limit."""
    pool: int = Field(65_536, ge=1)
    """Number of pairs that are drawn at random, sorted by length and divided into batches."""


@dataclass(frozen=True)
class Batch:
    """Padded sentences. Rows end with the end-of-sentence token; the target does not begin with one.

    Attributes:
        source_BS, target_BT: Token ids, int64, `PAD` after the end.
        source_length_B, target_length_B: Tokens with the end token, without padding.
        pairs_B: Numbers of the pairs in their store.
        links: Links between tokens, if they are requested.
    """

    source_BS: npt.NDArray[np.int64]
    source_length_B: npt.NDArray[np.int64]
    target_BT: npt.NDArray[np.int64]
    target_length_B: npt.NDArray[np.int64]
    pairs_B: Indices
    links: TokenLinks | None = None


class PaddingWaste(NamedTuple):
    """Share of the cells of a batch that hold padding, from 0 to 1."""

    source: float
    target: float


class EpochBatches(Sequence[Indices]):
    """The batches of an epoch in training order, each an array of pair numbers. It takes 4 bytes per pair."""

    def __init__(self, pairs: npt.NDArray[np.integer], starts: Indices, order: Indices) -> None:
        """Batch b is `pairs[starts[b]:starts[b + 1]]`; `order` is the order of training."""
        self._pairs, self._starts, self._order = pairs, starts, order

    def __len__(self) -> int:
        return len(self._order)

    @overload
    def __getitem__(self, index: int) -> Indices: ...
    @overload
    def __getitem__(self, index: slice) -> EpochBatches: ...
    def __getitem__(self, index: int | slice) -> Indices | EpochBatches:
        if isinstance(index, slice):
            return EpochBatches(self._pairs, self._starts, self._order[index])
        batch = self._order[index]
        return self._pairs[self._starts[batch] : self._starts[batch + 1]].astype(np.int64)


def epoch_batches(store: Store, config: BatchingConfig, *, seed: int, epoch: int) -> EpochBatches:
    """Forms the batches of one training epoch.

    A pair of a corpus of weight w occurs floor(w) times, and a random share w - floor(w) of the corpus, drawn anew in
    each epoch, once more. Pairs are shuffled and dealt into pools; a pool is sorted by length and cut; the batches are
    shuffled.

    Args:
        store: The training pairs.
        config: The limits. One pair longer than `batch_tokens` is a batch by itself.
        seed: Seed of the run.
        epoch: Number of the epoch, from 0. To resume within an epoch, call this again and continue at the position.
    """
    random = np.random.default_rng([seed, epoch])
    pairs = _weighted(store, random)
    random.shuffle(pairs)
    source_lengths, target_lengths = store.source_lengths, store.target_lengths
    starts = [np.zeros(1, np.int64)]
    for begin in range(0, len(pairs), config.pool):
        pool = pairs[begin : begin + config.pool]
        pool[:] = pool[_by_length(source_lengths[pool], target_lengths[pool], config.batch_tokens)]
        starts.append(begin + _cuts(target_lengths[pool] + 1, config))
    boundaries = np.concatenate(starts)
    return EpochBatches(pairs, boundaries, random.permutation(len(boundaries) - 1))


def collate(store: Store, pairs_B: Indices, *, sampling: SubwordSampling | None = None) -> Batch:
    """Pads the pairs of a batch. Sampled segmentations are a little longer than those for which batches are formed."""
    if sampling is None:
        sources: list[npt.ArrayLike] = [store.source(index) for index in pairs_B.tolist()]
        targets: Sequence[npt.ArrayLike] = [store.target(index) for index in pairs_B.tolist()]
    else:
        drawn = [sampling.draw(store, index) for index in pairs_B.tolist()]
        sources, targets = [source for source, _ in drawn], [target for _, target in drawn]
    return padded_batch(store, pairs_B, sources, targets)


def padded_batch(
    store: Store,
    pairs_B: Indices,
    sources: Sequence[npt.ArrayLike],
    targets: Sequence[npt.ArrayLike],
    links: TokenLinks | None = None,
) -> Batch:
    """Pads the tokens of pairs, with the prefix of each before its source."""
    if store.has_context or any(corpus.prefix for corpus in store.corpora):
        prefixes = (np.array(store.prefix(index), np.int64) for index in pairs_B.tolist())
        sources = [np.concatenate(both) for both in zip(prefixes, sources, strict=True)]
    return Batch(*pad(sources), *pad(targets), pairs_B, links)


def pad(rows: Sequence[npt.ArrayLike]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Pads rows of token ids to an array [B, longest + 1], in which `EOS` and then `PAD` follow each row. Returns the
    lengths, too, with EOS."""
    lengths = np.array([np.size(row) for row in rows], dtype=np.int64)
    padded = np.full((len(rows), int(lengths.max(initial=0)) + 1), PAD, dtype=np.int64)
    for row, tokens in enumerate(rows):
        padded[row, : lengths[row]] = tokens
    padded[np.arange(len(rows)), lengths] = EOS
    return padded, lengths + 1


def halves(batch: Batch) -> tuple[Batch, Batch]:
    """Divides a batch of two or more pairs into two, each without unnecessary padding; the one with the longer pairs is
    first."""
    order_B = np.argsort(-(batch.source_length_B + batch.target_length_B), kind="stable")
    return _rows(batch, order_B[: len(order_B) // 2]), _rows(batch, order_B[len(order_B) // 2 :])


def _rows(batch: Batch, rows_B: npt.NDArray[np.intp]) -> Batch:
    source_length_B, target_length_B = batch.source_length_B[rows_B], batch.target_length_B[rows_B]
    source_BS = batch.source_BS[rows_B, : source_length_B.max()]
    target_BT = batch.target_BT[rows_B, : target_length_B.max()]
    links = None if batch.links is None else batch.links.of(rows_B)
    return Batch(source_BS, source_length_B, target_BT, target_length_B, batch.pairs_B[rows_B], links)


def length_batches(lengths: Sequence[int], tokens: int) -> Iterator[list[int]]:
    """Yields rows by falling length, in batches of at most `tokens` tokens, padding included, or of one longer row.

    So the batch that needs the most memory is first. This is for work whose order does not matter, such as search and
    scoring.
    """
    batch: list[int] = []
    for row in np.argsort(-np.asarray(lengths, dtype=np.int64), kind="stable").tolist():
        if batch and lengths[batch[0]] * (len(batch) + 1) > tokens:
            yield batch
            batch = []
        batch.append(row)
    if batch:
        yield batch


def pair_batches(sources: TokenIds, targets: TokenIds, tokens: int) -> Iterator[Batch]:
    """Yields pairs of token ids by falling length, in batches of at most `tokens` tokens on either side, padding
    included, or of one longer pair."""
    lengths = [max(len(source), len(target)) + 1 for source, target in zip(sources, targets, strict=True)]
    for rows in length_batches(lengths, tokens):
        yield Batch(*pad([sources[row] for row in rows]), *pad([targets[row] for row in rows]), np.array(rows))


def padding_waste(
    batches: Iterable[Indices], source_lengths: npt.NDArray[np.integer], target_lengths: npt.NDArray[np.integer]
) -> PaddingWaste:
    """Computes the share of padding over all batches. Lengths are without the end token, as in a store."""
    used, cells = np.zeros(2, np.int64), np.zeros(2, np.int64)
    for pairs in batches:
        for side, lengths in enumerate((source_lengths, target_lengths)):
            with_end = lengths[pairs].astype(np.int64) + 1
            used[side] += with_end.sum()
            cells[side] += with_end.max() * len(pairs)
    source, target = 1 - used / np.maximum(cells, 1)
    return PaddingWaste(float(source), float(target))


def _weighted(store: Store, random: np.random.Generator) -> npt.NDArray[np.integer]:
    """Repeats every pair by the weight of its corpus, corpus by corpus."""
    dtype = np.min_scalar_type(-max(len(store.corpus), 1 << 16))  # int32 up to 2 billion pairs
    chosen: list[npt.NDArray[np.integer]] = [np.zeros(0, dtype)]
    for corpus, stored in enumerate(store.corpora):
        ends = np.array([corpus, corpus + 1], np.uint16)  # of the column's type, or all of it is converted
        pairs = np.arange(*np.searchsorted(store.corpus, ends), dtype=dtype)
        whole, part = divmod(stored.weight, 1)
        chosen += [pairs] * int(whole)
        if part:
            chosen.append(random.choice(pairs, round(part * len(pairs)), replace=False, shuffle=False))
    return np.concatenate(chosen)


def _by_length(
    source_lengths: npt.NDArray[np.integer], target_lengths: npt.NDArray[np.integer], batch_tokens: int
) -> Indices:
    """Computes an order in which neighbours have similar lengths on both sides.

    Pairs for n batches form sqrt(n) groups of consecutive target lengths, each with about the same number of tokens. A
    group is sorted by source length, upwards and downwards alternately, so that both sides vary little within a batch.
    If pairs were sorted by target length first and source length second, a batch with two different target lengths
    would have sources of all lengths.
    """
    if len(target_lengths) == 0:
        return np.zeros(0, np.int64)
    tokens = np.bincount(target_lengths) * np.arange(1, int(target_lengths.max()) + 2)  # by length, with end tokens
    before, total = np.cumsum(tokens) - tokens, int(tokens.sum())
    groups = max(round((total / batch_tokens) ** 0.5), 1)
    group = (before * groups // total)[target_lengths]
    return np.lexsort((target_lengths, np.where(group % 2, -source_lengths, source_lengths), group)).astype(np.int64)


def _cuts(lengths: npt.NDArray[np.integer], config: BatchingConfig) -> Indices:
    """Computes the ends of batches of pairs with these target lengths, end tokens included; each batch is as large as
    the limits allow."""
    most = config.max_sentences or len(lengths)
    ends: list[int] = []
    begin = 0
    while begin < len(lengths):
        window = lengths[begin : begin + min(most, max(config.batch_tokens // int(lengths[begin]), 1))]
        cells = np.maximum.accumulate(window).astype(np.int64) * np.arange(1, len(window) + 1)
        begin += max(int(np.searchsorted(cells, config.batch_tokens, side="right")), 1)
        ends.append(begin)
    return np.array(ends, dtype=np.int64)

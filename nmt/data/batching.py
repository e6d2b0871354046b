"""Batches of about equally many tokens, from pairs of about equal length; the order is a function of seed and epoch.

B: pairs in the batch; S, T: source and target tokens, the end-of-sentence token included.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, overload

import numpy as np
import numpy.typing as npt
from pydantic import Field

from nmt.config.structure import Structure
from nmt.data.store import Ragged, Store
from nmt.data.tokenizer import TokenizerPair
from nmt.data.vocabulary import EOS, PAD

Indices = npt.NDArray[np.int64]


class BatchingConfig(Structure):
    """The batches that pairs form."""

    batch_tokens: int = Field(
        4096, ge=1, description="target tokens per batch, end tokens and padding included; a longer pair goes alone"
    )
    max_sentences: int | None = Field(None, ge=1, description="pairs per batch, at most; default: no limit")
    pool: int = Field(
        65_536, ge=1, description="pairs drawn at random that are then sorted by length and cut into batches"
    )


@dataclass(frozen=True)
class TokenLinks:
    """E links between the target and the source tokens of a batch, none of them twice.

    Attributes:
        sentence_E, target_E, source_E: The row of the batch and the two positions.
        share_E: One over the number of source tokens that the target token is linked with, float32.
    """

    sentence_E: npt.NDArray[np.int64]
    target_E: npt.NDArray[np.int64]
    source_E: npt.NDArray[np.int64]
    share_E: npt.NDArray[np.float32]

    @functools.cached_property
    def targets(self) -> int:
        """Target tokens that have links."""
        return len(np.unique(_keys(self.sentence_E, self.target_E)))

    def of(self, rows_B: npt.NDArray[np.intp]) -> TokenLinks:
        """Those of some rows of the batch, which are then all there is of it."""
        place = np.full(int(max(self.sentence_E.max(initial=0), rows_B.max(initial=0))) + 1, -1)
        place[rows_B] = np.arange(len(rows_B))
        kept = place[self.sentence_E] >= 0
        return TokenLinks(place[self.sentence_E[kept]], self.target_E[kept], self.source_E[kept], self.share_E[kept])


@dataclass(frozen=True)
class Batch:
    """Padded sentences. Rows end with the end-of-sentence token; the target does not begin with one.

    Attributes:
        source_BS, target_BT: Token ids, int64, `PAD` after the end.
        source_length_B, target_length_B: Tokens with the end token, without padding.
        pairs_B: Numbers of the pairs in their store.
        links: Between tokens, where they are asked for.
    """

    source_BS: npt.NDArray[np.int64]
    source_length_B: npt.NDArray[np.int64]
    target_BT: npt.NDArray[np.int64]
    target_length_B: npt.NDArray[np.int64]
    pairs_B: Indices
    links: TokenLinks | None = None


class PaddingWaste(NamedTuple):
    """Share of a batch's cells that hold padding, from 0 to 1."""

    source: float
    target: float


@dataclass(frozen=True)
class SubwordSampling:
    """Draws the segmentation of a pair anew each epoch: a function of seed, epoch and pair only.

    Attributes:
        tokenizers: Of the store.
        alpha: See `Tokenizer.sample`; above 0.
        seed, epoch: As for `epoch_batches`.
    """

    tokenizers: TokenizerPair
    alpha: float
    seed: int
    epoch: int

    def draw(self, store: Store, index: int) -> tuple[list[int], list[int]]:
        """Source and target tokens of a pair, without special ones. The store must have its text."""
        text, seeds = store.text(index), self._seeds(index)
        return (
            self.tokenizers.source.sample(text.source, alpha=self.alpha, seed=seeds[0]),
            self.tokenizers.target.sample(text.target, alpha=self.alpha, seed=seeds[1]),
        )

    def draw_words(self, store: Store, index: int) -> tuple[tuple[list[int], list[int]], tuple[list[int], list[int]]]:
        """Draws as `draw` does, each side with the word that each of its tokens lies in."""
        text, seeds = store.text(index), self._seeds(index)
        source = self.tokenizers.source.sample_words(text.source, alpha=self.alpha, seed=seeds[0])
        target = self.tokenizers.target.sample_words(text.target, alpha=self.alpha, seed=seeds[1])
        return (list(source.ids), list(source.word_of_piece)), (list(target.ids), list(target.word_of_piece))

    def _seeds(self, index: int) -> tuple[int, int]:
        source, target = np.random.SeedSequence([self.seed, self.epoch, index]).generate_state(2).tolist()
        return source, target


class EpochBatches(Sequence[Indices]):
    """The batches of an epoch in training order, each an array of pair numbers. Takes 8 bytes per pair."""

    def __init__(self, pairs: Indices, starts: Indices, order: Indices) -> None:
        """Batch b is `pairs[starts[b]:starts[b + 1]]`; `order` is the order in which they come."""
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
        return self._pairs[self._starts[batch] : self._starts[batch + 1]]


def epoch_batches(store: Store, config: BatchingConfig, *, seed: int, epoch: int) -> EpochBatches:
    """The batches of one training epoch.

    A pair of a corpus of weight w comes floor(w) times, and a random share w - floor(w) of the corpus, new each epoch,
    once more. Pairs are shuffled and dealt into pools; a pool is sorted by length and cut; the batches are shuffled.

    Args:
        store: The training pairs.
        config: The limits. One pair longer than `batch_tokens` is a batch by itself.
        seed: Of the run.
        epoch: From 0. To resume in an epoch, make it again and go on at the position.
    """
    random = np.random.default_rng([seed, epoch])
    pairs = random.permutation(_weighted(store, random))
    source_lengths, target_lengths = store.source_lengths, store.target_lengths
    starts = [np.zeros(1, np.int64)]
    for begin in range(0, len(pairs), config.pool):
        pool = pairs[begin : begin + config.pool]
        pool[:] = pool[_by_length(source_lengths[pool], target_lengths[pool], config.batch_tokens)]
        starts.append(begin + _cuts(target_lengths[pool] + 1, config))
    boundaries = np.concatenate(starts)
    return EpochBatches(pairs, boundaries, random.permutation(len(boundaries) - 1))


def collate(store: Store, pairs_B: Indices, *, sampling: SubwordSampling | None = None) -> Batch:
    """Pad the pairs of a batch. Sampled segmentations are a little longer than those that batches are measured by."""
    if sampling is None:
        sources: Sequence[npt.ArrayLike] = [store.source(index) for index in pairs_B.tolist()]
        targets: Sequence[npt.ArrayLike] = [store.target(index) for index in pairs_B.tolist()]
    else:
        drawn = [sampling.draw(store, index) for index in pairs_B.tolist()]
        sources, targets = [source for source, _ in drawn], [target for _, target in drawn]
    source_BS, source_length_B = pad(sources)
    target_BT, target_length_B = pad(targets)
    return Batch(source_BS, source_length_B, target_BT, target_length_B, pairs_B)


def collate_linked(store: Store, pairs_B: Indices, *, sampling: SubwordSampling | None = None) -> Batch:
    """Collates the same tokens as `collate`, with the links of the pairs. Only where the store has links."""
    nothing: npt.ArrayLike = ()
    sources: list[npt.ArrayLike] = []
    targets: list[npt.ArrayLike] = []
    words: list[tuple[npt.ArrayLike, npt.ArrayLike]] = []  # of the tokens; empty for a pair without links
    links = [store.links(index) for index in pairs_B.tolist()]
    for index, own in zip(pairs_B.tolist(), links, strict=True):
        source: npt.ArrayLike
        target: npt.ArrayLike
        of_each: tuple[npt.ArrayLike, npt.ArrayLike] = (nothing, nothing)
        if sampling is None:
            source, target = store.source(index), store.target(index)
            of_each = store.words(index) if len(own) else of_each
        elif len(own):
            (source, source_words), (target, target_words) = sampling.draw_words(store, index)
            of_each = (source_words, target_words)
        else:
            source, target = sampling.draw(store, index)
        sources.append(source)
        targets.append(target)
        words.append(of_each)
    source_BS, source_length_B = pad(sources)
    target_BT, target_length_B = pad(targets)
    found = token_links(links, [source for source, _ in words], [target for _, target in words])
    return Batch(source_BS, source_length_B, target_BT, target_length_B, pairs_B, found)


def token_links(
    links: Sequence[npt.NDArray[np.integer]],
    source_words: Sequence[npt.ArrayLike],
    target_words: Sequence[npt.ArrayLike],
) -> TokenLinks:
    """Links between the tokens of sentence pairs, from links between their words, [links, 2] with the source first and
    none twice, and the word of each token, which never falls along a sentence: each token of the one word with each of
    the other. A word without a token has none."""
    sentence_L = np.repeat(np.arange(len(links)), [len(links_of_pair) for links_of_pair in links])
    word_L2 = np.concatenate([np.zeros((0, 2), np.int64), *links]).astype(np.int64)
    source_begin_L, source_count_L = _tokens_of(sentence_L, word_L2[:, 0], source_words)
    target_begin_L, target_count_L = _tokens_of(sentence_L, word_L2[:, 1], target_words)
    count_L = source_count_L * target_count_L
    link_E = np.repeat(np.arange(len(sentence_L)), count_L)
    cell_E = np.arange(len(link_E)) - (np.cumsum(count_L) - count_L)[link_E]
    target, source = np.divmod(cell_E, source_count_L[link_E])
    sentence_E, target_E = sentence_L[link_E], target_begin_L[link_E] + target
    _, row_E, count = np.unique(_keys(sentence_E, target_E), return_inverse=True, return_counts=True)
    share_E = (1.0 / count[row_E]).astype(np.float32)
    return TokenLinks(sentence_E, target_E, source_begin_L[link_E] + source, share_E)


def _tokens_of(
    sentence_L: npt.NDArray[np.int64], word_L: npt.NDArray[np.int64], words: Sequence[npt.ArrayLike]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """For words of sentences, where in the sentence their tokens begin, and how many they are."""
    rows = Ragged.of([np.asarray(word_of_token, dtype=np.int64) for word_of_token in words])
    begin_B = np.cumsum(rows.lengths) - rows.lengths
    key_N = _keys(np.repeat(np.arange(len(words)), rows.lengths), rows.values.astype(np.int64))
    begin_L, end_L = (np.searchsorted(key_N, _keys(sentence_L, word_L), side=side) for side in ("left", "right"))
    return begin_L - begin_B[sentence_L], end_L - begin_L


def _keys(sentence: npt.NDArray[np.int64], place: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """A number for each pair of numbers, in their order."""
    return (sentence << 32) + place


def pad(rows: Sequence[npt.ArrayLike]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Rows of token ids as an array [B, longest + 1], each with `EOS` and then `PAD` behind; and lengths, with EOS."""
    lengths = np.array([np.size(row) for row in rows], dtype=np.int64)
    padded = np.full((len(rows), int(lengths.max(initial=0)) + 1), PAD, dtype=np.int64)
    for row, tokens in enumerate(rows):
        padded[row, : lengths[row]] = tokens
    padded[np.arange(len(rows)), lengths] = EOS
    return padded, lengths + 1


def halves(batch: Batch) -> tuple[Batch, Batch]:
    """A batch of two or more pairs as two: the one with the longer pairs first, each without padding that it does not
    need."""
    order_B = np.argsort(-(batch.source_length_B + batch.target_length_B), kind="stable")
    return _rows(batch, order_B[: len(order_B) // 2]), _rows(batch, order_B[len(order_B) // 2 :])


def _rows(batch: Batch, rows_B: npt.NDArray[np.intp]) -> Batch:
    source_length_B, target_length_B = batch.source_length_B[rows_B], batch.target_length_B[rows_B]
    return Batch(
        batch.source_BS[rows_B, : source_length_B.max()],
        source_length_B,
        batch.target_BT[rows_B, : target_length_B.max()],
        target_length_B,
        batch.pairs_B[rows_B],
        None if batch.links is None else batch.links.of(rows_B),
    )


def length_batches(lengths: Sequence[int], tokens: int) -> Iterator[list[int]]:
    """Rows by falling length, in batches of at most `tokens` tokens, padding included, or of one longer row.

    So what needs the most memory comes first. For work whose order does not matter: search, scoring.
    """
    batch: list[int] = []
    for row in np.argsort(-np.asarray(lengths, dtype=np.int64), kind="stable").tolist():
        if batch and lengths[batch[0]] * (len(batch) + 1) > tokens:
            yield batch
            batch = []
        batch.append(row)
    if batch:
        yield batch


def padding_waste(
    batches: Iterable[Indices], source_lengths: npt.NDArray[np.integer], target_lengths: npt.NDArray[np.integer]
) -> PaddingWaste:
    """The share of padding over all batches. Lengths are those of a store, without the end token."""
    used, cells = np.zeros(2, np.int64), np.zeros(2, np.int64)
    for pairs in batches:
        for side, lengths in enumerate((source_lengths, target_lengths)):
            with_end = lengths[pairs].astype(np.int64) + 1
            used[side] += with_end.sum()
            cells[side] += with_end.max() * len(pairs)
    source, target = 1 - used / np.maximum(cells, 1)
    return PaddingWaste(float(source), float(target))


def _weighted(store: Store, random: np.random.Generator) -> Indices:
    """Every pair as often as its corpus' weight says, corpus by corpus."""
    chosen: list[Indices] = [np.zeros(0, np.int64)]
    for corpus, stored in enumerate(store.corpora):
        begin, end = np.searchsorted(store.corpus, [corpus, corpus + 1])
        pairs = np.arange(begin, end)
        whole, part = divmod(stored.weight, 1)
        chosen += [pairs] * int(whole)
        if part:
            chosen.append(random.choice(pairs, round(part * len(pairs)), replace=False, shuffle=False))
    return np.concatenate(chosen)


def _by_length(
    source_lengths: npt.NDArray[np.integer], target_lengths: npt.NDArray[np.integer], batch_tokens: int
) -> Indices:
    """An order in which neighbours are alike on both sides.

    Pairs worth n batches make sqrt(n) groups of consecutive target lengths, of about as many tokens each; a group is
    sorted by source length, up and down in turn: so both sides vary little within a batch. Sorted by target first and
    source second, a batch would hold sources of all lengths as soon as it holds targets of two.
    """
    if len(target_lengths) == 0:
        return np.zeros(0, np.int64)
    tokens = np.bincount(target_lengths) * np.arange(1, int(target_lengths.max()) + 2)  # by length, with end tokens
    before, total = np.cumsum(tokens) - tokens, int(tokens.sum())
    groups = max(round((total / batch_tokens) ** 0.5), 1)
    group = (before * groups // total)[target_lengths]
    return np.lexsort((target_lengths, np.where(group % 2, -source_lengths, source_lengths), group)).astype(np.int64)


def _cuts(lengths: npt.NDArray[np.integer], config: BatchingConfig) -> Indices:
    """Ends of batches of pairs with these target lengths, end tokens included; each is as large as the limits allow."""
    most = config.max_sentences or len(lengths)
    ends: list[int] = []
    begin = 0
    while begin < len(lengths):
        window = lengths[begin : begin + min(most, max(config.batch_tokens // int(lengths[begin]), 1))]
        cells = np.maximum.accumulate(window).astype(np.int64) * np.arange(1, len(window) + 1)
        begin += max(int(np.searchsorted(cells, config.batch_tokens, side="right")), 1)
        ends.append(begin)
    return np.array(ends, dtype=np.int64)

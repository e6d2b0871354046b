from __future__ import annotations

import tracemalloc
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.data.batching import (
    BatchingConfig,
    EpochBatches,
    PaddingWaste,
    collate,
    epoch_batches,
    pad,
    padding_waste,
    pair_batches,
)
from nmt.data.config import SubwordsConfig
from nmt.data.sampling import SubwordSampling
from nmt.data.store import Ragged, Store, StoredCorpus, Text
from nmt.data.store_writer import StoreWriter
from nmt.data.tokenizer import TokenizerPair
from nmt.data.train_tokenizers import train_tokenizers
from nmt.data.vocabulary import EOS, PAD
from tests.data.conftest import Pairs, Tokenizers

MULTI30K = Path(__file__).parents[3] / "shared" / "data" / "multi30k"


Lengths: TypeAlias = list[tuple[int, int]]
Make: TypeAlias = Callable[..., Store]


@pytest.fixture(scope="module")
def make(tmp_path_factory: pytest.TempPathFactory) -> Make:
    """Makes a store of pairs with these lengths; `weights`: of each corpus the number of pairs and the weight."""

    def made(lengths: Lengths, weights: Sequence[tuple[int, float]] = (), texts: Sequence[Text] | None = None) -> Store:
        weights = weights or [(len(lengths), 1.0)]
        corpora = [StoredCorpus(f"corpus {number}", weight) for number, (_, weight) in enumerate(weights)]
        folder, begin = tmp_path_factory.mktemp("store") / "train", 0
        with StoreWriter(folder, corpora=corpora, vocabulary_sizes=(99, 99), keep_text=texts is not None) as writer:
            for number, (count, _) in enumerate(weights):
                part = lengths[begin : begin + count]
                writer.append(
                    corpus=number,
                    lines=np.arange(1, len(part) + 1),
                    sources=Ragged.of([np.arange(10, 10 + source) for source, _ in part]),
                    targets=Ragged.of([np.arange(20, 20 + target) for _, target in part]),
                    texts=None if texts is None else texts[begin : begin + count],
                )
                begin += count
            writer.finish()
        return Store.open(folder)

    return made


def batches_of(store: Store, *, seed: int = 1, epoch: int = 0, **config: Any) -> EpochBatches:
    return epoch_batches(store, BatchingConfig(**config), seed=seed, epoch=epoch)


def random_lengths(count: int, seed: int = 0) -> Lengths:
    random = np.random.default_rng(seed)
    source = np.maximum(random.lognormal(2.5, 0.5, count).astype(int), 1)
    target = np.maximum((source * random.normal(1, 0.2, count)).astype(int), 1)
    return list(zip(source.tolist(), target.tolist(), strict=True))


@pytest.fixture(scope="module")
def store(make: Make) -> Store:
    return make(random_lengths(1000))


def counted(batches: EpochBatches) -> Counter[int]:
    return Counter(index for batch in batches for index in batch.tolist())


@settings(max_examples=30)
@given(
    lengths=st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), min_size=0, max_size=60),
    limits=st.tuples(st.integers(1, 120), st.none() | st.integers(1, 9)),
    pool=st.integers(1, 70),
    epoch=st.integers(0, 3),
)
def test_every_pair_comes_once_and_limits_hold(
    make: Make, lengths: Lengths, limits: tuple[int, int | None], pool: int, epoch: int
) -> None:
    most, most_pairs = limits
    batches = batches_of(make(lengths), seed=7, epoch=epoch, batch_tokens=most, max_sentences=most_pairs, pool=pool)
    assert counted(batches) == Counter(range(len(lengths)))
    for batch in batches:
        cells = len(batch) * max(lengths[index][1] + 1 for index in batch)
        assert cells <= most or len(batch) == 1
        assert most_pairs is None or 1 <= len(batch) <= most_pairs


def test_batches_are_as_large_as_the_limit_allows(store: Store) -> None:
    batches = batches_of(store, batch_tokens=500)
    tokens = int((store.target_lengths + 1).sum())
    assert len(batches) <= 1.25 * tokens / 500


def test_a_batch_that_is_exactly_full_is_a_batch(make: Make) -> None:
    batches = batches_of(make([(3, 4)] * 12), batch_tokens=20)
    assert [len(batch) for batch in batches] == [4, 4, 4]


def by_length_in_loops(lengths: Lengths, batch_tokens: int) -> list[Lengths]:
    """The batches of one pool: groups of neighbouring target lengths, each sorted by source length, up in the first,
    down in the second ..., and the row of all pairs cut where a batch is full."""
    tokens = sum(target + 1 for _, target in lengths)
    groups = max(round((tokens / batch_tokens) ** 0.5), 1)
    grouped: list[Lengths] = [[] for _ in range(groups)]
    before = 0
    for target in sorted({target for _, target in lengths}):
        of_length = [pair for pair in lengths if pair[1] == target]
        grouped[before * groups // tokens] += of_length
        before += len(of_length) * (target + 1)
    row = [
        pair
        for number, group in enumerate(grouped)
        for pair in sorted(group, key=lambda pair: (-pair[0] if number % 2 else pair[0], pair[1]))
    ]
    batches: list[Lengths] = [[]]
    for pair in row:
        longer = [*batches[-1], pair]
        if len(longer) > 1 and max(target + 1 for _, target in longer) * len(longer) > batch_tokens:
            longer = [pair]
            batches.append(longer)
        batches[-1] = longer
    return batches


@pytest.mark.parametrize("batch_tokens", [100, 700, 100_000])
def test_pairs_of_like_lengths_are_put_together(batch_tokens: int, make: Make) -> None:
    lengths = random_lengths(600, seed=3)
    batches = batches_of(make(lengths), batch_tokens=batch_tokens)
    found = [sorted(lengths[pair] for pair in batch.tolist()) for batch in batches]
    assert sorted(found) == sorted(map(sorted, by_length_in_loops(lengths, batch_tokens)))


def test_order_is_a_function_of_seed_and_epoch(store: Store) -> None:
    def lists(seed: int, epoch: int) -> list[list[int]]:
        return [batch.tolist() for batch in batches_of(store, seed=seed, epoch=epoch, batch_tokens=300, pool=400)]

    first = lists(1, 0)
    assert lists(1, 0) == first
    assert lists(2, 0) != first
    assert lists(1, 1) != first
    assert {tuple(sorted(batch)) for batch in lists(1, 1)} != {tuple(sorted(batch)) for batch in first}


def test_many_pairs_take_little_memory_each(tmp_path: Path) -> None:
    count = 1_000_000
    lengths = Ragged(np.full(count, 9), np.ones(count, np.int64))
    lines = np.zeros(count, np.int64)
    with StoreWriter(tmp_path / "s", corpora=[StoredCorpus("a", 1.0)], vocabulary_sizes=(99, 99), keep_text=False) as w:
        w.append(corpus=0, lines=lines, sources=lengths, targets=lengths)
        w.finish()
    store = Store.open(tmp_path / "s")
    tracemalloc.start()
    store.check(99, 99)
    assert tracemalloc.get_traced_memory()[1] < 24 << 20  # of 20 bytes a pair, in windows of a million numbers
    tracemalloc.reset_peak()
    batches = batches_of(store, pool=1 << 12)
    held, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (held / count < 13, peak / count < 21) == (True, True)
    assert sorted(np.concatenate(list(batches)).tolist()) == list(range(count))


def test_a_resume_goes_on_where_it_was(store: Store) -> None:
    batches = batches_of(store, epoch=2, batch_tokens=300)
    rest = batches[5:]
    assert len(rest) == len(batches) - 5
    assert [batch.tolist() for batch in rest] == [batch.tolist() for batch in batches][5:]
    assert batches[-1].tolist() == rest[len(rest) - 1].tolist()
    with pytest.raises(IndexError):
        batches[len(batches)]


def test_batch_order_does_not_follow_length(store: Store) -> None:
    batches = batches_of(store, batch_tokens=300)
    means = [store.target_lengths[batch].mean() for batch in batches]
    assert abs(np.corrcoef(means, np.arange(len(means)))[0, 1]) < 0.4
    assert np.std(means) > 3


def test_weights_are_how_often_a_pair_comes(make: Make) -> None:
    store = make(random_lengths(350), [(100, 2.0), (200, 0.5), (50, 1.25)])
    halves = []
    for epoch in range(3):
        counts = counted(batches_of(store, epoch=epoch, batch_tokens=200))
        assert [counts[index] for index in range(100)] == [2] * 100
        half = [index for index in range(100, 300) if counts[index]]
        assert len(half) == 100
        assert max(counts[index] for index in half) == 1
        assert sorted(counts[index] for index in range(300, 350)) == [1] * 38 + [2] * 12  # round(12.5), to even
        halves.append(half)
    assert halves[0] != halves[1] != halves[2]
    seen = {index for epoch in range(20) for index in counted(batches_of(store, epoch=epoch))}
    assert seen == set(range(350))


def test_collate_pads_behind_the_end(store: Store) -> None:
    pairs = np.array([3, 999, 0])
    batch = collate(store, pairs)
    assert batch.pairs_B.tolist() == [3, 999, 0]
    for rows, lengths, look in (
        (batch.source_BS, batch.source_length_B, store.source),
        (batch.target_BT, batch.target_length_B, store.target),
    ):
        assert rows.dtype == lengths.dtype == np.int64
        assert rows.shape == (3, lengths.max())
        for row, length, index in zip(rows.tolist(), lengths.tolist(), pairs.tolist(), strict=True):
            assert row == [*look(index).tolist(), EOS] + [PAD] * (rows.shape[1] - length)


def test_pad_takes_empty_rows_and_none() -> None:
    padded, lengths = pad([[], [5, 6]])
    assert padded.tolist() == [[EOS, PAD, PAD], [5, 6, EOS]]
    assert lengths.tolist() == [1, 3]
    assert pad([])[0].shape[0] == 0


def test_padding_waste_by_hand() -> None:
    lengths = np.array([2, 4, 9])
    waste = padding_waste([np.array([0, 1]), np.array([2])], lengths, np.array([0, 0, 0]))
    assert waste == PaddingWaste(pytest.approx(1 - 18 / 20), 0.0)


def test_sampling_draws_anew_each_epoch(make: Make, pairs: Pairs, tokenizers: Tokenizers) -> None:
    both = tokenizers["unigram"]
    store = make([(3, 3)] * 50, texts=[Text(*pair) for pair in pairs[:50]])

    def draw(seed: int, epoch: int, indices: list[int]) -> list[list[int]]:
        batch = collate(store, np.array(indices), sampling=SubwordSampling(both, 0.2, seed, epoch))
        return [row[:length].tolist() for row, length in zip(batch.source_BS, batch.source_length_B, strict=True)]

    everything = list(range(50))
    first = draw(1, 0, everything)
    assert draw(1, 1, everything) != first != draw(2, 0, everything)
    assert draw(1, 0, everything[::-1]) == first[::-1]  # whatever else the batch holds
    for (source, _), row in zip(pairs, first, strict=False):
        assert both.source.detokenize(row) == both.source.detokenize(both.source.encode(source))


@pytest.mark.skipif(not MULTI30K.is_dir(), reason=f"Multi30k is not at {MULTI30K}")
def test_less_than_8_percent_of_multi30k_is_padding(make: Make) -> None:
    from nmt.data.corpus import read_lines

    sides = [list(read_lines(MULTI30K / f"train.{language}.gz")) for language in ("de", "en")]
    tokenizers: TokenizerPair = train_tokenizers(list(zip(*sides, strict=True)), SubwordsConfig(kind="bpe", size=8000))
    lengths = [[len(ids) for ids in tokenizers.source.encode_batch(side, threads=2)] for side in sides]
    store = make(list(zip(*lengths, strict=True)))
    for epoch in range(2):
        batches = batches_of(store, epoch=epoch, batch_tokens=4096)
        waste = padding_waste(batches, store.source_lengths, store.target_lengths)
        assert waste.source < 0.08
        assert waste.target < 0.08
        assert len(counted(batches)) == len(store)


def test_pairs_are_batched_by_their_longer_side() -> None:
    sources, targets = [[5], [5, 6, 7], [5, 6]], [[8, 9], [8], []]
    first, second = pair_batches(sources, targets, 6)
    assert (first.pairs_B.tolist(), second.pairs_B.tolist()) == ([1], [0, 2])
    assert second.source_BS.tolist() == [[5, EOS, PAD], [5, 6, EOS]]
    assert (second.target_BT.tolist(), second.target_length_B.tolist()) == ([[8, 9, EOS], [EOS, PAD, PAD]], [3, 1])

"""The stream of updates: each pair once an epoch whoever takes part, the same from any position; items taken ahead."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from itertools import chain, islice, repeat

import numpy as np
import pytest

from nmt.core.device import compute
from nmt.core.errors import InputError
from nmt.data.batching import BatchingConfig
from nmt.data.config import CorpusConfig, DataConfig, SubwordsConfig, TrainingCorpusConfig
from nmt.training.distributed import shares
from nmt.training.processes import Processes
from nmt.training.stream import Position, PreparedUpdate, Stream, TrainingData, prefetched
from nmt.workflows.prepare import prepare
from tests.workflows.runs import write_corpus


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> TrainingData:
    folder = tmp_path_factory.mktemp("stream")
    write_corpus(folder)
    config = DataConfig(
        train=TrainingCorpusConfig(source=folder / "train.de", target=folder / "train.en"),
        valid=CorpusConfig(source=folder / "valid.de", target=folder / "valid.en"),
        subwords=SubwordsConfig(kind="bpe", size=60, sampling=0.1),
    )
    prepared = prepare(config, run=folder, seed=1)
    return TrainingData(prepared.train, prepared.tokenizers, 0.1, prepared.key)


class OneOf(Processes):
    """A process among several, of which only the share counts here."""

    def __init__(self, rank: int, size: int) -> None:
        self._rank, self._size = rank, size

    def share(self, lengths_B: np.ndarray) -> np.ndarray:
        return shares(lengths_B, self._size)[self._rank]


def stream(data: TrainingData, *, accumulate: int = 1, rank: int = 0, size: int = 1) -> Stream:
    batching = BatchingConfig(batch_tokens=25)
    return Stream(data, batching, accumulate, 7, OneOf(rank, size), compute("cpu", "float32"))


def epoch(works: Iterator[PreparedUpdate], number: int = 0) -> list[PreparedUpdate]:
    found = []
    for work in works:
        found.append(work)
        if work.following.epoch > number:
            return found
    raise AssertionError("the stream ended")


def same(one: PreparedUpdate, other: PreparedUpdate) -> bool:
    arrays = [[None if each is None else (each.source_BS.tolist(), each.target_BT.tolist()) for each in work.shares]
              for work in (one, other)]  # fmt: skip
    return one.following == other.following and arrays[0] == arrays[1]


@pytest.mark.parametrize(("size", "accumulate"), [(1, 1), (1, 4), (2, 4), (5, 1)])
def test_each_pair_comes_once_an_epoch_whoever_takes_part(data: TrainingData, size: int, accumulate: int) -> None:
    """Some batches have so few pairs that some processes have no row."""
    seen: list[int] = []
    empty = 0
    for rank in range(size):
        works = epoch(stream(data, accumulate=accumulate, rank=rank, size=size).after(Position()))
        assert [work.following.update for work in works] == list(range(1, len(works) + 1))
        assert works[0].epoch_batches == sum(len(work.pairs) for work in works)
        own = [share for work in works for share in work.shares if share is not None]
        assert sum(work.tokens for work in works) == sum(int(share.target_length_B.sum()) for share in own)
        seen += chain.from_iterable(share.pairs_B.tolist() for share in own)
        empty += sum(work.shares.count(None) for work in works)
    assert (empty > 0) == (size > 1)
    assert sorted(seen) == list(range(len(data.train)))


@pytest.mark.parametrize("accumulate", [1, 3])
def test_it_goes_on_from_any_position_as_if_never_left(data: TrainingData, accumulate: int) -> None:
    whole = list(islice(stream(data, accumulate=accumulate).after(Position()), 40))
    assert whole[-1].following.epoch >= 1
    for place in (1, 7, 20, 39):
        (following,) = islice(stream(data, accumulate=accumulate).after(whole[place - 1].following), 1)
        assert same(following, whole[place])
        assert not same(following, whole[place - 1])


def test_an_empty_corpus_is_named(data: TrainingData, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nmt.training.stream.epoch_batches", lambda *_, **__: [])
    with pytest.raises(InputError, match=r"data\.train: no pair is left"):
        next(stream(data).after(Position()))


# ------------------------------------------------------------------------------------------------- taking in advance


def test_items_come_in_order_and_only_so_many_in_advance() -> None:
    taken: list[int] = []

    def items() -> Iterator[int]:
        for number in range(1000):
            taken.append(number)
            yield number

    with prefetched(items(), ahead=2) as ready:
        assert not taken, "began before it was asked"
        for number in range(100):
            assert next(ready) == number
            assert len(taken) <= number + 1 + 2 + 2  # given, waiting, and one at the door
        time.sleep(0.3)
        assert len(taken) <= 100 + 2 + 1
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("prefetch")]


def test_items_are_made_while_others_are_used() -> None:
    made = threading.Event()

    def items() -> Iterator[int]:
        yield 0
        made.set()
        yield 1

    with prefetched(items()) as ready:
        assert next(ready) == 0
        assert made.wait(timeout=10), "the next one waits to be asked for"


def test_an_error_comes_where_its_item_would() -> None:
    def items() -> Iterator[int]:
        yield from (0, 1)
        raise InputError("no more")

    with prefetched(iter("abc")) as ready:
        assert list(ready) == ["a", "b", "c"]
    with prefetched(items(), ahead=5) as ready:
        assert [next(ready), next(ready)] == [0, 1]
        with pytest.raises(InputError, match="no more"):
            next(ready)


def test_leaving_early_ends_the_thread() -> None:
    with suppress(KeyboardInterrupt), prefetched(repeat(0)) as ready:
        next(ready)
        raise KeyboardInterrupt
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("prefetch")]

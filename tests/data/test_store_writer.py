"""What is written into a store is read from its files."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.data.store import PairOrigin, Store
from nmt.data.store_writer import StoreWriter
from tests.data.conftest import refusal
from tests.data.stores import CORPORA, PAIRS, Pair, write

TOKENS = st.lists(st.integers(0, 65535), max_size=5)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)


@settings(max_examples=30)
@given(
    pairs=st.lists(st.tuples(TOKENS, TOKENS, TEXT, TEXT), max_size=12),
    chunk=st.integers(1, 5),
    size=st.sampled_from([65535, 65536, 70000]),
)
def test_a_store_gives_back_what_was_written(
    tmp_path_factory: pytest.TempPathFactory, pairs: list[Pair], chunk: int, size: int
) -> None:
    store = write(tmp_path_factory.mktemp("store") / "train", pairs, chunk=chunk, size=size)
    assert len(store) == len(pairs)
    assert store.source_lengths.tolist() == [len(pair[0]) for pair in pairs]
    assert store.target_lengths.tolist() == [len(pair[1]) for pair in pairs]
    for index, (source, target, source_text, target_text) in enumerate(pairs):
        assert store.source(index).tolist() == source
        assert store.target(index).tolist() == target
        assert store.text(index) == (source_text, target_text)
        corpus = int(index // chunk * chunk >= len(pairs) / 2)
        assert store.line(index) == PairOrigin(CORPORA[corpus].name, index * 10 + 1)
        assert store.corpus[index] == corpus


@pytest.mark.parametrize(("size", "width"), [(65535, 2), (65536, 4)])
def test_tokens_take_two_bytes_while_the_vocabulary_allows(tmp_path: Path, size: int, width: int) -> None:
    store = write(tmp_path / "train", PAIRS, size=size)
    assert store.source(0).dtype.itemsize == width
    assert (tmp_path / "train" / "source.bin").stat().st_size == 3 * width


def test_text_is_there_only_if_kept(tmp_path: Path) -> None:
    store = write(tmp_path / "train", PAIRS, keep_text=False)
    assert not store.has_text
    with pytest.raises(ValueError, match="without text"):
        store.text(0)


def test_an_unfinished_store_is_none(tmp_path: Path) -> None:
    with StoreWriter(tmp_path / "train", corpora=CORPORA, vocabulary_sizes=(9, 9), keep_text=False):
        pass
    assert "store.json: no such file; run `nmt prepare`" in refusal(Store.open, tmp_path / "train")

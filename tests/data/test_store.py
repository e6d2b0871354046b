from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.core.errors import InputError
from nmt.data.store import PairOrigin, Ragged, Store, StoredCorpus, Text
from nmt.data.store_writer import StoreWriter

CORPORA = [StoredCorpus("a.de + a.en", 1.0), StoredCorpus("b.tsv", 0.5)]
Pair = tuple[list[int], list[int], str, str]
PAIRS: list[Pair] = [([5, 6], [7], "ä b", "c"), ([], [8, 9, 10], "", "d\u2028e"), ([11], [], "😀", "")]


def write(folder: Path, pairs: list[Pair], *, chunk: int = 2, size: int = 100, keep_text: bool = True) -> Store:
    """Pairs alternate between corpora chunk by chunk only at the middle: the first half is of the first corpus."""
    with StoreWriter(folder, corpora=CORPORA, vocabulary_sizes=(size, size), keep_text=keep_text) as writer:
        for start in range(0, len(pairs), chunk):
            part = pairs[start : start + chunk]
            writer.append(
                corpus=int(start >= len(pairs) / 2),
                lines=np.arange(start, start + len(part)) * 10 + 1,
                sources=Ragged.of([np.array(source, np.int32) for source, _, _, _ in part]),
                targets=Ragged.of([np.array(target, np.int32) for _, target, _, _ in part]),
                texts=[Text(source, target) for _, _, source, target in part] if keep_text else None,
            )
        writer.finish()
    return Store.open(folder)


TOKENS = st.lists(st.integers(0, 65535), max_size=5)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)


@settings(max_examples=30, deadline=None)
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


def test_select_keeps_whole_rows() -> None:
    rows = [np.array(row) for row in ([1, 2], [], [3], [4, 5, 6])]
    chosen = Ragged.of(rows).select(np.array([False, True, True, True]))
    assert chosen.values.tolist() == [3, 4, 5, 6]
    assert chosen.lengths.tolist() == [0, 1, 3]


def test_another_process_reads_the_same(tmp_path: Path) -> None:
    write(tmp_path / "train", PAIRS)
    code = (
        "import sys, pathlib, json; from nmt.data.store import Store; s = Store.open(pathlib.Path(sys.argv[1]))\n"
        "print(json.dumps([[s.source(i).tolist(), s.target(i).tolist(), *s.text(i)] for i in range(len(s))]))"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "train")]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert json.loads(printed) == [list(pair) for pair in PAIRS]


def test_text_is_there_only_if_kept(tmp_path: Path) -> None:
    store = write(tmp_path / "train", PAIRS, keep_text=False)
    assert not store.has_text
    with pytest.raises(ValueError, match="without text"):
        store.text(0)


@pytest.mark.parametrize("index", [-1, 3])
def test_a_pair_out_of_range_is_an_error(tmp_path: Path, index: int) -> None:
    store = write(tmp_path / "train", PAIRS)
    for look in (store.source, store.target, store.line, store.text):
        with pytest.raises(IndexError):
            look(index)


def test_pages_are_shared_and_read_only(tmp_path: Path) -> None:
    store = write(tmp_path / "train", PAIRS)
    assert not store.source(0).flags.owndata
    with pytest.raises(ValueError, match="read-only"):
        store.source(0)[0] = 1


def test_an_unfinished_store_is_none(tmp_path: Path) -> None:
    with StoreWriter(tmp_path / "train", corpora=CORPORA, vocabulary_sizes=(9, 9), keep_text=False):
        pass
    with pytest.raises(InputError, match=r"store\.json: no such file; run `nmt prepare`"):
        Store.open(tmp_path / "train")


@pytest.mark.parametrize("name", ["source.bin", "target.offsets.bin", "line.bin", "store.json"])
@pytest.mark.parametrize("damage", ["cut", "gone", "longer"])
def test_a_damaged_store_is_refused(tmp_path: Path, name: str, damage: str) -> None:
    write(tmp_path / "train", PAIRS)
    path = tmp_path / "train" / name
    data = path.read_bytes()
    if damage == "gone":
        path.unlink()
    else:
        path.write_bytes(data[:-2] if damage == "cut" else data + b"xx")
    with pytest.raises(InputError, match="run `nmt prepare`"):
        Store.open(tmp_path / "train")

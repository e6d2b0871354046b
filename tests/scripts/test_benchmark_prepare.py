"""The corpora that the measurement of preparation writes, and the stores that it repeats."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from nmt.data.store import Ragged, Store, StoredCorpus
from nmt.data.store_writer import StoreWriter

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))

import benchmark_prepare


def test_two_pairs_in_a_hundred_are_wrong(tmp_path: Path) -> None:
    for side, letter in (("de", "ä"), ("en", "e")):
        (tmp_path / side).write_text("".join(f"{letter} {number}\n" for number in range(7)), encoding="utf-8")
    benchmark_prepare._write((tmp_path / "de", tmp_path / "en"), tmp_path, 180, joined=True, faults=True)
    sources, targets = ((tmp_path / side).read_text("utf-8").split("\n")[:-1] for side in ("source", "target"))
    assert len(sources) == len(targets) == 180
    swapped = [row for row in range(180) if sources[row].startswith("e")]
    assert swapped == [row for row in range(180) if targets[row].startswith("ä")] == [75, 175]
    for row in (50, 150):
        assert (sources[row], targets[row]) == (sources[row - 1].upper(), targets[row - 1].upper())
        assert sources[row] != sources[row - 1]
    assert [source.split()[1::2] for source in sources] == [target.split()[1::2] for target in targets]


def test_a_store_is_repeated(tmp_path: Path) -> None:
    rows = [[4, 5, 6], [7], [8, 9]]
    with StoreWriter(
        tmp_path / "store", corpora=[StoredCorpus("a", 1.0)], vocabulary_sizes=(20, 20), keep_text=False
    ) as writer:
        sources, targets = (Ragged.of([np.array(row) + number for row in rows]) for number in (0, 1))
        writer.append(corpus=0, lines=np.arange(1, 4), sources=sources, targets=targets)
        writer.finish()
    assert benchmark_prepare._repeat(tmp_path / "store", 3) == 9
    store = Store.open(tmp_path / "store")
    store.check(20, 20)
    assert [store.source(index).tolist() for index in range(len(store))] == rows * 3
    assert [store.target(index).tolist() for index in range(9)] == [[token + 1 for token in row] for row in rows] * 3

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from nmt.data.store import Ragged, Store
from tests.data.conftest import refusal
from tests.data.stores import PAIRS, write


def test_select_keeps_whole_rows() -> None:
    rows = [np.array(row) for row in ([1, 2], [], [3], [4, 5, 6])]
    chosen = Ragged.of(rows).select(np.array([False, True, True, True]))
    assert chosen.values.tolist() == [3, 4, 5, 6]
    assert chosen.lengths.tolist() == [0, 1, 3]


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


@pytest.mark.parametrize("name", ["source.bin", "target.offsets.bin", "line.bin", "store.json"])
@pytest.mark.parametrize("damage", ["cut", "gone", "longer"])
def test_a_damaged_store_is_refused(tmp_path: Path, name: str, damage: str) -> None:
    write(tmp_path / "train", PAIRS)
    path = tmp_path / "train" / name
    data = path.read_bytes()
    path.unlink()
    if damage != "gone":
        path.write_bytes(data[:-2] if damage == "cut" else data + b"xx")
    assert "run `nmt prepare`" in refusal(Store.open, tmp_path / "train")

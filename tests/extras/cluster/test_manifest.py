"""The manifest of a translation of many files, and its files, which are whole or not there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from nmt.core.errors import InputError
from nmt.core.files import whole_file
from nmt.extras.cluster.manifest import FILE, ShardManifest, remove_leftovers
from nmt.extras.cluster.shards import Shard, find_shards
from tests.extras.cluster.test_shards import write


def test_a_manifest_knows_what_differs(tmp_path: Path) -> None:
    made_with: dict[str, Any] = {"model": ["12ab"], "search": {"beam": 5, "sampling": None}, "lengths": [3, 4]}
    assert ShardManifest.load(tmp_path) is None
    a, b, c = (Shard(path, 6, 1) for path in write(tmp_path / "in", "a.txt", "b.txt", "c.txt"))
    ShardManifest().begin(made_with, [a, b]).save(tmp_path)
    found = ShardManifest.load(tmp_path)
    assert found is not None
    found.check(made_with, tmp_path)
    for change, message in (
        ({"search": {"beam": 4, "sampling": None}}, "with search.beam 5, not 4"),
        ({"search": {"beam": 5, "sampling": {"seed": 1}}}, "with search.sampling.seed unset, not 1"),
        ({"model": ["34cd"]}, "with another model"),
        ({"lengths": [3, 5]}, r"with lengths \[3, 4\], not \[3, 5\]"),
    ):
        with pytest.raises(InputError, match=f"^--output {tmp_path}: was begun {message}; keep its settings"):
            found.check({**made_with, **change}, tmp_path)
    assert found.remaining([a, b, c], tmp_path) == [a, b, c]
    assert not found.has_any(tmp_path)
    write(tmp_path, "a.txt")
    assert found.remaining([a, b, c], tmp_path) == [b, c]
    assert found.has_any(tmp_path)
    with pytest.raises(InputError, match="a.txt: has changed since .* was written; delete that"):
        found.remaining([Shard(a.path, 7, 1), b], tmp_path)
    write(tmp_path, "c.txt")
    with pytest.raises(InputError, match="c.txt: is there, and no translation of ours"):
        found.remaining([a, b, c], tmp_path)
    (tmp_path / FILE).write_text("{}")
    with pytest.raises(InputError, match=f"{FILE}: is damaged"):
        ShardManifest.load(tmp_path)


def test_a_file_is_whole_or_not_there(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    with pytest.raises(NotADirectoryError), whole_file(path) as partial:
        (partial / "no folder").write_text("half")
    assert list(tmp_path.iterdir()) == []
    with whole_file(path) as partial:
        partial.write_text("whole")
        assert not path.exists()
    assert path.read_text() == "whole"
    assert path.stat().st_mode & 0o777 == write(tmp_path, "b.txt")[0].stat().st_mode & 0o777
    left = write(tmp_path, ".a.txt.partial-12-x", ".b.txt.other")
    remove_leftovers(tmp_path, find_shards(path))
    assert [each.exists() for each in left] == [False, True]

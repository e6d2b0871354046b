"""Lines of one language: which are kept, and that none is lost."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from nmt.extras.corpus.augment import text
from nmt.extras.corpus.augment.text import cleaned, read_copies, read_shards, write_shards


def test_lines_are_kept_once_and_all_others_counted() -> None:
    lines = ["a b", " a b ", "", " \t", "c\x00d", "e\u2028f", "held out", "one two three four"]
    lines += ["x" * 61, "c", "a b", "é"]
    counts: Counter[str] = Counter()
    assert list(cleaned(lines, counts, max_length=3, held_out={"held out"})) == ["a b", "c", "é"]
    assert counts == {
        "kept": 3, "repeated": 2, "blank": 2, "with control characters": 2, "in valid or test": 1, "too long": 2,
    }  # fmt: skip
    assert counts.total() == len(lines)


@pytest.mark.parametrize("count", [0, 1, 6, 7])
def test_shards_hold_the_lines_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    monkeypatch.setattr(text, "SHARD_LINES", 3)
    lines = [f"line {number}\u0085x" for number in range(count)]
    write_shards(["of an earlier time"] * 9, tmp_path / "text")
    write_shards(lines, tmp_path / "text")
    assert list(read_shards(tmp_path / "text")) == lines
    assert len(list((tmp_path / "text").iterdir())) == -(-count // 3)
    assert [(row.line, row.text) for row in read_copies(tmp_path / "text")] == [(line, line) for line in lines]

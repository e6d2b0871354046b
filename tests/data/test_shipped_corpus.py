"""The corpus that ships is the one that its generator wrote. `make corpus` tests what it holds."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

DATA = Path(__file__).resolve().parents[2] / "data" / "de-en"
CHECKSUM = "2a158de953ec01bb0ba8206cee15e3df0cbcb58ab11a231aa59ca63292befaa2"


def test_checksum_of_all_files() -> None:
    files = sorted(path for path in DATA.iterdir() if path.suffix in (".de", ".en", ".align"))
    assert hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest() == CHECKSUM


def test_numbers_of_pairs_are_those_of_its_page() -> None:
    page = (DATA / "README.md").read_text(encoding="utf-8")
    table = {name: int(pairs.replace(",", "")) for name, pairs in re.findall(r"\| `(\w+)` \| ([\d,]+) \|", page)}
    assert set(table) == {path.stem for path in DATA.glob("*.de")}
    for path in (*DATA.glob("*.de"), *DATA.glob("*.en"), *DATA.glob("*.align")):
        assert path.read_bytes().count(b"\n") == table[path.stem], path.name

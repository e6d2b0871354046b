"""A corpus of pairs that the tests of its preparation share."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from nmt.data.config import DataConfig
from nmt.data.prepared import PreparedData
from tests.data.conftest import make_pairs

Pairs: TypeAlias = Sequence[tuple[str, str]]
Make: TypeAlias = Callable[..., PreparedData]
PAIRS = make_pairs(400)


def write_tsv(path: Path, pairs: Pairs) -> Path:
    path.write_text("".join(f"{source}\t{target}\n" for source, target in pairs), encoding="utf-8", newline="")
    return path


def config_of(path: Path, /, **data: Any) -> DataConfig:
    data = {"train": {"pairs": str(path)}, "subwords": {"size": 120}, **data}
    return DataConfig.model_validate_json(json.dumps(data, default=str))


def content(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}

"""Small stores."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from nmt.data.store import Ragged, Store, StoredCorpus, Text
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

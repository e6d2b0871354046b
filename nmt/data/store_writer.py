"""Writes the store of a corpus; see ``nmt.data.store``."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from nmt.data.store import DTYPES, FORMAT, SIDES, WORDS, Ragged, StoredCorpus, Text


class StoreWriter(contextlib.ExitStack):
    """Writes a store chunk by chunk, into a folder that it makes. Without a call of `finish` the store does not exist.

    Args:
        folder: Path of the new folder; its parent must exist.
        corpora: The corpora that the pairs come from.
        vocabulary_sizes: Sizes of the source and target vocabulary, which determine the number of bytes of a token.
        keep_text: Store the sentences, too.
        keep_links: Store links between words.
        keep_context: Store the tokens of previous sentences.

    Attributes:
        keep_words: True if the store keeps the word of each token.
    """

    def __init__(
        self, folder: Path, *, corpora: Sequence[StoredCorpus], vocabulary_sizes: tuple[int, int], keep_text: bool,
        keep_links: bool = False, keep_context: bool = False,
    ) -> None:  # fmt: skip
        super().__init__()
        assert len(corpora) < 1 << 16
        folder.mkdir()
        self._folder = folder
        self._corpora = corpora
        self._pairs = 0
        self.keep_text, self.keep_words = keep_text, keep_links and not keep_text
        self._columns: dict[str, _ColumnFile] = {}
        for side, size in zip(SIDES, vocabulary_sizes, strict=True):
            self._add_rows(side, size)
            if keep_text:
                self._add_rows(f"{side}.text")
        if keep_context:
            self._add_rows("context", vocabulary_sizes[0])
        self._add("corpus")
        self._add("line")
        if keep_links:
            self._add_rows("links")
        for side in SIDES if self.keep_words else ():
            self._add(f"{side}.words")

    def append(
        self, *, corpus: int, lines: npt.NDArray[np.int64], sources: Ragged, targets: Ragged,
        texts: Sequence[Text] | None = None, links: Ragged | None = None, words: tuple[Ragged, Ragged] | None = None,
        contexts: Ragged | None = None,
    ) -> None:  # fmt: skip
        """Adds pairs of one corpus: their line numbers, tokens, and text if the store keeps it.

        `links` has two numbers for each link, and `words` the word of each source and each target token, if the store
        keeps words, too; None means a corpus without links. `contexts` has the tokens of previous sentences, if the
        store keeps them.
        """
        assert len(lines) == len(sources.lengths) == len(targets.lengths)
        assert (texts is not None) == self.keep_text
        self._append_rows("source", sources)
        self._append_rows("target", targets)
        if "context" in self._columns:
            assert contexts is not None
            self._append_rows("context", contexts)
        if texts is not None:
            assert len(texts) == len(lines)
            self._append_rows("source.text", _utf8([text.source for text in texts]))
            self._append_rows("target.text", _utf8([text.target for text in texts]))
        self._columns["corpus"].append(np.full(len(lines), corpus))
        self._columns["line"].append(lines)
        if "links" in self._columns:
            self._append_rows("links", links if links is not None else Ragged.blank(len(lines)))
        if self.keep_words:
            for name, tokens, of_tokens in zip(SIDES, (sources, targets), words or (None, None), strict=True):
                of_each = np.zeros(len(tokens.values)) if of_tokens is None else np.minimum(of_tokens.values, WORDS)
                assert len(of_each) == len(tokens.values)
                self._columns[f"{name}.words"].append(of_each)
        self._pairs += len(lines)

    def finish(self, corpora: Sequence[StoredCorpus] | None = None) -> None:
        """Writes everything to disk, with `store.json` last. `corpora` may give the corpora other weights than
        before."""
        self.close()
        description = {
            "format": FORMAT,
            "pairs": self._pairs,
            "corpora": [
                {"name": corpus.name, "weight": corpus.weight} | ({"prefix": corpus.prefix} if corpus.prefix else {})
                for corpus in corpora or self._corpora
            ],
            "columns": {name: [column.dtype.str, column.count] for name, column in self._columns.items()},
        }
        (self._folder / "store.json").write_text(json.dumps(description, indent=1) + "\n")

    def _add(self, name: str, size: int = 0) -> None:
        """Adds a column, of tokens of a vocabulary of this size or of other numbers."""
        file = self.enter_context((self._folder / f"{name}.bin").open("wb"))
        self._columns[name] = _ColumnFile(file, np.dtype(DTYPES[name][size >> 16 > 0]))

    def _add_rows(self, name: str, size: int = 0) -> None:
        self._add(name, size)
        self._add(f"{name}.offsets")
        self._columns[f"{name}.offsets"].append(np.zeros(1))

    def _append_rows(self, name: str, rows: Ragged) -> None:
        values, offsets = self._columns[name], self._columns[f"{name}.offsets"]
        offsets.append(values.count + np.cumsum(rows.lengths))
        values.append(rows.values)


@dataclass
class _ColumnFile:
    """A file of numbers that grows."""

    file: BinaryIO
    dtype: np.dtype[Any]
    count: int = 0

    def append(self, values: npt.NDArray[Any]) -> None:
        self.file.write(values.astype(self.dtype).tobytes())
        self.count += len(values)


def _utf8(texts: Sequence[str]) -> Ragged:
    return Ragged.of([np.frombuffer(text.encode("utf-8"), np.uint8) for text in texts])

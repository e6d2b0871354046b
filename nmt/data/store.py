"""Tokenised sentence pairs in memory-mapped files.

A store is a folder: `store.json` says what it holds, each column is one or two files of little-endian numbers.

    source, target              token ids, uint16 or uint32, without special ones; .offsets.bin: int64, pairs + 1
    context                     optional: tokens of the sentences before the source, with a break behind each, as above
    source.text, target.text    optional: UTF-8 of the sentences as they came, to sample subwords or to score against
    corpus.bin, line.bin        uint16, int64: which corpus a pair is from, and which of its lines, from 1
    links                       optional: words that belong together, source and target in turn, uint16, from 0;
                                .offsets.bin as above
    source.words, target.words  beside links without a text to find it from: the word of each token, uint16

Opening reads `store.json` and the ends of the offsets: pages are read as they are used and shared between processes.
`Store.check` reads all numbers once, and finds those that no store has that was written here.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from nmt.core.errors import InputError
from nmt.core.files import read_json, refuse_special
from nmt.data.context import DocumentContext

FORMAT = 1
SIDES = ("source", "target")
DTYPES = {
    **dict.fromkeys((*SIDES, "context"), ("<u2", "<u4")),
    **dict.fromkeys(("source.text", "target.text"), ("|u1",)),
    **dict.fromkeys(("corpus", "links", "source.words", "target.words"), ("<u2",)),
    **{f"{name}.offsets": ("<i8",) for name in (*SIDES, "context", "source.text", "target.text", "links")},
    "line": ("<i8",),
}
"""The data types of the possible columns: for tokens, of a small and of a large vocabulary."""

_PART = 1 << 20

WORDS = (1 << 16) - 1
"""Number of the first words of a sentence that may have links."""


class PairOrigin(NamedTuple):
    """The line that a pair came from. `number` counts from 1."""

    corpus: str
    number: int


class Text(NamedTuple):
    """The original sentences of a pair."""

    source: str
    target: str


@dataclass(frozen=True)
class StoredCorpus:
    """A corpus whose pairs a store holds: its name in messages, the number of times that each pair is seen per epoch,
    and the tokens that a model reads before each source."""

    name: str
    weight: float
    prefix: tuple[int, ...] = ()


@dataclass(frozen=True)
class Ragged:
    """Rows of numbers of different lengths, concatenated in `values`."""

    values: npt.NDArray[Any]
    lengths: npt.NDArray[np.int64]

    @classmethod
    def of(cls, rows: Sequence[npt.NDArray[Any]]) -> Ragged:
        """Concatenates rows."""
        values = np.concatenate(rows) if rows else np.zeros(0, np.int64)
        return cls(values, np.fromiter(map(len, rows), np.int64, len(rows)))

    @classmethod
    def blank(cls, rows: int) -> Ragged:
        """Creates empty rows."""
        return cls(np.zeros(0, np.int64), np.zeros(rows, np.int64))

    def select(self, rows: npt.NDArray[np.bool_]) -> Ragged:
        """Selects the rows for which the mask is true."""
        return Ragged(self.values[np.repeat(rows, self.lengths)], self.lengths[rows])


class Store:
    """Sentence pairs, read-only, by number from 0.

    Raises:
        InputError: Raised by `open` if the folder is not a store, or is damaged.
    """

    def __init__(self, folder: Path, description: dict[str, Any]) -> None:
        self.folder = folder
        self.corpora = tuple(_corpus(**corpus) for corpus in description["corpora"])
        self._pairs = _count(description["pairs"])
        columns: dict[str, npt.NDArray[Any]] = {}
        for name, (dtype, count) in description["columns"].items():
            if dtype not in DTYPES[name]:
                raise ValueError(f"{name}: {dtype}")
            columns[name] = _map(folder / f"{name}.bin", np.dtype(dtype), _count(count))
        self._columns = columns
        self.has_text = "source.text" in columns
        self.has_links = "links" in columns
        self.has_context = "context" in columns
        self._check_counts()

    @classmethod
    def open(cls, folder: Path) -> Store:
        """Maps the store in `folder`."""
        try:
            description = read_json(folder / "store.json")
            if description["format"] != FORMAT:
                raise InputError(f"{folder}: made by another version of nmt; delete it and run `nmt prepare` again")
            return cls(folder, description)
        except FileNotFoundError as error:
            raise InputError(f"{error.filename}: no such file; run `nmt prepare`") from None
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            raise _damaged(folder) from None

    def __len__(self) -> int:
        return self._pairs

    def source(self, index: int) -> npt.NDArray[np.unsignedinteger]:
        """Returns the source tokens of a pair, a view into the file."""
        return self._row("source", index)

    def target(self, index: int) -> npt.NDArray[np.unsignedinteger]:
        """Returns the target tokens of a pair, a view into the file."""
        return self._row("target", index)

    @functools.cached_property
    def source_lengths(self) -> npt.NDArray[np.int32]:
        """Number of tokens of every source sentence with its context, without special ones."""
        lengths = _differences(self._columns["source.offsets"])
        return lengths + _differences(self._columns["context.offsets"]) if self.has_context else lengths

    @functools.cached_property
    def target_lengths(self) -> npt.NDArray[np.int32]:
        """Number of tokens of every target sentence, without special ones."""
        return _differences(self._columns["target.offsets"])

    def token_counts(self, side: str, tokens: int, begin: int = 0, end: int = -1) -> npt.NDArray[np.int64]:
        """Counts how often each of ``tokens`` tokens occurs on a side, in all pairs or in those from ``begin`` until
        ``end``."""
        offsets, count_V = self._columns[f"{side}.offsets"], np.zeros(tokens, np.int64)
        column = self._columns[side][offsets[begin] : offsets[end]]
        for start in range(0, len(column), 1 << 20):  # bincount works on a copy in int64
            count_V += np.bincount(column[start : start + (1 << 20)], minlength=tokens)
        return count_V

    @property
    def corpus(self) -> npt.NDArray[np.uint16]:
        """Index in `corpora` of the corpus of every pair; pairs of a corpus are contiguous, in their original order."""
        return self._columns["corpus"]

    def prefix(self, index: int) -> tuple[int, ...]:
        """Returns the tokens that a model reads before the source of a pair: the token of the target language, and the
        context."""
        context = self._row("context", index).tolist() if self.has_context else ()
        return (*self.corpora[int(self.corpus[index])].prefix, *context)

    def line(self, index: int) -> PairOrigin:
        """Returns the corpus and line that a pair came from."""
        self._check(index)
        return PairOrigin(self.corpora[int(self.corpus[index])].name, int(self._columns["line"][index]))

    def text(self, index: int) -> Text:
        """Returns the original sentences of a pair. Requires `has_text`."""
        if not self.has_text:
            raise ValueError(f"{self.folder} was made without text")
        try:
            return Text(*(self._row(f"{side}.text", index).tobytes().decode("utf-8") for side in SIDES))
        except UnicodeDecodeError:
            raise _damaged(self.folder) from None

    def source_texts(self) -> list[str]:
        """Returns the source of every pair, which knows the sources before it in its corpus. Requires `has_text`; it is
        for the valid corpus, which is stored completely."""
        documents = [DocumentContext() for _ in self.corpora]
        return [
            text
            for index in range(len(self))
            for text in documents[int(self.corpus[index])].sentences([self.text(index).source])
        ]

    def links(self, index: int) -> npt.NDArray[np.uint16]:
        """Returns the links of a pair between words, [links, 2], source first; there may be none. Requires
        `has_links`."""
        return self._row("links", index).reshape(-1, 2)

    @property
    def linked_pairs(self) -> int:
        """Number of pairs with links."""
        return int(np.count_nonzero(_differences(self._columns["links.offsets"]))) if self.has_links else 0

    def words(self, index: int) -> tuple[npt.NDArray[np.uint16], npt.NDArray[np.uint16]]:
        """Returns the index of the word that contains each source token and each target token of a pair with links; it
        is `WORDS` for all words from number `WORDS` on. Requires `has_links` and not `has_text`."""
        return self._row("source.words", index), self._row("target.words", index)

    def check(self, source_tokens: int, target_tokens: int) -> None:
        """Reads all numbers. Raises InputError if a token is not in vocabularies of these sizes, or the offsets of a
        row, a corpus or the number of links is invalid."""
        if any(token >= source_tokens for corpus in self.corpora for token in corpus.prefix):
            raise _damaged(self.folder)
        most = {"source": source_tokens, "target": target_tokens, "corpus": len(self.corpora), "context": source_tokens}
        for name in self._columns:
            for part in self._parts(name) if name in most or name.endswith(".offsets") else ():
                sound = bool((part[1:] >= part[:-1]).all()) if name not in most else int(part.max()) < most[name]
                if not sound or (name == "links.offsets" and bool((part % 2).any())):
                    raise _damaged(self.folder)

    def _parts(self, name: str) -> Iterator[npt.NDArray[Any]]:
        """Reads a column in parts that overlap by one number. It does not read the map, whose pages would stay
        resident."""
        column = self._columns[name]
        with (self.folder / f"{name}.bin").open("rb") as file:
            for start in range(0, len(column), _PART):
                file.seek(start * column.itemsize)
                yield np.fromfile(file, column.dtype, _PART + 1)

    def _check_counts(self) -> None:
        """Raises KeyError or ValueError if columns are missing or inconsistent."""
        columns = self._columns
        rowed = [*SIDES, *(f"{side}.text" for side in SIDES if self.has_text)]
        for name in (*rowed, *(["links"] if self.has_links else []), *(["context"] if self.has_context else [])):
            offsets = columns[f"{name}.offsets"]
            if len(offsets) != self._pairs + 1 or offsets[0] != 0 or offsets[-1] != len(columns[name]):
                raise ValueError(f"{name}: offsets")
        with_words = self.has_links and not self.has_text
        of_tokens = [(f"{side}.words", len(columns[side])) for side in SIDES if with_words]
        for name, count in (("corpus", self._pairs), ("line", self._pairs), *of_tokens):
            if len(columns[name]) != count:
                raise ValueError(f"{name}: count")

    def _row(self, column: str, index: int) -> npt.NDArray[Any]:
        self._check(index)
        # the words of tokens have no offsets of their own
        offsets = self._columns[f"{column.removesuffix('.words')}.offsets"]
        return self._columns[column][offsets[index] : offsets[index + 1]]

    def _check(self, index: int) -> None:
        if not 0 <= index < self._pairs:
            raise IndexError(f"pair {index} of {self._pairs}")


def _damaged(folder: Path) -> InputError:
    return InputError(f"{folder}: damaged; delete it and run `nmt prepare` again")


def _corpus(name: str, weight: float, prefix: Sequence[int] = ()) -> StoredCorpus:
    """Creates a corpus; raises ValueError or TypeError for an invalid name, weight or prefix."""
    if not isinstance(name, str) or isinstance(weight, bool) or not 0 < weight <= 1000:
        raise ValueError("corpora")
    return StoredCorpus(name, float(weight), tuple(map(_count, prefix)))


def _count(value: object) -> int:
    """Returns a count; raises ValueError if it is invalid."""
    if type(value) is not int or not 0 <= value < 1 << 62:
        raise ValueError(f"{value!r} is not a count")
    return value


def _differences(offsets: npt.NDArray[np.int64]) -> npt.NDArray[np.int32]:
    """Computes the lengths of rows, each below 2^31, without a copy of the offsets in int64."""
    return np.subtract(offsets[1:], offsets[:-1], dtype=np.int32, casting="unsafe")


def _map(path: Path, dtype: np.dtype[Any], count: int) -> npt.NDArray[Any]:
    """Maps the numbers of a file; raises ValueError if it has another size."""
    refuse_special(path)
    if path.stat().st_size != count * dtype.itemsize:
        raise ValueError(f"{path}: wrong size")
    if count == 0:  # an empty file cannot be mapped
        return np.zeros(0, dtype)
    # a plain array over the map, because slices of np.memmap itself take ten times as long
    return np.asarray(np.memmap(path, dtype=dtype, mode="r", shape=(count,)))

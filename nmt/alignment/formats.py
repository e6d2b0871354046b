"""Alignments in files: Pharaoh lines, gold lines, JSON lines and numpy archives; writers that stream, and readers.

    pharaoh  one line per sentence pair: `0-0 1-2`, source index first
    gold     the same with sure `3-4` and possible `3p4` links
    jsonl    one JSON object per sentence pair: words, links, tokens and the soft matrix
    npz      one archive for all pairs, read with plain `numpy.load`

`nmt.alignment.link_files` has a table of links (tsv), and a reader of links in any format.

A pair with an empty side is kept as an empty line, an object with empty lists, or a matrix of size 0. Lines end in LF
(CR LF is read too) and are UTF-8 with or without a byte order mark.
"""

from __future__ import annotations

import io
import json
import math
import os
import re
import shutil
import struct
import tempfile
import zipfile
import zlib
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Literal, TextIO, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from nmt import plugins
from nmt.alignment import Link, Links, Magnitude, Weights
from nmt.alignment.error_rate import Gold
from nmt.alignment.notebook import heatmap
from nmt.alignment.symmetrize import swapped
from nmt.core import log
from nmt.core.errors import InputError
from nmt.core.files import naming, reading, refuse_special, whole_file
from nmt.data.corpus import open_text, unpacking
from nmt.data.words import Span

Level: TypeAlias = Literal["word", "subword"]


@dataclass(frozen=True, eq=False)
class Alignment:
    """The alignment of one sentence pair.

    `links` are always between words. `weights_TS` has one row per target token and one column per source token, where
    the tokens are the words at level "word", and the tokenizer's pieces (with the end of the sentence, where the model
    sees it) at level "subword".

    Optional: the span of each word in its line, in characters; the score of each link, which at level "word" is its
    cell of the matrix; and the set of sure links; None means that all links are sure.

    Raises ValueError when the matrix does not fit the tokens or a link lies outside its sentence.
    """

    source_words: tuple[str, ...]
    target_words: tuple[str, ...]
    links: Links
    weights_TS: Weights
    level: Level = "word"
    source_tokens: tuple[str, ...] = field(default=())
    target_tokens: tuple[str, ...] = field(default=())
    source_spans: tuple[Span, ...] | None = None
    target_spans: tuple[Span, ...] | None = None
    scores: tuple[float, ...] | None = None
    sure: frozenset[Link] | None = None
    magnitude: Magnitude = "relative"
    """The scale of the matrix."""
    confidence: Any = None
    """``nmt.translator.confidence.TranslationConfidence`` of the target; None if it was not estimated."""

    def __post_init__(self) -> None:
        if self.level == "word":
            object.__setattr__(self, "source_tokens", self.source_words)
            object.__setattr__(self, "target_tokens", self.target_words)
        tokens = (len(self.target_tokens), len(self.source_tokens))
        if self.weights_TS.shape != tokens:
            raise ValueError(f"a matrix of shape {self.weights_TS.shape} for {tokens[0]} x {tokens[1]} tokens")
        for source, target in self.links:
            if not (0 <= source < len(self.source_words) and 0 <= target < len(self.target_words)):
                lengths = f"{len(self.source_words)} source and {len(self.target_words)} target words"
                raise ValueError(f"link {source}-{target} lies outside a pair of {lengths}")
        if self.scores is not None and len(self.scores) != len(self.links):
            raise ValueError(f"{len(self.scores)} scores for {len(self.links)} links")
        for spans, words in ((self.source_spans, self.source_words), (self.target_spans, self.target_words)):
            if spans is not None and len(spans) != len(words):
                raise ValueError(f"{len(spans)} places for {len(words)} words")

    def __repr__(self) -> str:
        words = self.source_words, self.target_words
        pairs = ", ".join(f"{words[0][source]}–{words[1][target]}" for source, target in sorted(self.links))
        return f"Alignment({pairs})"

    def plot(self, path: str | Path | None = None) -> Any:
        """The heatmap as a figure of matplotlib, which a notebook shows; also written to a path that ends in .png or
        .svg. Raises InputError for another path."""
        plot: Callable[[Alignment, Path | None], Any] = plugins.find("parts", "plot_alignment", "plot")
        return plot(self, None if path is None else Path(path))

    def scored_links(self) -> list[tuple[Link, float | None]]:
        """Returns the links, sorted and without repeats, with their scores."""
        scores = dict(zip(self.links, self.scores, strict=True)) if self.scores is not None else {}
        links = sorted(set(self.links))
        if scores or self.level == "subword":
            return [(link, scores.get(link)) for link in links]
        return [((source, target), float(self.weights_TS[target, source])) for source, target in links]

    def turned(self) -> Alignment:
        """Returns the same alignment with source and target exchanged."""
        scores = {(target, source): score for (source, target), score in self.scored_links() if score is not None}
        links = swapped(set(self.links))
        return Alignment(
            self.target_words,
            self.source_words,
            links,
            np.asarray(self.weights_TS).T,
            self.level,
            self.target_tokens,
            self.source_tokens,
            self.target_spans,
            self.source_spans,
            tuple(scores[link] for link in links) if len(scores) == len(links) else None,
            None if self.sure is None else frozenset(swapped(self.sure)),
            self.magnitude,
        )

    def as_gold(self) -> Gold:
        """Returns the links as gold links."""
        return Gold(frozenset(self.links) if self.sure is None else self.sure, frozenset(self.links))

    def _repr_html_(self) -> str:
        """Returns a heatmap for a notebook, with the links if its tokens are words."""
        links = frozenset(self.links) if self.level == "word" else frozenset()
        return heatmap(self.source_tokens, self.target_tokens, self.weights_TS, links)


def side_by_side(alignments: Sequence[Alignment]) -> Alignment:
    """Concatenates the alignments of separately aligned parts of a text to one at level "word", without links between
    parts."""
    sources = tuple(word for part in alignments for word in part.source_words)
    targets = tuple(word for part in alignments for word in part.target_words)
    weights_TS = np.zeros((len(targets), len(sources)))
    links: list[Link] = []
    source, target = 0, 0
    for part in alignments:
        T, S = part.weights_TS.shape
        weights_TS[target : target + T, source : source + S] = part.weights_TS
        links += [(source + one, target + other) for one, other in part.links]
        source, target = source + S, target + T
    return Alignment(sources, targets, tuple(links), weights_TS)


# ------------------------------------------------------------------------------------------------- Pharaoh and gold

UNBOUNDED = (math.inf, math.inf)
"""Lengths of sentences of which nothing is known."""

_LINK = re.compile(r"(\d{1,9})([-p])(\d{1,9})", re.ASCII)


def pharaoh_line(links: Iterable[Link], base: int = 0) -> str:
    """Formats links as `0-0 1-2`: source index first, counted from `base`, sorted, without a newline. No links give an
    empty line.

    >>> pharaoh_line([(1, 2), (0, 0)])
    '0-0 1-2'
    """
    return " ".join(f"{source + base}-{target + base}" for source, target in sorted(set(links)))


def gold_line(gold: Gold, base: int = 0) -> str:
    """Formats links as `0-0 1p2`: sure links with a hyphen, merely possible ones with a p; counted from `base`, sorted,
    without a newline.

    >>> gold_line(parse_gold("1p2 0-0"))
    '0-0 1p2'
    """
    return " ".join(
        f"{source + base}{'-' if (source, target) in gold.sure else 'p'}{target + base}"
        for source, target in sorted(gold.possible)
    )


def parse_gold(line: str, *, place: str = "gold line", lengths: tuple[float, float] = UNBOUNDED, base: int = 0) -> Gold:
    """Parses the links of one gold line. `place` ("dev.align:17") names the line in errors; the `lengths` of source and
    target, in words, bound the indices. `base` is the index of the first word.

    A link that is written both as sure and as possible is sure. Raises InputError for a token that is not a link or an
    index out of range.
    """
    sure, possible = set[Link](), set[Link]()
    for token in line.split():
        match = _LINK.fullmatch(token)
        if match is None:
            raise InputError(
                f"{place}: {token!r} is not a link: write 3-4 (sure) or 3p4 (possible), source first, from {base} on"
            )
        link = (int(match[1]) - base, int(match[3]) - base)
        if min(link) < 0:
            raise InputError(
                f"{place}: link {token!r} points at word 0, but the file was to count from {base}: "
                "correct the link, or read the file as one that counts from 0"
            )
        for side, index, length in zip(("source", "target"), link, lengths, strict=True):
            if index >= length:
                advice = "" if base or index > length else "; if the file counts from 1, say so (such as --gold-base 1)"
                raise InputError(
                    f"{place}: link {token!r} points at {side} word {index + base}, but that sentence has {length} "
                    f"words: write the source index first, and count from {base}{advice}"
                )
        (sure if match[2] == "-" else possible).add(link)
    return Gold(frozenset(sure), frozenset(possible))


def parse_pharaoh(line: str, *, place: str = "alignment line", lengths: tuple[float, float] = UNBOUNDED) -> Links:
    """Parses the links of one Pharaoh line. A possible link is an error; otherwise see `parse_gold`."""
    gold = parse_gold(line, place=place, lengths=lengths)
    if gold.possible != gold.sure:
        source, target = min(gold.possible - gold.sure)
        raise InputError(f"{place}: {source}p{target} is a possible link, but only sure links (3-4) can stand here")
    return tuple(sorted(gold.sure))


def read_gold(path: Path, lengths: Sequence[tuple[int, int]] | None = None, *, base: int = 0) -> tuple[Gold, ...]:
    """Reads the links of a gold file, which has one line for each of the first sentence pairs. `lengths` holds the
    (source, target) lengths of the pairs, in words, and `base` is the index of the first word. Pairs without a line are
    not judged.

    Raises InputError for a malformed line or index, and if there are more lines than pairs.
    """
    lines = list(text_lines(path))
    bounds: Sequence[tuple[float, float]] = lengths if lengths is not None else [UNBOUNDED] * len(lines)
    if len(lines) > len(bounds) or (bounds and not lines):
        raise InputError(
            f"{path}: {len(lines)} lines for {len(bounds)} sentence pairs: give one for each, if only an empty one"
        )
    found = [
        parse_gold(line, place=f"{path}:{number}", lengths=pair, base=base)
        for number, (line, pair) in enumerate(zip(lines, bounds, strict=False), 1)
    ]
    if base == 0 and len(found) >= 10 and all(min(link) > 0 for gold in found for link in gold.possible):
        log.warning(f"{path}: no link is at word 0; if the file counts from 1, say so with --gold-base 1")
    if len(found) < len(bounds):
        log.warning(f"{path}: judges the first {len(found):,} of {len(bounds):,} sentence pairs")
    return (*found, *[Gold(is_judged=False)] * (len(bounds) - len(found)))


class AlignmentWriter(AbstractContextManager["AlignmentWriter"]):
    """Takes alignments one by one, in order; leaving its `with` block completes the output."""

    @abstractmethod
    def write(self, alignment: Alignment) -> None:
        """Writes the alignment of the next sentence pair."""

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        return None


class LineWriter(AlignmentWriter):
    """Writes the ``line`` of each alignment to a text stream, which the caller closes."""

    def __init__(self, stream: TextIO, line: Callable[[Alignment], str]) -> None:
        self._stream = stream
        self._line = line

    def write(self, alignment: Alignment) -> None:
        self._stream.write(self._line(alignment) + "\n")


# ------------------------------------------------------------------------------------------------------- JSON lines

_WEIGHT_DECIMALS = 6
"""Decimals of a weight, with which rows of 40 words still sum to 1 within 2e-5."""

_LINE_BREAKS = str.maketrans({0x85: "\\u0085", 0x2028: "\\u2028", 0x2029: "\\u2029"})
"""Characters that JSON does not escape, but that some readers take for the end of a line."""


def json_tree(alignment: Alignment) -> dict[str, Any]:
    """Builds the JSON object of an alignment, without scores, sure links and spans; see docs/align-formats.md."""
    return {
        "source_words": alignment.source_words,
        "target_words": alignment.target_words,
        "links": sorted(set(alignment.links)),
        "level": alignment.level,
        "source_tokens": alignment.source_tokens,
        "target_tokens": alignment.target_tokens,
        "weights": np.asarray(alignment.weights_TS, dtype=np.float64).round(_WEIGHT_DECIMALS).tolist(),
    }


def json_line(tree: object) -> str:
    """Formats JSON without any character that a reader takes for the end of a line."""
    return json.dumps(tree, ensure_ascii=False, allow_nan=False).translate(_LINE_BREAKS)


def jsonl_line(alignment: Alignment) -> str:
    """Formats the whole JSON object of an alignment, without a newline."""
    scores = [None if score is None else round(score, _WEIGHT_DECIMALS) for _, score in alignment.scored_links()]
    more = {
        "scores": scores,
        "sure": sorted(alignment.as_gold().sure),
        "source_spans": alignment.source_spans,
        "target_spans": alignment.target_spans,
    }
    return json_line(json_tree(alignment) | more)


def read_jsonl(path: Path) -> Iterator[Alignment]:
    """Yields the alignments of a file whose lines `jsonl_line` has written. Raises InputError for any other line."""
    for number, line in enumerate(text_lines(path), 1):
        yield parse_json(line, place=f"{path}:{number}")


def parse_json(line: str, *, place: str) -> Alignment:
    """Parses the alignment of a `jsonl_line`. Raises InputError, which names the `place`, for any other line."""
    try:
        record = json.loads(line)
        source_tokens, target_tokens = _texts(record["source_tokens"]), _texts(record["target_tokens"])
        scores, sure = record.get("scores"), record.get("sure")
        alignment = Alignment(
            _texts(record["source_words"]),
            _texts(record["target_words"]),
            _pairs(record["links"]),
            np.array(record["weights"], np.float64).reshape(len(target_tokens), len(source_tokens)),
            record["level"],
            source_tokens,
            target_tokens,
            _spans(record.get("source_spans")),
            _spans(record.get("target_spans")),
            None if scores is None or None in scores else tuple(map(float, scores)),
            None if sure is None else frozenset(_pairs(sure)),
        )
        _check_read(alignment, source_tokens, target_tokens)
        return alignment
    except RecursionError:
        raise InputError(f"{place}: JSON that is nested too deeply") from None
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
        raise InputError(f"{place}: not an alignment that nmt align --format jsonl wrote: {error}") from None


def _pairs(tree: Iterable[tuple[Any, Any]]) -> tuple[tuple[int, int], ...]:
    pairs = tuple((one, other) for one, other in tree)
    if any(type(index) is not int for pair in pairs for index in pair):
        raise ValueError("an index that is not a whole number")
    return pairs


def _spans(tree: Iterable[tuple[Any, Any]] | None) -> tuple[Span, ...] | None:
    if tree is None:
        return None
    spans = _pairs(tree)
    if any(not 0 <= begin <= end < 1 << 62 for begin, end in spans):
        raise ValueError("a place that ends before it begins")
    return spans


_MAX_WEIGHT = 1e30
"""Largest weight that is read; rounding turns far larger ones into infinity."""


def _texts(tree: Any) -> tuple[str, ...]:
    if not isinstance(tree, list) or not all(isinstance(word, str) for word in tree):
        raise ValueError("words that are no list of texts")
    if any(end in word for word in tree for end in "\t\n\r"):
        raise ValueError("a word with a tab or a line end")
    "".join(tree).encode()  # half of a surrogate pair is not a character and could not be written
    return tuple(tree)


def _check_read(alignment: Alignment, source_tokens: tuple[str, ...], target_tokens: tuple[str, ...]) -> None:
    """Raises ValueError if an alignment cannot come from these writers."""
    if alignment.level not in ("word", "subword"):
        raise ValueError(f"level {alignment.level!r} is neither word nor subword")
    if (alignment.source_tokens, alignment.target_tokens) != (source_tokens, target_tokens):
        raise ValueError("at level word the tokens are the words")
    if not (np.abs(alignment.weights_TS) < _MAX_WEIGHT).all():
        raise ValueError("a weight that is not finite")
    if alignment.scores is not None and not np.isfinite(alignment.scores).all():
        raise ValueError("a score that is not finite")
    if alignment.sure is not None and not alignment.sure <= set(alignment.links):
        raise ValueError("a sure link that is not among the links")


# ------------------------------------------------------------------------------------------------------ npz archives

_TEXTS = ("source_words", "target_words", "source_tokens", "target_tokens")

_COLUMNS: dict[str, tuple[str, tuple[int, ...]]] = {
    "weights": ("<f4", ()),
    "shapes": ("<i8", (2,)),
    "links": ("<i8", (2,)),
    "link_counts": ("<i8", ()),
    "word_counts": ("<i8", (2,)),
    **dict.fromkeys(_TEXTS, ("|u1", ())),
}
"""The arrays of an archive: element type, and shape after the first dimension."""


class NpzWriter(AlignmentWriter):
    """Writes any number of alignments into one numpy archive in bounded memory.

    The arrays grow in temporary files in the folder of `path`; leaving the `with` block packs them and renames the
    archive into place, so that there is never half an archive under that name. After an exception nothing is written.

        weights       float32        all matrices, row by row, one after the other
        shapes        (pairs, 2)     rows (target tokens) and columns (source tokens) of each matrix
        links         (links, 2)     source and target word index of all links
        link_counts   (pairs,)       number of links of each pair
        word_counts   (pairs, 2)     number of target and of source words of each pair
        source_words, target_words, source_tokens, target_tokens
                      uint8          UTF-8 text, one word or token per line, all pairs one after the other
        level         text           "word" or "subword"

    Text is stored as bytes because a numpy text array pads every word to the longest of the corpus: one stray URL
    would make it many times larger. Raises ValueError when levels are mixed or a token holds a newline.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._level: Level | None = None
        try:
            self._files: dict[str, IO[bytes]] = {name: tempfile.TemporaryFile(dir=path.parent) for name in _COLUMNS}  # noqa: SIM115
        except OSError as error:
            raise InputError(f"{path}: cannot write there: {error.strerror}") from None

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        try:
            if kind is None:
                self._pack()
        finally:
            for file in self._files.values():
                file.close()

    def write(self, alignment: Alignment) -> None:
        if self._level not in (None, alignment.level):
            raise ValueError(f"alignments at levels {self._level!r} and {alignment.level!r} in one archive")
        self._level = alignment.level
        links = sorted(set(alignment.links))
        rows: dict[str, Any] = {
            "weights": alignment.weights_TS.ravel(),
            "shapes": [alignment.weights_TS.shape],
            "links": np.array(links).reshape(-1, 2),
            "link_counts": [len(links)],
            "word_counts": [(len(alignment.target_words), len(alignment.source_words))],
        }
        for name in _TEXTS:
            tokens: tuple[str, ...] = getattr(alignment, name)
            if any("\n" in token for token in tokens):
                raise ValueError(f"a newline in {name} {tokens!r}")
            rows[name] = np.frombuffer("".join(token + "\n" for token in tokens).encode(), dtype=np.uint8)
        with naming(self._path.parent):
            for name, (kind, _) in _COLUMNS.items():
                self._files[name].write(np.asarray(rows[name], kind).tobytes())

    def _pack(self) -> None:
        with whole_file(self._path) as unfinished, zipfile.ZipFile(unfinished, "w") as archive:
            for name, file in self._files.items():
                with archive.open(_member(name), "w", force_zip64=True) as member:
                    member.write(_array_header(name, file.tell()))
                    file.seek(0)
                    shutil.copyfileobj(file, member, 1 << 20)
            archive.writestr(_member("level"), _level_data(self._level or "word"))


def _array_header(name: str, size: int) -> bytes:
    """Formats the header of an array of the archive that has so many bytes of data."""
    kind, row_shape = _COLUMNS[name]
    shape = (size // _row_bytes(name), *row_shape)
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": kind, "fortran_order": False, "shape": shape})
    return header.getvalue()


def _row_bytes(name: str) -> int:
    kind, row_shape = _COLUMNS[name]
    return np.dtype(kind).itemsize * math.prod(row_shape)


def _member(name: str) -> zipfile.ZipInfo:
    # with the default date of ZipInfo, equal alignments give equal files
    info = zipfile.ZipInfo(f"{name}.npy")
    info.compress_type = zipfile.ZIP_DEFLATED
    return info


def read_npz(path: Path) -> Iterator[Alignment]:
    """Reads the alignments of an archive that `NpzWriter` has written; the whole archive is read into memory. It never
    unpickles.

    Raises InputError if the file is missing or is not such an archive.
    """
    refuse_special(path)
    try:
        with zipfile.ZipFile(path) as archive:
            arrays = {name: _array(archive, name) for name in _COLUMNS}
            level = _level(archive)
        _check_sizes(arrays)
        yield from _unpacked(arrays, level)
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except (OSError, *_DAMAGED) as error:
        raise InputError(f"{path}: not an archive that nmt align --format npz wrote: {error}") from None


# zipfile raises the last two for encrypted members, unknown compression, and damage that it does not see.
_DAMAGED = (EOFError, ValueError, KeyError, OverflowError, zlib.error, zipfile.BadZipFile, RuntimeError, struct.error)

_MOST_DEFLATED = 1032
"""Maximum number of bytes that one byte of deflated data can encode."""


def _member_bytes(archive: zipfile.ZipFile, name: str) -> bytes:
    """Reads the content of a member. Its claimed size is checked first; otherwise a small file could fill the
    memory."""
    info = archive.getinfo(f"{name}.npy")
    if info.compress_type not in (zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED):
        raise ValueError(f"{info.filename} is packed in another way than by deflate")
    data = archive.fp.seek(0, os.SEEK_END) if archive.fp is not None else 0
    if info.compress_size > data or info.file_size > info.compress_size * _MOST_DEFLATED:
        raise ValueError(f"{info.filename} claims more than the archive can hold")
    return archive.read(info)


def _array(archive: zipfile.ZipFile, name: str) -> NDArray[Any]:
    """Reads the array of a member, which must have the type and shape that `NpzWriter` writes. It never unpickles."""
    data = _member_bytes(archive, name)
    kind, row_shape = _COLUMNS[name]
    prefix = np.lib.format.magic(1, 0)
    if not data.startswith(prefix):
        raise ValueError(f"{name} is not an array")
    begin = len(prefix) + 2 + int.from_bytes(data[len(prefix) : len(prefix) + 2], "little")
    size = len(data) - begin
    if size < 0 or data[:begin] != _array_header(name, size) or size % _row_bytes(name):
        raise ValueError(f"{name} is not of the type and shape that it must have")
    return np.frombuffer(data, kind, offset=begin).reshape(-1, *row_shape)


def _level(archive: zipfile.ZipFile) -> Level:
    data = _member_bytes(archive, "level")
    levels: dict[bytes, Level] = {_level_data(level): level for level in get_args(Level)}
    if data not in levels:
        raise ValueError("its level is neither word nor subword")
    return levels[data]


def _level_data(level: Level) -> bytes:
    """Formats an array that holds the level."""
    array = io.BytesIO()
    np.lib.format.write_array(array, np.array(level), allow_pickle=False)
    return array.getvalue()


def _unpacked(arrays: dict[str, NDArray[Any]], level: Level) -> Iterator[Alignment]:
    texts = {name: iter(arrays[name].tobytes().decode().split("\n")) for name in _TEXTS}

    weight = link = 0
    counts = zip(arrays["shapes"].tolist(), arrays["word_counts"].tolist(), arrays["link_counts"].tolist(), strict=True)
    for (rows, columns), (target_words, source_words), links in counts:
        lengths = (source_words, target_words, columns, rows)
        sides = [tuple(islice(texts[name], length)) for name, length in zip(_TEXTS, lengths, strict=True)]
        pairs = tuple((source, target) for source, target in arrays["links"][link : link + links].tolist())
        weights_TS = arrays["weights"][weight : weight + rows * columns].reshape(rows, columns)
        alignment = Alignment(sides[0], sides[1], pairs, weights_TS, level, sides[2], sides[3])
        _check_read(alignment, sides[2], sides[3])
        yield alignment
        weight += rows * columns
        link += links


def _check_sizes(arrays: dict[str, NDArray[Any]]) -> None:
    shapes, words, counts = arrays["shapes"], arrays["word_counts"], arrays["link_counts"]
    if any(array.size and not 0 <= array.min() <= array.max() < 1 << 31 for array in (shapes, words, counts)):
        raise ValueError("a count that is none")
    lines = {name: np.count_nonzero(arrays[name] == ord("\n")) for name in _TEXTS}
    fits = (
        len(shapes) == len(words) == len(counts)
        and shapes.prod(axis=1).sum() == arrays["weights"].size
        and counts.sum() == len(arrays["links"])
        and (lines["target_words"], lines["source_words"]) == tuple(words.sum(axis=0))
        and (lines["target_tokens"], lines["source_tokens"]) == tuple(shapes.sum(axis=0))
    )
    if not fits:
        raise ValueError("its arrays do not fit together")


MAX_LINE_BYTES = 64 << 20
"""Limit of the length of a line; the JSON of two sentences of a thousand words each has a fifth of it."""


def text_lines(path: Path) -> Iterator[str]:
    """Yields the lines, which end in LF or CR LF, of a file, plain, gz or xz, or of a pipe. Raises InputError, which
    names the line of an invalid byte."""
    with reading(path), unpacking(path), open_text(path) if path.is_file() else path.open("rb") as stream:
        for number, line in enumerate(iter(partial(stream.readline, MAX_LINE_BYTES + 1), b""), 1):
            if len(line) > MAX_LINE_BYTES:
                raise InputError(f"{path}:{number}: more than {MAX_LINE_BYTES >> 20} MiB; is this a text file?")
            try:
                yield line.decode("utf-8-sig" if number == 1 else "utf-8").removesuffix("\n").removesuffix("\r")
            except UnicodeDecodeError:
                raise InputError(f"{path}:{number}: not valid UTF-8: convert the file to UTF-8") from None

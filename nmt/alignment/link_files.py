"""A table of links, and a reader of links in any format: pharaoh, gold, tsv, jsonl or npz.

A table has a header and one row per link, so that spreadsheets and programs that make TMX or XLIFF can read it:

    pair                       number of the sentence pair, from 1
    source, target             index of either word
    source_word, target_word
    score                      of the link
    kind                       sure or possible
    source_begin, source_end, target_begin, target_end
                               span of either word in its line, in characters

A pair without links has one row, empty except for the number. A cell is empty where the value is unknown. Nothing is
quoted, because words contain no tabs and line ends, which are white space between words.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import TextIO, TypeVar

from nmt.alignment import Link, Links
from nmt.alignment.error_rate import Gold
from nmt.alignment.formats import Alignment, AlignmentWriter, parse_gold, parse_json, read_npz, text_lines
from nmt.core.errors import InputError

_NAMES = "pair source target source_word target_word score kind source_begin source_end target_begin target_end"
_COLUMNS = _NAMES.split()
_HEADER = "\t".join(_COLUMNS)

MOST_GAP = 1000
"""Maximum number of pairs without a row for each line of a table, so that a wrong number does not mean a billion
pairs."""


class TsvWriter(AlignmentWriter):
    """Writes a table of links, counted from ``base``, to a text stream, which the caller closes."""

    def __init__(self, stream: TextIO, base: int = 0) -> None:
        self._stream = stream
        self._base = base
        self._pair = 0
        self._stream.write(_HEADER + "\n")

    def write(self, alignment: Alignment) -> None:
        self._pair += 1
        sure = alignment.as_gold().sure
        rows: list[tuple[object, ...]] = [
            (
                source + self._base,
                target + self._base,
                alignment.source_words[source],
                alignment.target_words[target],
                "" if score is None else f"{score:.6f}",
                "sure" if (source, target) in sure else "possible",
                *(alignment.source_spans[source] if alignment.source_spans is not None else ("", "")),
                *(alignment.target_spans[target] if alignment.target_spans is not None else ("", "")),
            )
            for (source, target), score in alignment.scored_links()
        ]
        for row in rows or [("",) * (len(_COLUMNS) - 1)]:
            self._stream.write("\t".join(map(str, (self._pair, *row))) + "\n")


T = TypeVar("T")


def _turned(values: Mapping[Link, T]) -> dict[Link, T]:
    return {(target, source): value for (source, target), value in values.items()}


@dataclass(frozen=True)
class PairLinks:
    """The links of one sentence pair in a file."""

    place: str
    """File and line, such as ``links:17``."""
    gold: Gold
    """The links, sure and possible."""
    scores: dict[Link, float] = field(default_factory=dict)
    words: dict[Link, tuple[str, str]] = field(default_factory=dict)
    """The words of links, if the file has them."""
    places: dict[Link, str] = field(default_factory=dict)
    """File and line of each link, if it has a line of its own."""
    alignment: Alignment | None = None
    """The words and the matrix, if the file has them; else None."""

    @property
    def links(self) -> Links:
        """Returns all links, sorted."""
        return tuple(sorted(self.gold.possible))

    def turned(self) -> PairLinks:
        """Returns the links with source and target exchanged."""
        words = _turned({link: (target, source) for link, (source, target) in self.words.items()})
        alignment = None if self.alignment is None else self.alignment.turned()
        return PairLinks(self.place, self.gold.turned(), _turned(self.scores), words, _turned(self.places), alignment)


def read_links(path: Path, *, base: int | None = None) -> Iterator[PairLinks]:
    """Yields the links of each sentence pair from a file of any format; the content tells the format.

    ``base`` is the index of the first word; None means 0. Raises InputError, which names file and line, for text that
    is not a link, and for a ``base`` of 1 with a jsonl or npz file, which always count from 0.
    """
    if _is_archive(path):
        _refuse_base(path, "npz", base)
        for number, alignment in enumerate(read_npz(path), 1):
            yield _of_alignment(f"{path}: pair {number}", alignment)
        return
    lines = text_lines(path)
    first = next(lines, None)
    if first is None:
        return
    if first == _HEADER:
        yield from _of_table(path, lines, base or 0)
        return
    is_json = first.startswith("{")
    if is_json:
        _refuse_base(path, "jsonl", base)
    for number, line in enumerate(chain([first], lines), 1):
        place = f"{path}:{number}"
        if is_json:
            yield _of_alignment(place, parse_json(line, place=place))
        else:
            yield PairLinks(place, parse_gold(line, place=place, base=base or 0))


def _is_archive(path: Path) -> bool:
    if not path.is_file():  # a pipe, whose first bytes must stay unread, or a missing file
        return False
    with path.open("rb") as stream:
        return stream.read(4) == b"PK\x03\x04"


def _refuse_base(path: Path, format: str, base: int | None) -> None:
    if base:
        raise InputError(f"{path}: a file of {format} always counts from 0; do not say that it counts from {base}")


def _of_alignment(place: str, alignment: Alignment) -> PairLinks:
    scores = {link: score for link, score in alignment.scored_links() if score is not None}
    return PairLinks(place, alignment.as_gold(), scores, alignment=alignment)


def _of_table(path: Path, lines: Iterator[str], base: int) -> Iterator[PairLinks]:
    """Yields the pairs of a table. Pairs without a row have no links."""
    pair, current, sure = 0, PairLinks(f"{path}:1", Gold()), set[Link]()
    for number, line in enumerate(lines, 2):
        place = f"{path}:{number}"
        cells = line.split("\t")
        if len(cells) != len(_COLUMNS):
            raise InputError(f"{place}: {len(cells)} columns, not the {len(_COLUMNS)} that its header names")
        row = dict(zip(_COLUMNS, cells, strict=True))
        next_pair = _number(place, row, "pair")
        if next_pair < max(pair, 1):
            raise InputError(f"{place}: pair {next_pair} after pair {pair}; rows stand in the order of pairs, from 1")
        if next_pair > MOST_GAP * number:
            raise InputError(f"{place}: pair {next_pair} in a table of {number} lines so far; pairs count from 1")
        while pair < next_pair:
            if pair:
                yield _with_gold(current, sure)
            pair += 1
            current, sure = PairLinks(place, Gold()), set()
        if row["source"] or row["target"]:
            sure |= _add_row(current, place, row, base)
    if pair:
        yield _with_gold(current, sure)


def _with_gold(current: PairLinks, sure: set[Link]) -> PairLinks:
    # every link has a row, and so a place
    return replace(current, gold=Gold(frozenset(sure), frozenset(current.places)))


def _add_row(current: PairLinks, place: str, row: dict[str, str], base: int) -> frozenset[Link]:
    """Adds the link of a row to those of its pair; returns the link if it is sure."""
    source, target = _number(place, row, "source"), _number(place, row, "target")
    kind = "p" if row["kind"] == "possible" else "-"
    gold = parse_gold(f"{source}{kind}{target}", place=place, base=base)
    (link,) = gold.possible
    current.words[link] = (row["source_word"], row["target_word"])
    current.places[link] = place
    if row["score"]:
        try:
            current.scores[link] = score = float(row["score"])
        except ValueError:
            score = math.nan
        if not math.isfinite(score):
            raise InputError(f"{place}: score {row['score']!r} is not a number")
    return gold.sure


def _number(place: str, row: dict[str, str], column: str) -> int:
    if not (row[column].isascii() and row[column].isdecimal() and len(row[column]) <= 9):
        raise InputError(f"{place}: {column} {row[column]!r} is not a number from 0 up")
    return int(row[column])

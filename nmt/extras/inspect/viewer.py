"""Alignments as one HTML file to look through in a browser: words side by side, what each looks at, links and gold.

The page (`nmt/extras/inspect/page`) is in the file, and so are the data, as blocks of JSON that no browser takes for
HTML; it asks no server for anything. A block is a list of pairs,

    [source words, target words, [[links, weights] of each view], gold links or null]

with links as a flat list `[source, target, source, target, …]`, gold as two of these, sure and merely possible, and
weights as base64 of one byte for each cell of the matrix, target word by target word: the weight in steps of 1/255, so
wrong by at most 1/510. A fifth
entry, where there is one, is what is told above the pair (`Told`).
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from importlib.resources import files
from pathlib import Path
from types import TracebackType
from typing import Any, TextIO

import numpy as np
from typing_extensions import Self

from nmt.alignment import Link, Weights
from nmt.alignment.error_rate import Gold
from nmt.alignment.formats import Alignment
from nmt.core.errors import InputError
from nmt.core.files import whole_file

_BLOCK_PAIRS = 200
_HERE = "<!-- pairs -->\n"


class ViewerWriter:
    """Writes pairs into one file, in bounded memory, whatever their number. Leaving its `with` block completes the
    file; after an exception nothing is written.

    A pair has one alignment, at level "word", for each of ``views``, their names. ``facts`` head the page: what was
    aligned, and by what. ``gold`` holds one record per pair, in order. Raises InputError where the file cannot be
    written.
    """

    def __init__(
        self, path: Path, views: Sequence[str], *, facts: Sequence[str] = (), gold: Sequence[Gold] | None = None
    ) -> None:
        if path.exists() and not path.is_file():
            raise InputError(f"--output {path}: is no file; name one, such as pairs.html")
        self._path = path
        self._views = len(views)
        self._gold = gold
        self._number = 0
        self._block: list[Any] = []
        self._end = ""
        self._meta = {"views": list(views), "facts": list(facts), "gold": gold is not None}

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            try:
                partial = stack.enter_context(whole_file(self._path))
            except OSError as error:
                raise InputError(f"--output {self._path}: cannot be written: {error.strerror}") from None
            # A surrogate that stands alone, which UTF-8 does not have, becomes a question mark.
            self._stream: TextIO = stack.enter_context(
                partial.open("w", encoding="utf-8", errors="replace", newline="\n")
            )
            begin, self._end = page()
            self._stream.write(begin + meta_block(self._meta))
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            self._stack.__exit__(kind, error, trace)
            return
        with self._stack:
            self._flush()
            self._stream.write(self._end)

    def write(self, alignments: Sequence[Alignment]) -> None:
        """The next pair, by each view; see ``record``."""
        if len(alignments) != self._views:
            raise ValueError(f"{len(alignments)} alignments for {self._views} views")
        self._block.append(record(alignments, None if self._gold is None else self._gold[self._number]))
        self._number += 1
        if len(self._block) == _BLOCK_PAIRS:
            self._flush()

    def _flush(self) -> None:
        if self._block:
            self._stream.write(pairs_block(self._block))
            self._block.clear()


@dataclass(frozen=True)
class Told:
    """What stands above a pair."""

    title: str
    """In place of its number."""
    texts: tuple[tuple[str, ...], ...]
    """Lines: a name, then text in parts of which the second, the fourth and so on are marked."""


def record(alignments: Sequence[Alignment], gold: Gold | None = None, told: Told | None = None) -> list[Any]:
    """A pair, by each view, as a block has it. Raises ValueError where they are not of one pair, and between words."""
    first = alignments[0]
    for each in alignments:
        if each.level != "word":
            raise ValueError("the viewer shows alignments between words")
        if (each.source_words, each.target_words) != (first.source_words, first.target_words):
            raise ValueError("the views are not of the same sentence pair")
    views = [[_flat(each.links), quantized(each.weights_TS)] for each in alignments]
    links = None if gold is None else [_flat(gold.sure), _flat(gold.possible - gold.sure)]
    pair = [first.source_words, first.target_words, views, links]
    return pair if told is None else [*pair, asdict(told)]


def meta_block(meta: Mapping[str, object]) -> str:
    """What holds for all pairs: ``views``, their names, ``facts``, ``gold``, whether there is any, and ``layout`` where
    it is not the lines that the page begins with."""
    return f'<script type="application/json" id="meta">{script_json(meta)}</script>\n'


def pairs_block(records: Sequence[object]) -> str:
    """Some pairs, in the order in which they are shown."""
    return f'<script type="application/json" class="pairs">{script_json(records)}</script>\n'


def page() -> tuple[str, str]:
    """The page before its data, and after."""
    html = part("viewer.html").replace("<!-- pairs.html -->\n", part("pairs.html"))
    html = html.replace("/* viewer.css */\n", part("viewer.css")).replace("/* viewer.js */\n", part("viewer.js"))
    begin, _, end = html.partition(_HERE)
    return begin, end


def part(name: str) -> str:
    """A file of the page: ``viewer.css``, ``viewer.js``, or ``pairs.html``, the controls and the place of the pairs."""
    return (files("nmt.extras.inspect") / "page" / name).read_text(encoding="utf-8")


def script_json(tree: object) -> str:
    """JSON that can stand in a script element: without a less-than sign nothing begins there, and nothing ends."""
    return json.dumps(tree, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")


def _flat(links: Iterable[Link]) -> list[int]:
    return [index for link in sorted(set(links)) for index in link]


def quantized(weights_TS: Weights) -> str:
    """A matrix as a block has it."""
    steps_TS = np.rint(255 * np.clip(np.asarray(weights_TS, np.float64), 0, 1)).astype(np.uint8)
    return b64encode(steps_TS.tobytes()).decode("ascii")

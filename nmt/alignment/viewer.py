"""Alignments as one HTML file to look through in a browser: words side by side, what each looks at, links and gold.

The page (`nmt/alignment/page`) is in the file, and so are the data, as blocks of JSON that no browser takes for HTML;
it asks no server for anything. A block is a list of pairs,

    [source words, target words, [[links, weights] of each view], gold links or null]

with links as a flat list `[source, target, source, target, …]`, gold as two of these, sure and merely possible, and
weights as base64 of one byte for each cell of the matrix, target word by target word: the weight in steps of 1/255, so
wrong by at most 1/510.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
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
            self._stream.write(f'{begin}<script type="application/json" id="meta">{_json(self._meta)}</script>\n')
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
        """The next pair, by each view. Raises ValueError where they are not of one pair, and between words."""
        first = alignments[0]
        if len(alignments) != self._views:
            raise ValueError(f"{len(alignments)} alignments for {self._views} views")
        for each in alignments:
            if each.level != "word":
                raise ValueError("the viewer shows alignments between words")
            if (each.source_words, each.target_words) != (first.source_words, first.target_words):
                raise ValueError("the views are not of the same sentence pair")
        gold = None
        if self._gold is not None:
            each_gold = self._gold[self._number]
            gold = [_flat(each_gold.sure), _flat(each_gold.possible - each_gold.sure)]
        self._number += 1
        views = [[_flat(each.links), _quantized(each.weights_TS)] for each in alignments]
        self._block.append([first.source_words, first.target_words, views, gold])
        if len(self._block) == _BLOCK_PAIRS:
            self._flush()

    def _flush(self) -> None:
        if self._block:
            self._stream.write(f'<script type="application/json" class="pairs">{_json(self._block)}</script>\n')
            self._block.clear()


def page() -> tuple[str, str]:
    """The page before its data, and after."""
    folder = files("nmt.alignment") / "page"
    html, style, program = (
        (folder / name).read_text(encoding="utf-8") for name in ("viewer.html", "viewer.css", "viewer.js")
    )
    begin, _, end = html.replace("/* viewer.css */\n", style).replace("/* viewer.js */\n", program).partition(_HERE)
    return begin, end


def _flat(links: Iterable[Link]) -> list[int]:
    return [index for link in sorted(set(links)) for index in link]


def _quantized(weights_TS: Weights) -> str:
    steps_TS = np.rint(255 * np.clip(np.asarray(weights_TS, np.float64), 0, 1)).astype(np.uint8)
    return b64encode(steps_TS.tobytes()).decode("ascii")


def _json(tree: object) -> str:
    """JSON that can stand in a script element: without a less-than sign nothing begins there, and nothing ends."""
    return json.dumps(tree, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")

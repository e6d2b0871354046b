"""Heatmaps of alignments in text: a picture for a terminal.

         D H s
         e u c
         r n h
           d …
    The  ▓•░░
    dog    ██

Source words are above the columns, from top to bottom, target words before the rows. The darkness of a cell shows its
weight; a dot is a link. If a sentence is too long for the width, its columns continue below.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from typing import TextIO

from rich.cells import cell_len

from nmt.alignment.formats import Alignment, AlignmentWriter
from nmt.core.terminal_width import clusters, cut, isolated, printable
from nmt.workflows.align import lines

SHADES = " ░▒▓█"
"""The characters for weights from 0 to 1."""

LINK = "•"

TALLEST, WIDEST = 12, 20
"""Maximum number of rows of a source word, and of cells of a target word; longer words are cut."""

USUAL_WIDTH = 100
"""Number of cells of a line if there is no terminal."""


def heatmap(alignment: Alignment, *, cells: int) -> str:
    """Draws a picture of at most ``cells`` cells to a line, or as wide as one column needs; empty sides give no
    lines."""
    sources, targets = alignment.source_tokens, alignment.target_tokens
    labels = [cut(word, WIDEST) for word in targets]
    indent = max(map(cell_len, labels), default=0) + 1
    links = set(alignment.links) if alignment.level == "word" else set()
    band = max(1, (cells - indent) // 2)
    picture: list[str] = []
    for first in range(0, len(sources) if targets else 0, band):
        columns = range(first, min(first + band, len(sources)))
        picture += [""] if picture else []
        picture += [" " * indent + line for line in _head([sources[column] for column in columns])]
        for row, label in enumerate(labels):
            shades = ""
            for column in columns:
                character = shade(float(alignment.weights_TS[row, column]))
                shades += character + (LINK if (column, row) in links else character)
            picture.append(f"{isolated(label)}{' ' * (indent - cell_len(label))}{shades}".rstrip())
    return "".join(f"{line}\n" for line in picture)


def shade(weight: float) -> str:
    """Chooses the character for a weight: a blank below a twentieth, then darker in four equal steps."""
    return SHADES[0] if weight < 0.05 else SHADES[min(4, 1 + int(weight * 4))]


def _head(words: Sequence[str]) -> list[str]:
    """Writes the words from top to bottom, in two cells, so that they end above their columns."""
    letters = [_letters(word) for word in words]
    tallest = max(map(len, letters), default=0)
    standing = [[""] * (tallest - len(each)) + each for each in letters]
    return [
        "".join(isolated(each[row]) + " " * (2 - cell_len(each[row])) for each in standing).rstrip()
        for row in range(tallest)
    ]


def _letters(word: str) -> list[str]:
    letters = [each if cell_len(each) <= 2 else "?" for each in clusters(printable(word))]
    return letters if len(letters) <= TALLEST else [*letters[: TALLEST - 1], "…"]


class HeatmapWriter(AlignmentWriter):
    """Writes a heatmap for each pair, with its number, from 1, over it."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._count = 0
        self._cells = shutil.get_terminal_size((USUAL_WIDTH, 24)).columns

    def write(self, alignment: Alignment) -> None:
        self._count += 1
        if self._count > 1:
            self._stream.write("\n")
        self._stream.write(f"{self._count}\n{heatmap(alignment, cells=self._cells)}")


open_heatmap = lines(HeatmapWriter)
"""Opens a file, or stdout, for heatmaps."""

"""The formats of `nmt align` that are pictures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from nmt.alignment.error_rate import Gold
from nmt.alignment.formats import Alignment, AlignmentWriter
from nmt.core.errors import InputError
from nmt.core.files import make_folder
from nmt.workflows.align import Header, WritePair, file, lines


def open_heatmap(path: Path | None, header: Header) -> AbstractContextManager[WritePair]:
    """Opens a file, or stdout, for heatmaps in text."""
    from nmt.extras.pages.heatmap import HeatmapWriter

    return lines(HeatmapWriter)(path, header)


def _folder_of(format: str) -> Callable[[Path | None, Header], AbstractContextManager[WritePair]]:
    return file(lambda folder, header: PictureWriter(folder, header.gold, languages=header.languages, format=format))


open_png, open_svg = _folder_of("png"), _folder_of("svg")
"""Open a folder for pictures of pixels, or of lines."""


class PictureWriter(AlignmentWriter):
    """Writes one picture per alignment into a folder: 000001.png for the first pair, and so on, blank pairs too; or
    000001.svg.

    The folder is made if it is missing. `gold` holds one record per pair, in order. Links and gold are drawn at word
    level only, because they are between words. Raises InputError when the folder cannot be made or gold runs out.
    """

    def __init__(
        self, folder: Path, gold: Sequence[Gold] | None = None, *, languages: Sequence[str] | None = None,
        format: str = "png",
    ) -> None:  # fmt: skip
        make_folder(folder)
        self._folder = folder
        self._gold = gold
        self._languages = languages
        self._format = format
        self._count = 0

    def write(self, alignment: Alignment) -> None:
        from nmt.extras.pages.draw import plot_alignment

        if self._gold is not None and self._count == len(self._gold):
            raise InputError(f"more than {len(self._gold)} sentence pairs but {len(self._gold)} gold lines")
        gold = None if self._gold is None else self._gold[self._count]
        self._count += 1
        path = self._folder / f"{self._count:06d}.{self._format}"
        plot_alignment(alignment, path, languages=self._languages, gold=gold)

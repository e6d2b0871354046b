"""The formats of `nmt align` that are folders of pictures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count, repeat
from pathlib import Path

from nmt.alignment.formats import Alignment
from nmt.core.files import make_folder
from nmt.workflows.align import Header, OpenWriter, WritePair


def _folder_of(format: str) -> OpenWriter:
    """Creates a format of a folder, which is made if it is missing, with one picture per alignment: 000001.png for the
    first pair, and so on, blank pairs too; or 000001.svg."""

    @contextmanager
    def open_folder(folder: Path | None, header: Header) -> Iterator[WritePair]:
        from nmt.extras.pages.draw import plot_alignment

        assert folder is not None
        make_folder(folder)
        pictures = zip(count(1), header.gold or repeat(None), strict=False)

        def write(alignments: Sequence[Alignment]) -> None:
            number, gold = next(pictures)
            path = folder / f"{number:06d}.{format}"
            plot_alignment(alignments[0], path, languages=header.languages, gold=gold)

        yield write

    return open_folder


open_png, open_svg = _folder_of("png"), _folder_of("svg")
"""Open a folder for pictures of pixels, or of lines."""

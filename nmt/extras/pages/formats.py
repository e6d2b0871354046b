"""The formats of `nmt align` that are folders of pictures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import count, repeat
from pathlib import Path

from nmt.alignment.formats import Alignment
from nmt.core.files import make_folder
from nmt.workflows.align import Header, WritePair


@contextmanager
def _open_folder(folder: Path | None, header: Header, *, format: str) -> Iterator[WritePair]:
    """Opens a folder, which is made if it is missing, for one picture per alignment: 000001.png for the first pair, and
    so on, blank pairs too; or 000001.svg."""
    from nmt.extras.pages.draw import plot_alignment

    assert folder is not None
    make_folder(folder)
    pictures = zip(count(1), header.gold or repeat(None), strict=False)

    def write(alignments: Sequence[Alignment]) -> None:
        number, gold = next(pictures)
        path = folder / f"{number:06d}.{format}"
        plot_alignment(alignments[0], path, languages=header.languages, gold=gold)

    yield write


open_png, open_svg = partial(_open_folder, format="png"), partial(_open_folder, format="svg")
"""Open a folder for pictures of pixels, or of lines."""

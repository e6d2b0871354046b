"""The formats of `nmt align` that are pictures."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from typing import Literal

from nmt.workflows.align import Header, WritePair, file, lines


def open_heatmap(path: Path | None, header: Header) -> AbstractContextManager[WritePair]:
    """Opens a file, or stdout, for heatmaps in text."""
    from nmt.extras.pages.heatmap import HeatmapWriter

    return lines(HeatmapWriter)(path, header)


def open_png(path: Path | None, header: Header) -> AbstractContextManager[WritePair]:
    """Opens a folder for pictures of pixels."""
    return _pictures(path, header, "png")


def open_svg(path: Path | None, header: Header) -> AbstractContextManager[WritePair]:
    """Opens a folder for pictures of lines."""
    return _pictures(path, header, "svg")


def _pictures(path: Path | None, header: Header, kind: Literal["png", "svg"]) -> AbstractContextManager[WritePair]:
    from nmt.extras.pages.plot import PictureWriter

    return file(lambda path, header: PictureWriter(path, header.gold, languages=header.languages, format=kind))(
        path, header
    )

"""The formats of `nmt align` that are pictures."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from nmt.alignment.error_rate import Gold
from nmt.alignment.formats import Alignment
from nmt.core.errors import InputError
from nmt.extras.pages.draw import plot_alignment
from nmt.extras.pages.formats import open_png, open_svg
from nmt.extras.pages.heatmap import open_heatmap
from nmt.workflows.align import Header
from tests.extras.pages.samples import aligned

GOLD = Gold(frozenset({(0, 0)}))
PAIRS = [
    aligned("a", "b", ((0, 0),), [1]),
    aligned("", ""),
    Alignment(("ab",), ("b",), ((0, 0),), np.array([[0.5, 0.5]]), "subword", ("▁a", "b"), ("▁b",)),
]


def test_a_folder_has_one_picture_per_pair(tmp_path: Path) -> None:
    header = Header(["attention"], gold=[GOLD] * 3, languages=("de", "en"))
    for kind, opened in (("png", open_png), ("svg", open_svg)):
        folder = tmp_path / "new" / kind
        with opened(folder, header) as write:
            for alignment in PAIRS:
                write([alignment])
        assert sorted(each.name for each in folder.iterdir()) == [f"00000{n}.{kind}" for n in (1, 2, 3)]
        for number, alignment in enumerate(PAIRS, 1):
            plot_alignment(alignment, alone := tmp_path / f"alone.{kind}", languages=("de", "en"), gold=GOLD)
            assert (folder / f"00000{number}.{kind}").read_bytes() == alone.read_bytes()


def test_a_file_is_no_folder_of_pictures(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="file: cannot be made"), open_png(tmp_path / "file", Header(["attention"])):
        pass


def test_a_heatmap_is_a_file_of_text(tmp_path: Path) -> None:
    with open_heatmap(tmp_path / "a.txt", Header(["attention"])) as write:
        write([PAIRS[0]])
    assert (tmp_path / "a.txt").read_text(encoding="utf-8") == "1\n  a\nb █•\n"

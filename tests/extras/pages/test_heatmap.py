"""Pictures of alignments in text."""

from __future__ import annotations

import io
import random

import pytest
from rich.cells import cell_len

from nmt.alignment import Links
from nmt.extras.pages.heatmap import HeatmapWriter, heatmap, shade
from tests.extras.pages.samples import aligned


def lines(sources: str, targets: str, weights: list[list[float]], links: Links = (), cells: int = 80) -> list[str]:
    return heatmap(aligned(sources, targets, links, weights), cells=cells).splitlines()


def test_a_picture() -> None:
    weights = [[0.9, 0.1], [0.3, 0.7], [0.04, 0.5]]
    assert lines("Der Hund", "The dog sleeps", weights, ((0, 0), (1, 1))) == [
        "         H", "       D u", "       e n", "       r d", "The    █•░░", "dog    ▒▒▓•", "sleeps   ▓▓",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("weight", "character"), [(0, " "), (0.049, " "), (0.05, "░"), (0.25, "▒"), (0.5, "▓"), (0.75, "█"), (1, "█")]
)
def test_shades(weight: float, character: str) -> None:
    assert shade(weight) == character


def test_wide_characters_and_marks_keep_the_columns_straight() -> None:
    drawn = lines("日本 e\u0301 x", "犬 a\u0301b", [[1, 0, 0], [0, 0, 1]])
    assert drawn == ["   日", "   本e\u0301 x", "犬 ██", "a\u0301b     ██"]
    assert cell_len(drawn[1]) == 3 + 2 + 2 + 1


def test_what_runs_from_right_to_left_is_isolated() -> None:
    drawn = "   <א>|   <ב> <ג>|<הו> ██|x    ██".replace("<", "\u2068").replace(">", "\u2069")
    assert lines("אב ג", "הו x", [[1, 0], [0, 1]]) == drawn.split("|")


@pytest.mark.parametrize("cells", [1, 12, 13, 40, 200])
def test_lines_fit_and_no_column_is_lost(cells: int) -> None:
    draw = random.Random(cells)
    sources = " ".join(f"w{number}" for number in range(37))
    targets = " ".join("x" * draw.randint(1, 40) for _ in range(5))
    weights = [[0.9 if column % 5 == row else 0 for column in range(37)] for row in range(5)]
    drawn = lines(sources, targets, weights, cells=cells)
    assert all(cell_len(line) <= max(cells, 23) for line in drawn)
    assert "".join(drawn).count("██") == 37


def test_long_words_are_cut() -> None:
    first, *_, last, row = drawn = lines("Donaudampfschifffahrt", "y" * 50, [[1]])
    assert (len(drawn), first.strip(), last.strip(), row) == (12 + 1, "D", "…", "y" * 19 + "… ██")


def test_the_writer_numbers_the_pairs_also_empty_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "5")
    stream = io.StringIO()
    with HeatmapWriter(stream) as writer:
        writer.write(aligned("a b", "c", (), [[1, 0]]))
        writer.write(aligned("", "c"))
    assert stream.getvalue() == "1\n  a\nc ██\n\n  b\nc\n\n2\n"

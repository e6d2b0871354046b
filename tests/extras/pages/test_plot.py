from __future__ import annotations

import os
import re
import struct
import subprocess
import sys
import warnings
from importlib.resources import files
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from nmt.alignment.error_rate import Gold
from nmt.alignment.formats import Alignment
from nmt.core.errors import InputError
from nmt.extras.pages import plot as plotting
from nmt.extras.pages import score_plot
from nmt.extras.pages.plot import PictureWriter, plot

ODD = [
    "$x_1$",
    "\\frac{",
    "a_b^c",
    "$",
    "nul\x00",
    "\n",
    "日本語",
    "😀",
    "العربية",
    "x" * 99,
    "\ud800",
    "",
    "%#&",
    "\u2028",
]


def pixels(path: Path) -> np.ndarray:
    from matplotlib.image import imread

    image: np.ndarray = np.asarray(imread(path))[..., :3]
    return image


def size(path: Path) -> tuple[int, int]:
    data = path.read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = struct.unpack(">II", data[16:24])
    return width, height


def words(count: int) -> list[str]:
    return [f"word{number}" for number in range(count)]


def test_any_label_is_drawn_and_nothing_is_warned_of(tmp_path: Path) -> None:
    path = tmp_path / "odd.png"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plot(np.eye(len(ODD)), ODD, ODD, path, title="$\\bad {" + "".join(ODD))
    assert size(path)[0] > 500


def test_dollars_are_no_formula(tmp_path: Path) -> None:
    # Read as a formula, $l$ would be drawn as a slanted l without dollars: narrower than the four-character word.
    for name, label in (("dollars", "$llllllll$"), ("letters", "llllllll")):
        plot(np.ones((1, 1)), ["a"], [label], tmp_path / f"{name}.png")
    assert size(tmp_path / "dollars.png")[0] > size(tmp_path / "letters.png")[0] + 15


def test_the_picture_grows_with_the_sentence_and_cells_stay_legible(tmp_path: Path) -> None:
    sizes = []
    for count in (5, 15, 40):
        plot(np.eye(count), words(count), words(count), tmp_path / "grown.png")
        sizes.append(size(tmp_path / "grown.png")[0])
    assert sizes == sorted(sizes)
    assert sizes[2] / 40 > 40  # pixels per word, at 200 to the inch: room for letters of 8 points


def test_a_very_long_sentence_stays_within_bounds(tmp_path: Path) -> None:
    plot(np.zeros((1, 400)), words(400), ["x"], tmp_path / "long.png")
    assert 4000 < size(tmp_path / "long.png")[0] <= 8000


@pytest.mark.parametrize("shape", [(0, 0), (0, 3), (3, 0), (1, 1)])
def test_an_empty_side_is_drawn(shape: tuple[int, int], tmp_path: Path) -> None:
    path = tmp_path / "empty.png"
    plot(np.zeros(shape), words(shape[1]), words(shape[0]), path, title="t", gold=Gold(), links=())
    assert min(size(path)) > 100


def test_weights_darken_the_cell_of_their_row_and_column(tmp_path: Path) -> None:
    # Row 0 (target) looks at column 2 (source): the one dark cell is at the top right.
    path = tmp_path / "one.png"
    plot([[0, 0, 1.0], [0, 0, 0], [0, 0, 0]], ["a", "b", "c"], ["x", "y", "z"], path)
    image = pixels(path)
    dark = np.argwhere((image[..., 2] > image[..., 0] + 0.25) & (image[..., 2] < 0.5))
    frame = np.argwhere(np.abs(image - 0x55 / 255).max(axis=-1) < 0.02)
    left, width = frame[:, 1].min(), np.ptp(frame[:, 1])
    in_heatmap = dark[dark[:, 1] < left + 0.7 * width]
    assert len(in_heatmap) > 3000
    assert in_heatmap[:, 1].min() > left + 0.3 * width
    assert np.ptp(in_heatmap[:, 0]) < 100  # one cell of 0.42 inch, not two


def test_gold_and_links_are_drawn(tmp_path: Path) -> None:
    def orange(path: Path) -> int:
        image = pixels(path)
        return int(((image[..., 0] > 0.8) & (image[..., 1] < 0.4) & (image[..., 2] < 0.2)).sum())

    counts = {}
    for name, gold in {
        "none": None,
        "no links": Gold(),
        "possible": Gold(possible=frozenset({(0, 0)})),
        "sure": Gold(frozenset({(0, 0)})),
        "both": Gold(frozenset({(0, 0)}), frozenset({(1, 1)})),
    }.items():
        plot(np.zeros((2, 2)), ["a", "b"], ["x", "y"], tmp_path / "gold.png", gold=gold)
        counts[name] = orange(tmp_path / "gold.png")
    # The legend alone has both samples; a dashed square has less ink than a solid one.
    assert counts["none"] == 0
    assert 0 < counts["no links"] < counts["possible"] < counts["sure"] < counts["both"]
    plot(np.zeros((2, 2)), ["a", "b"], ["x", "y"], tmp_path / "no.png", links=[])
    plot(np.zeros((2, 2)), ["a", "b"], ["x", "y"], tmp_path / "yes.png", links=[(0, 1)])
    assert pixels(tmp_path / "no.png").sum() > pixels(tmp_path / "yes.png").sum()


def test_a_link_stays_inside_its_cell_however_small_that_is(tmp_path: Path) -> None:
    for count in (2, 40):
        for name, links in (("no", []), ("yes", [(1, 1)])):
            plot(np.zeros((count, count)), words(count), words(count), tmp_path / f"{name}.png", links=links)
        differs = (pixels(tmp_path / "no.png") != pixels(tmp_path / "yes.png")).any(axis=2)
        assert 0 < differs.sum() < (size(tmp_path / "no.png")[0] / count) ** 2


def test_the_users_matplotlib_settings_do_not_matter(tmp_path: Path) -> None:
    (tmp_path / "matplotlibrc").write_text("text.usetex: true\naxes.facecolor: red\nfont.size: 40\nbackend: TkAgg\n")
    code = (
        "import sys, pathlib; from nmt.extras.pages.plot import plot; "
        "plot([[1.0]], ['$a_'], ['b'], pathlib.Path('there.png')); assert 'matplotlib.pyplot' not in sys.modules"
    )
    root = str(Path(__file__).parents[3])
    environment = {**os.environ, "PYTHONPATH": root}
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=environment, check=True)
    plot([[1.0]], ["$a_"], ["b"], tmp_path / "here.png")
    assert (tmp_path / "there.png").read_bytes() == (tmp_path / "here.png").read_bytes()


def test_the_writer_makes_one_picture_per_pair(tmp_path: Path) -> None:
    pairs = [
        Alignment(("a",), ("b",), ((0, 0),), np.ones((1, 1))),
        Alignment((), (), (), np.zeros((0, 0))),
        Alignment(("ab",), ("b",), ((0, 0),), np.array([[0.5, 0.5]]), "subword", ("▁a", "b"), ("▁b",)),
    ]
    gold = [Gold(frozenset({(0, 0)}))] * 3
    with PictureWriter(tmp_path / "new" / "pictures", gold) as writer:
        for alignment in pairs:
            writer.write(alignment)
        with pytest.raises(InputError, match="more than 3 sentence pairs but 3 gold lines"):
            writer.write(pairs[0])
    folder = tmp_path / "new" / "pictures"
    assert sorted(each.name for each in folder.iterdir()) == ["000001.png", "000002.png", "000003.png"]
    plot(np.ones((1, 1)), ["a"], ["b"], tmp_path / "word.png", gold=gold[0], links=[(0, 0)])
    plot(np.full((1, 2), 0.5), ["▁a", "b"], ["▁b"], tmp_path / "subword.png")
    assert (folder / "000001.png").read_bytes() == (tmp_path / "word.png").read_bytes()
    assert (folder / "000003.png").read_bytes() == (tmp_path / "subword.png").read_bytes()
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="file: cannot be made"):
        PictureWriter(tmp_path / "file")


def test_faults(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"shape \(1, 2\) for 2 target and 1 source words"):
        plot(np.zeros((1, 2)), ["a"], ["x", "y"], tmp_path / "a.png")
    with pytest.raises(InputError, match=r"a.png: cannot write the picture: No such file"):
        plot(np.zeros((1, 1)), ["a"], ["x"], tmp_path / "nowhere" / "a.png")


def test_svg_has_text_as_text_and_the_same_bytes_each_time(tmp_path: Path) -> None:
    weights = np.zeros((len(ODD), len(ODD) + 1))
    weights[2, 5] = weights[3, 1] = 1
    sources, gold = [*ODD, "\ufffe"], Gold(frozenset({(0, 0)}), frozenset({(1, 1)}))
    for name in ("a.svg", "b.svg"):
        plot(weights, sources, ODD, tmp_path / name, title="a < b", gold=gold, links=[(0, 1)], format="svg")
    data = (tmp_path / "a.svg").read_bytes()
    assert data == (tmp_path / "b.svg").read_bytes()
    assert b"date>" not in data
    root = ElementTree.fromstring(data)  # well-formed, whatever the words
    texts = ["".join(each.itertext()) for each in root.iter("{http://www.w3.org/2000/svg}text")]
    assert {"$x_1$", "日本語", "العربية", "nul\N{REPLACEMENT CHARACTER}", "a < b", "source", "gold, sure"} <= set(texts)
    dark = [each.get("style", "") for each in root.iter("{http://www.w3.org/2000/svg}path")]
    assert sum("fill: #08306b" in style for style in dark) == 2  # cells of weight 1; white ones are not drawn


def test_the_writer_makes_svg(tmp_path: Path) -> None:
    with PictureWriter(tmp_path, format="svg") as writer:
        writer.write(Alignment(("a",), ("b",), ((0, 0),), np.ones((1, 1))))
        writer.write(Alignment((), (), (), np.zeros((0, 0))))
    assert sorted(each.name for each in tmp_path.iterdir()) == ["000001.svg", "000002.svg"]


def test_pictures_and_pages_have_one_palette() -> None:
    """The pages have their colours in CSS, for light and dark; the light ones are those of the pictures."""
    base = (files("nmt.extras.pages") / "base.css").read_text(encoding="utf-8")
    report = (files("nmt.extras.pages.report") / "page" / "report.css").read_text(encoding="utf-8")
    light = base.partition("@media")[0]
    assert re.findall(r"--w[1-4]: (#\w+)", light) == list(plotting._COLOURS[1:])
    assert re.findall(r"--run\d: (#\w+)", report.partition("@media")[0]) == list(score_plot.COLOURS)
    viewer = (files("nmt.extras.pages") / "page" / "viewer.css").read_text(encoding="utf-8")
    assert f"--missed: {plotting._GOLD_COLOUR}" in viewer
    negative = ", ".join(f"--w{place}: {colour}" for place, colour in enumerate(plotting._NEGATIVE_COLOURS[1:], 1))
    assert f".negative {{ {negative.replace(',', ';')};" in viewer


def test_signed_values_are_blue_and_red_up_to_the_largest(tmp_path: Path) -> None:
    weights = [[0.02, 0.0, -0.04], [0.0, 0.04, 0.0], [0.0, 0.0, 0.0]]
    plot(weights, "abc", "xyz", tmp_path / "a.svg", format="svg", magnitude="signed")
    text = (tmp_path / "a.svg").read_text(encoding="utf-8")
    assert [text.count(f"fill: {each[-1]}") for each in (plotting._COLOURS, plotting._NEGATIVE_COLOURS)] == [1, 1]
    assert ">e · ∂ log p / ∂ e</text>" in text
    plot(np.abs(weights), "abc", "xyz", tmp_path / "b.svg", format="svg", magnitude="raw")
    assert (tmp_path / "b.svg").read_text(encoding="utf-8").count(f"fill: {plotting._COLOURS[-1]}") == 2

"""Pictures: what is in their pixels, and what is in their SVG."""

from __future__ import annotations

import json
import re
import warnings
from functools import partial
from importlib.resources import files
from io import BytesIO
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib import rc_context
from matplotlib.figure import Figure
from matplotlib.image import imread

from nmt.alignment.error_rate import Gold
from nmt.alignment.formats import Alignment
from nmt.core.errors import InputError
from nmt.evaluation.bootstrap import Estimate
from nmt.evaluation.by_length import LengthScores
from nmt.extras.pages import draw
from nmt.extras.pages.report.charts import Chart, ChartLine, training_charts
from tests.extras.pages.report.records import NASTY, run
from tests.extras.pages.samples import aligned

BLUE, ORANGE, PALE = (0x21, 0x71, 0xB5), (0xD9, 0x48, 0x0F), (0xC9, 0xDD, 0xF0)
ODD = [
    *("$x_1$", "\\frac{", "a_b^c", "$", "nul\x00", "\n", "日本語", "😀", "العربية", "x" * 99),
    *("\ud800", "", "%#&", "\u2028"),
]


def words(count: int) -> list[str]:
    return [f"word{number}" for number in range(count)]


def file_of(figure: Figure, format: str = "png") -> bytes:
    draw.save(figure, stream := BytesIO(), format)
    return stream.getvalue()


def pixels(figure: Figure) -> np.ndarray:
    image: np.ndarray = np.asarray(imread(BytesIO(file_of(figure))))[..., :3]
    return image * 255


def where(figure: Figure, colour: tuple[int, int, int], within: float = 2) -> np.ndarray:
    """Row and column of each pixel of this colour."""
    return np.argwhere(np.abs(pixels(figure) - colour).max(axis=-1) < within)


def texts(svg: bytes) -> list[str]:
    root = ElementTree.fromstring(svg)  # well-formed, whatever the words
    return ["".join(each.itertext()) for each in root.iter("{http://www.w3.org/2000/svg}text")]


# ---- alignments


def test_any_label_is_text_and_nothing_is_warned_of(tmp_path: Path) -> None:
    weights = np.zeros((len(ODD), len(ODD) + 1))
    weights[2, 5] = weights[3, 1] = 1
    gold = Gold(frozenset({(0, 0)}), frozenset({(1, 1)}))
    pair = aligned([*ODD, "\ufffe"], ODD, ((0, 1),), weights)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for name in ("a.svg", "b.svg", "a.png"):
            draw.plot_alignment(pair, tmp_path / name, languages=("$de", "en"), gold=gold)
    data = (tmp_path / "a.svg").read_bytes()
    assert data == (tmp_path / "b.svg").read_bytes()
    assert b"date>" not in data
    expected = {"$x_1$", "日本語", "العربية", "nul\N{REPLACEMENT CHARACTER}", "source: $de", "target: en", "gold, sure"}
    assert expected <= set(texts(data))
    dark = [each.get("style", "") for each in ElementTree.fromstring(data).iter("{http://www.w3.org/2000/svg}path")]
    assert sum("fill: #08306b" in style for style in dark) == 2  # cells of weight 1; white ones are not drawn


def test_the_picture_grows_with_the_sentence_and_cells_stay_legible(tmp_path: Path) -> None:
    few, many = (pixels(draw.plot_alignment(aligned(words(n), words(n), (), np.eye(n)))).shape[1] for n in (5, 25))
    assert max(few, 25 * 40) < many  # pixels per word, at 200 to the inch: room for letters of 8 points
    draw.plot_alignment(aligned(words(400), "x"), tmp_path / "long.png")
    assert 4000 < imread(tmp_path / "long.png").shape[1] <= 8000


@pytest.mark.parametrize("shape", [(0, 0), (0, 3), (3, 0), (1, 1)])
def test_an_empty_side_is_drawn(shape: tuple[int, int]) -> None:
    figure = draw.plot_alignment(aligned(words(shape[1]), words(shape[0])), gold=Gold())
    assert min(pixels(figure).shape[:2]) > 100


def test_weights_darken_the_cell_of_their_row_and_column() -> None:
    # Row 0 (target) looks at column 2 (source): the one dark cell is at the top right.
    image = pixels(draw.plot_alignment(aligned("a b c", "x y z", (), [0, 0, 1] + 6 * [0])))
    dark = np.argwhere((image[..., 2] > image[..., 0] + 60) & (image[..., 2] < 128))
    frame = np.argwhere(np.abs(image - 0x55).max(axis=-1) < 5)
    left, width = frame[:, 1].min(), np.ptp(frame[:, 1])
    row, column = dark[dark[:, 1] < left + 0.7 * width].T
    assert len(column) > 3000
    assert column.min() > left + 0.3 * width
    assert np.ptp(row) < 100  # one cell of 0.42 inch, not two


def test_gold_and_links_are_drawn() -> None:
    one, other = frozenset({(0, 0)}), frozenset({(1, 1)})
    golds = [None, Gold(), Gold(possible=one), Gold(one), Gold(one, other)]
    pair = aligned("a b", "x y")
    # The legend alone has both samples; a dashed square has less ink than a solid one.
    ink = [len(where(draw.plot_alignment(pair, gold=gold), ORANGE, 40)) for gold in golds]
    assert ink == sorted(set(ink))
    assert ink[0] == 0
    for count in (2, 40):  # a link stays inside its cell however small that is
        side = words(count)
        without, linked = (pixels(draw.plot_alignment(aligned(side, side, links))) for links in ((), ((1, 1),)))
        assert 0 < (without != linked).any(axis=2).sum() < (without.shape[1] / count) ** 2


def test_signed_values_are_blue_and_red_up_to_the_largest() -> None:
    weights = np.array([[0.02, 0.0, -0.04], [0.0, 0.04, 0.0], [0.0, 0.0, 0.0]])
    svg = file_of(draw.plot_alignment(aligned("a b c", "x y z", (), weights, magnitude="signed")), "svg").decode()
    assert [svg.count(f"fill: {each[-1]}") for each in (draw.WEIGHT_COLOURS, draw.NEGATIVE_COLOURS)] == [1, 1]
    assert ">e · ∂ log p / ∂ e</text>" in svg
    raw = file_of(draw.plot_alignment(aligned("a b c", "x y z", (), np.abs(weights), magnitude="raw")), "svg").decode()
    assert raw.count(f"fill: {draw.WEIGHT_COLOURS[-1]}") == 2


def test_of_a_subword_alignment_neither_links_nor_gold_are_drawn() -> None:
    tokens = ("▁a", "b"), ("▁b",)
    pair = Alignment(("ab",), ("b",), ((0, 0),), np.full((1, 2), 0.5), "subword", *tokens)
    drawn = set(texts(file_of(draw.plot_alignment(pair, gold=Gold(frozenset({(0, 0)}))), "svg")))
    assert drawn & {"▁a", "b", "▁b", "link", "gold, sure"} == {"▁a", "b", "▁b"}


# ---- scores by source length


def bucket(first: int, last: int | None, value: float, *, sentences: int = 100, half: float = 5.0) -> LengthScores:
    estimate = Estimate(value, value - half, value + half)
    return LengthScores(first, last, sentences, estimate, Estimate(value / 2, value / 2 - half, value / 2 + half))


def test_points_stand_at_their_values_and_lines_span_the_intervals() -> None:
    # Three points on a scale that the first and last fix: the middle one stands a quarter of the way up.
    blue = where(draw.draw_by_length({"": [bucket(1, 5, 20), bucket(6, 10, 30), bucket(11, None, 60)]}), BLUE)
    left, width, centres = blue[:, 1].min(), np.ptp(blue[:, 1]), []
    for share in (0.0, 0.5, 1.0):
        near = blue[np.abs(blue[:, 1] - left - share * width) < 0.04 * width]
        ink = np.bincount(near[:, 0])
        centres.append(float(np.flatnonzero(ink >= ink.max() - 2).mean()))  # the point, which is wider than its line
    low, middle, high = centres
    assert low > middle > high  # rows count from the top
    assert (low - middle) / (low - high) == pytest.approx(0.25, abs=0.03)


def test_intervals_and_few_sentences_change_the_picture() -> None:
    scores = [bucket(1, 5, 40), bucket(6, 10, 50)]
    wider = [bucket(1, 5, 40, half=8), bucket(6, 10, 50)]
    assert len({file_of(draw.draw_by_length({"": each})) for each in (scores, wider)}) == 2
    many, few = (draw.draw_by_length({"": [bucket(1, 5, 40, sentences=count)]}) for count in (100, 7))
    assert len(where(few, BLUE)) < 0.8 * len(where(many, BLUE))  # hollow


def test_bars_count_the_sentences_once_where_all_systems_have_the_same() -> None:
    scores = [bucket(1, 5, 40, sentences=100), bucket(6, 10, 50, sentences=400)]
    pale = where(draw.draw_by_length({"a": scores, "b": scores}), PALE)
    middle = (pale[:, 1].min() + pale[:, 1].max()) / 2
    assert (pale[:, 1] > middle).sum() / (pale[:, 1] < middle).sum() == pytest.approx(4, rel=0.05)
    assert len(where(draw.draw_by_length({"a": scores, "b": scores[:1]}), PALE)) < 0.1 * len(pale)


def test_every_system_is_drawn_and_named_whatever_it_is_called() -> None:
    scores = [bucket(1, 5, 40), bucket(6, None, 50)]
    assert len(where(draw.draw_by_length({"one": scores}), ORANGE)) == 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        two = draw.draw_by_length({"_a$_{": scores, "b\x00\n": scores[:1]})
        assert len(where(two, ORANGE)) > 100
    assert {"_a$_{", "b\ufffd\ufffd", "BLEU", "sentences"} <= set(texts(file_of(two, "svg")))
    # the last line of the picture's text is the legend: both samples stand there, in one row
    height, width, _ = pixels(two).shape
    for colour in (BLUE, ORANGE):
        assert (where(two, colour)[:, 0] > height - 60).any()
    many = draw.draw_by_length({f"system {number}": scores for number in range(40)})
    assert pixels(many).shape[1] > 1.1 * width


# ---- charts and models


def test_the_points_of_a_chart_are_where_they_are_drawn() -> None:
    chart = Chart("k", "T", "update", "y", (ChartLine(0, "a", (0.0, 500.0, 1000.0), (1.0, 3.0, 2.0)),))
    figure = draw.draw_chart(chart)
    svg = draw.inline_svg(figure, "k")
    found = draw.chart_points(figure, chart)
    left, top, right, bottom = found["box"]
    (line,) = found["lines"]
    (x0, y0, _, _), (x1, y1, *texts), (x2, y2, _, _) = line["points"]
    assert texts == ["500", "3"]
    assert left <= x0 < x1 < x2 <= right
    assert top <= y1 < y2 < y0 <= bottom
    assert (x1, y2) == pytest.approx(((x0 + x2) / 2, (y0 + y1) / 2), abs=0.2)
    path = next(each for each in re.findall(r' d="(M [^"]*)"', svg) if each.count("L") == 2)
    assert [*map(float, re.findall(r"[\d.]+", path))] == pytest.approx([x0, y0, x1, y1, x2, y2], abs=0.1)
    assert json.dumps(found)


def test_a_legend_names_runs_whatever_they_are_called() -> None:
    names = [NASTY, "_two $x$"]
    chart = training_charts([run(names[0]), run(names[1], seed=1)])[0]
    one, other = (file_of(draw.draw_chart(chart, names), "svg") for _ in range(2))
    assert one == other
    assert "_two $x$: validation" in texts(one)
    assert f"{NASTY}: training".replace("\x07", "\ufffd") in texts(one)
    assert not any(NASTY[:8] in each for each in texts(file_of(draw.draw_chart(chart), "svg")))


def test_arrows_of_a_model_stay_in_the_picture() -> None:
    (axes,) = draw.draw_model(run().parts).axes
    (left, right), (low, high) = axes.get_xlim(), axes.get_ylim()
    arrows = [each for each in axes.texts if getattr(each, "arrow_patch", None) is not None]
    assert len(arrows) == 7
    places = np.array([place for each in arrows for place in (each.xy, each.get_position())])
    assert ((places >= (left, low)) & (places <= (right, high))).all()


def test_a_picture_in_a_page_has_its_colours_from_the_page_and_names_of_its_own() -> None:
    charts = training_charts([run("one"), run("two", seed=1)])
    svgs = [draw.inline_svg(draw.draw_chart(chart), chart.key) for chart in charts]
    svgs.append(draw.inline_svg(draw.draw_model(run().parts), "model0"))
    ids = []
    for svg in svgs:
        assert svg.startswith("<svg viewBox=")
        assert not re.search(r"#[0-9a-f]{6}", svg)
        assert "<style" not in svg
        root = ElementTree.fromstring(svg.replace("<svg ", '<svg xmlns:xlink="http://www.w3.org/1999/xlink" ', 1))
        ids += [each.attrib["id"] for each in root.iter() if "id" in each.attrib]
        used = re.findall(r'(?:href="|url\()#([^")]+)', svg)
        assert set(used) <= set(ids)
    assert len(ids) == len(set(ids)) > 50
    assert "var(--run1)" in svgs[0]


# ---- all pictures


def test_the_users_matplotlib_settings_do_not_matter(tmp_path: Path) -> None:
    def write() -> list[bytes]:
        for kind in ("png", "svg"):
            draw.plot_alignment(aligned("$a_", "b", ((0, 0),), [1]), tmp_path / f"words.{kind}")
            draw.plot_by_length({"$a_": [bucket(1, 5, 40)]}, tmp_path / f"scores.{kind}")
        return [path.read_bytes() for path in sorted(tmp_path.iterdir())]

    own = write()
    assert len(own) == 4
    with rc_context({"text.usetex": True, "axes.facecolor": "red", "font.size": 40, "axes.grid": True}):
        assert write() == own
    assert "pyplot" not in Path(draw.__file__).read_text(encoding="utf-8").partition("from __future__")[2]


def test_pictures_and_pages_have_one_palette() -> None:
    """The pages have their colours in CSS, for light and dark; the light ones are those of the pictures."""
    sheet = (files("nmt.extras.pages") / "page" / "style.css").read_text(encoding="utf-8")
    light, negative = sheet.partition("@media")[0].split(".negative")
    assert re.findall(r"--w[1-4]: (#\w+)", light) == list(draw.WEIGHT_COLOURS[1:])
    assert re.findall(r"--w[1-4]: (#\w+)", negative) == list(draw.NEGATIVE_COLOURS[1:])
    assert re.findall(r"--run\d: (#\w+)", light) == list(draw.COLOURS)
    assert f"--missed: {draw.GOLD_COLOUR}" in light


def test_faults(tmp_path: Path) -> None:
    (tmp_path / "folder.png").mkdir()
    plot = partial(draw.plot_alignment, aligned("a", "x")), partial(draw.plot_by_length, {"": [bucket(1, 5, 40)]})
    for index, name, message in (
        (0, "nowhere/a.png", "a.png: cannot be written: No such file"),
        (0, "a.jpg", "a.jpg: end its name in .png or .svg$"),
        (1, "folder.png", "folder.png: cannot be written: Is a directory"),
    ):
        with pytest.raises(InputError, match=message):
            plot[index](path=tmp_path / name)

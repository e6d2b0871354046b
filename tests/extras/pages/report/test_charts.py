"""Charts of the figures."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from nmt.extras.pages.report.charts import MOST_POINTS, Chart, ChartLine, length_chart, look_charts, points, training_charts
from nmt.extras.pages.report.draw import draw, draw_model, drawing, inline_svg, save
from nmt.extras.pages.report.record import Origin
from tests.extras.pages.report.records import NASTY, bare, run


def test_a_curve_has_every_finite_value_of_its_kind() -> None:
    metrics = [
        {"kind": "train", "update": 1, "loss": 3.0},
        {"kind": "valid", "update": 1, "loss": 2.0},
        {"kind": "train", "update": 2, "loss": None},
        {"kind": "train", "update": 3},
        {"kind": "train", "update": 4, "loss": math.inf},
        {"kind": "train", "update": 5, "loss": 0},
    ]
    assert points(metrics, "train", "loss") == ((1, 5), (3, 0))
    assert points(metrics, "train", "loss", positive=True) == ((1,), (3,))
    assert points(metrics, "valid", "loss") == ((1,), (2,))


def test_long_curves_are_thinned_evenly_and_keep_their_end() -> None:
    metrics = [{"kind": "train", "update": update, "loss": update} for update in range(1, 4 * MOST_POINTS)]
    x, y = points(metrics, "train", "loss")
    assert x == y
    assert MOST_POINTS / 2 < len(x) <= MOST_POINTS
    assert x[-1] == 4 * MOST_POINTS - 1
    assert set(np.diff(x)) == {4}


def test_a_training_loss_with_label_smoothing_says_so() -> None:
    smoothed = replace(run("one"), origin=Origin({}, "", "greedy", "", 0.1))
    loss, perplexity, *_ = training_charts([smoothed])
    assert [each.name for each in loss.lines] == ["training, with label smoothing 0.1", "validation"]
    assert [each.name for each in perplexity.lines] == ["training", "validation"]


def test_runs_differ_by_colour_and_figures_by_dashes() -> None:
    charts = {chart.key: chart for chart in training_charts([run("one"), run("two", seed=1, updates=60)])}
    assert list(charts) == [
        "loss", "perplexity", "quality", "accuracy", "learning_rate", "gradient_norm", "speed",
    ]  # fmt: skip
    assert {each.x_end for each in charts.values()} == {60}  # of the longer run, in every chart
    assert [(each.run, each.name, *charts["loss"].look(each)) for each in charts["loss"].lines] == [
        (0, "training", 0, 0), (0, "validation", 0, 1), (1, "training", 1, 0), (1, "validation", 1, 1),
    ]  # fmt: skip
    assert [charts["speed"].look(each) for each in charts["speed"].lines] == [(0, 0), (1, 1)]
    alone = training_charts([run()])[0]
    assert [alone.look(each) for each in alone.lines] == [(0, 0), (1, 1)]
    assert charts["loss"].lines[2].y[9] == pytest.approx(9 / 10 + 1)
    assert [each.name for each in charts["quality"].lines] == ["BLEU", "chrF"] * 2


def test_histograms_add_up_to_all() -> None:
    one, two = length_chart([run()]).lines  # type: ignore[union-attr]
    assert (one.x, one.y) == ((0, 1, 2, 3), (0, 20, 60, 20))
    assert (two.y, two.kind) == ((0, 40, 40, 20), 1)
    assert length_chart([bare("x")]) is None
    entropy, coverage = look_charts([run()])
    looks = run().translated.looks  # type: ignore[union-attr]
    for chart, values in ((entropy, looks.entropies), (coverage, looks.coverages)):  # type: ignore[union-attr]
        (line,) = chart.lines
        assert sum(line.y) == pytest.approx(100)
        for x, y in list(zip(line.x, line.y, strict=True))[:-1]:
            inside = [value for value in values if x - 0.125 <= value < x + 0.125]
            assert y == pytest.approx(100 * len(inside) / len(values))
    assert look_charts([bare("x")]) == []


def test_the_trace_tells_where_points_are_and_what_they_say() -> None:
    chart = Chart("k", "T", "update", "y", (ChartLine(0, "a", (0.0, 500.0, 1000.0), (1.0, 3.0, 2.0)),))
    drawn = drawing(chart)
    trace = drawn.trace
    left, top, right, bottom = trace["box"]
    (line,) = trace["lines"]
    (x0, y0, _, _), (x1, y1, at, value), (x2, y2, _, _) = line["points"]
    assert (at, value) == ("500", "3")
    assert left <= x0 < x1 < x2 <= right
    assert x1 == pytest.approx((x0 + x2) / 2, abs=0.2)
    assert top <= y1 < y2 < y0 <= bottom
    assert y2 == pytest.approx((y0 + y1) / 2, abs=0.2)
    # the same points as matplotlib has drawn
    path = next(each for each in re.findall(r' d="(M [^"]*)"', drawn.svg) if each.count("L") == 2)
    numbers = [float(each) for each in re.findall(r"[\d.]+", path)]
    assert numbers == pytest.approx([x0, y0, x1, y1, x2, y2], abs=0.1)
    assert json.dumps(trace)


def test_arrows_of_a_model_stay_in_the_picture() -> None:
    (axes,) = draw_model(run().parts).axes
    (left, right), (low, high) = axes.get_xlim(), axes.get_ylim()
    arrows = [each for each in axes.texts if getattr(each, "arrow_patch", None) is not None]
    assert len(arrows) == 7
    for each in arrows:
        for x, y in (each.xy, each.get_position()):
            assert left <= x <= right
            assert low <= y <= high


def test_a_picture_in_a_page_has_its_colours_from_the_page_and_names_of_its_own() -> None:
    svgs = [drawing(chart).svg for chart in training_charts([run("one"), run("two", seed=1)])]
    svgs.append(inline_svg(draw_model(run().parts), "model0"))
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


def test_files_are_svg_and_png_with_any_name_in_the_legend(tmp_path: Path) -> None:
    chart = training_charts([run(NASTY), run("_two $x$", seed=1)])[0]
    save(draw(chart, [NASTY, "_two $x$"]), tmp_path, "loss")
    assert (tmp_path / "loss.png").read_bytes().startswith(b"\x89PNG")
    texts = "".join(ElementTree.parse(tmp_path / "loss.svg").getroot().itertext())
    assert "_two $x$: validation" in texts
    assert "<script>" in texts
    save(draw(chart, [NASTY, "_two $x$"]), tmp_path, "again")
    assert (tmp_path / "again.svg").read_bytes() == (tmp_path / "loss.svg").read_bytes()

"""Charts of the figures."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from nmt.extras.pages.report.charts import MOST_POINTS, length_charts, look_charts, points, training_charts
from nmt.extras.pages.report.record import Origin
from tests.extras.pages.report.records import bare, run


def test_a_curve_has_every_finite_value_of_its_kind() -> None:
    losses = ((1, 3.0), (2, None), (4, math.inf), (5, 0))
    metrics = [{"kind": "train", "update": update, "loss": loss} for update, loss in losses]
    metrics += [{"kind": "valid", "update": 1, "loss": 2.0}, {"kind": "train", "update": 3}]
    assert points(metrics, "train", "loss") == ((1, 5), (3, 0))
    assert points(metrics, "train", "loss", positive=True) == ((1,), (3,))
    assert points(metrics, "valid", "loss") == ((1,), (2,))


def test_long_curves_are_thinned_evenly_and_keep_their_end() -> None:
    metrics = [{"kind": "train", "update": update, "loss": update} for update in range(1, 4 * MOST_POINTS)]
    x, y = points(metrics, "train", "loss")
    assert x == y == tuple(range(3, 4 * MOST_POINTS, 4))


def test_a_training_loss_with_label_smoothing_says_so() -> None:
    smoothed = replace(run("one"), origin=Origin({}, "", "greedy", "", 0.1))
    loss, perplexity, *_ = training_charts([smoothed])
    assert [each.name for each in loss.lines] == ["training, with label smoothing 0.1", "validation"]
    assert [each.name for each in perplexity.lines] == ["training", "validation"]


def test_runs_differ_by_colour_and_figures_by_dashes() -> None:
    charts = {chart.key: chart for chart in training_charts([run("one"), run("two", seed=1, updates=60)])}
    assert " ".join(charts) == "loss perplexity quality accuracy learning_rate gradient_norm speed"
    assert {each.x_end for each in charts.values()} == {60}  # of the longer run, in every chart
    looks = [(each.run, each.name, *charts["loss"].look(each)) for each in charts["loss"].lines]
    assert looks == [(n, name, n, dash) for n in (0, 1) for dash, name in enumerate(("training", "validation"))]
    assert [charts["speed"].look(each) for each in charts["speed"].lines] == [(0, 0), (1, 1)]
    alone = training_charts([run()])[0]
    assert [alone.look(each) for each in alone.lines] == [(0, 0), (1, 1)]
    assert charts["loss"].lines[2].y[9] == pytest.approx(9 / 10 + 1)
    assert [each.name for each in charts["quality"].lines] == ["BLEU", "chrF"] * 2


def test_histograms_add_up_to_all() -> None:
    (chart,) = length_charts([run()])
    one, two = chart.lines
    assert (one.x, one.y) == ((0, 1, 2, 3), (0, 20, 60, 20))
    assert (two.y, two.kind) == ((0, 40, 40, 20), 1)
    assert length_charts([bare("x")]) == []
    entropy, coverage = look_charts([run()])
    looks = run().translated.looks  # type: ignore[union-attr]
    for chart, values in ((entropy, looks.entropies), (coverage, looks.coverages)):  # type: ignore[union-attr]
        (line,) = chart.lines
        assert sum(line.y) == pytest.approx(100)
        for x, y in list(zip(line.x, line.y, strict=True))[:-1]:
            inside = [value for value in values if x - 0.125 <= value < x + 0.125]
            assert y == pytest.approx(100 * len(inside) / len(values))
    assert look_charts([bare("x")]) == []

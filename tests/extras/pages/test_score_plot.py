from __future__ import annotations

import os
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

from nmt.core.errors import InputError
from nmt.evaluation.bootstrap import Estimate
from nmt.evaluation.by_length import LengthScores
from nmt.extras.pages.score_plot import plot_by_length

BLUE = (0x21, 0x71, 0xB5)
ORANGE = (0xD9, 0x48, 0x0F)
PALE = (0xC9, 0xDD, 0xF0)


def bucket(first: int, last: int | None, value: float, *, sentences: int = 100, half: float = 5.0) -> LengthScores:
    estimate = Estimate(value, value - half, value + half)
    return LengthScores(first, last, sentences, estimate, Estimate(value / 2, value / 2 - half, value / 2 + half))


def where(path: Path, colour: tuple[int, int, int]) -> np.ndarray:
    """Row and column of each pixel of this colour."""
    from matplotlib.image import imread

    image = np.asarray(imread(path))[..., :3] * 255
    return np.argwhere(np.abs(image - colour).max(axis=-1) < 2)


def size(path: Path) -> tuple[int, int]:
    from matplotlib.image import imread

    height, width = imread(path).shape[:2]
    return width, height


def test_points_stand_at_their_values_and_lines_span_the_intervals(tmp_path: Path) -> None:
    # Three points on a scale that the first and last fix: the middle one stands a quarter of the way up.
    plot_by_length({"": [bucket(1, 5, 20), bucket(6, 10, 30), bucket(11, None, 60)]}, tmp_path / "a.png")
    blue = where(tmp_path / "a.png", BLUE)
    left, width = blue[:, 1].min(), np.ptp(blue[:, 1])
    centres = []
    for share in (0.0, 0.5, 1.0):
        near = blue[np.abs(blue[:, 1] - left - share * width) < 0.04 * width]
        ink = np.bincount(near[:, 0])
        centres.append(float(np.flatnonzero(ink >= ink.max() - 2).mean()))  # the point, which is wider than its line
    low, middle, high = centres
    assert low > middle > high  # rows count from the top
    assert (low - middle) / (low - high) == pytest.approx(0.25, abs=0.03)


def test_another_metric_and_wider_intervals_change_the_picture(tmp_path: Path) -> None:
    scores = [bucket(1, 5, 40), bucket(6, 10, 50)]
    plot_by_length({"": scores}, tmp_path / "bleu.png")
    plot_by_length({"": scores}, tmp_path / "chrf.png", metric="chrF2")
    wider = [bucket(1, 5, 40, half=8), bucket(6, 10, 50)]
    plot_by_length({"": wider}, tmp_path / "wider.png")
    assert len({(tmp_path / f"{name}.png").read_bytes() for name in ("bleu", "chrf", "wider")}) == 3


def test_points_of_few_sentences_are_hollow(tmp_path: Path) -> None:
    for name, sentences in (("many", 100), ("few", 7)):
        plot_by_length({"": [bucket(1, 5, 40, sentences=sentences)]}, tmp_path / f"{name}.png")
    assert len(where(tmp_path / "few.png", BLUE)) < 0.8 * len(where(tmp_path / "many.png", BLUE))


def test_bars_count_the_sentences_once_where_all_systems_have_the_same(tmp_path: Path) -> None:
    scores = [bucket(1, 5, 40, sentences=100), bucket(6, 10, 50, sentences=400)]
    plot_by_length({"a": scores, "b": scores}, tmp_path / "same.png")
    pale = where(tmp_path / "same.png", PALE)
    middle = (pale[:, 1].min() + pale[:, 1].max()) / 2
    assert (pale[:, 1] > middle).sum() / (pale[:, 1] < middle).sum() == pytest.approx(4, rel=0.05)
    plot_by_length({"a": scores, "b": scores[:1]}, tmp_path / "other.png")
    assert len(where(tmp_path / "other.png", PALE)) < 0.1 * len(pale)


def test_every_system_is_drawn_and_named_whatever_it_is_called(tmp_path: Path) -> None:
    scores = [bucket(1, 5, 40), bucket(6, None, 50)]
    plot_by_length({"one": scores}, tmp_path / "one.png")
    assert len(where(tmp_path / "one.png", ORANGE)) == 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plot_by_length({"_a$_{": scores, "b\x00\n": scores[:1]}, tmp_path / "two.png", title="$\\bad{")
    assert len(where(tmp_path / "two.png", ORANGE)) > 100
    # the last line of the picture's text is the legend: both samples stand there, in one row
    legend = size(tmp_path / "two.png")[1] - 60
    for colour in (BLUE, ORANGE):
        assert (where(tmp_path / "two.png", colour)[:, 0] > legend).any()
    many = {f"system {number}": scores for number in range(40)}
    plot_by_length(many, tmp_path / "many.png")
    assert size(tmp_path / "many.png")[0] > 1.1 * size(tmp_path / "two.png")[0]


def test_equal_figures_make_equal_files_whatever_the_users_settings_are(tmp_path: Path) -> None:
    scores = [bucket(1, 5, 40)]
    (tmp_path / "matplotlibrc").write_text("text.usetex: true\naxes.facecolor: red\nfont.size: 40\nbackend: TkAgg\n")
    code = (
        "import sys, pathlib; from nmt.extras.pages.score_plot import plot_by_length; "
        "from tests.extras.pages.test_score_plot import bucket; "
        "[plot_by_length({'$a_': [bucket(1, 5, 40)]}, pathlib.Path(f'there.{kind}')) for kind in ('png', 'svg')]; "
        "assert 'matplotlib.pyplot' not in sys.modules"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=environment, check=True)
    for kind in ("png", "svg"):
        plot_by_length({"$a_": scores}, tmp_path / f"here.{kind}")
        assert (tmp_path / f"there.{kind}").read_bytes() == (tmp_path / f"here.{kind}").read_bytes()
    assert b"<svg" in (tmp_path / "here.svg").read_bytes()


def test_faults(tmp_path: Path) -> None:
    scores = {"": [bucket(1, 5, 40)]}
    with pytest.raises(InputError, match=r"a.jpg: a picture is a file that ends in .png or .svg; name it so$"):
        plot_by_length(scores, tmp_path / "a.jpg")
    with pytest.raises(InputError, match=r"the folder .*nowhere for this picture does not exist; make it first$"):
        plot_by_length(scores, tmp_path / "nowhere" / "a.png")
    (tmp_path / "folder.png").mkdir()
    with pytest.raises(InputError, match=r"folder.png: cannot write the picture: Is a directory"):
        plot_by_length(scores, tmp_path / "folder.png")
    with pytest.raises(ValueError, match="no bucket"):
        plot_by_length({"a": []}, tmp_path / "a.png")

"""The page of a report in a real browser."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import pytest

from nmt.extras.pages.report.record import Run
from nmt.extras.pages.report.writer import page
from tests.extras.pages.report.records import NASTY, run
from tests.extras.service.accessibility import faults
from tests.extras.service.browser import END, ESCAPE, HOME, LEFT, RIGHT, Browser

TOLD = "return document.querySelector('.readout:not([hidden])')?.textContent ?? null"


def show(browser: Browser, folder: Path, *runs: Run, width: int = 1000, dark: bool = False) -> None:
    browser.darken(dark)
    browser.resize(width)
    path = folder / "report.html"
    path.write_text(page(runs), encoding="utf-8")
    browser.open(path.as_uri())


def test_a_chart_reads_out_its_values(browser: Browser, tmp_path: Path) -> None:
    one, two = run("one"), run(NASTY, seed=1)
    show(browser, tmp_path, one, two)
    assert "2 runs: one, <script>" in browser.run("return document.title")
    assert browser.run("return document.querySelectorAll('main script:not([type])').length") == 0
    browser.point(".plot")  # the middle of the first chart, the loss
    told = browser.run(TOLD)
    update = int(re.match(r"update (\d+)", told)[1])  # type: ignore[index]
    assert 15 <= update <= 25
    assert f"one, training: {9 / update:.4g}" in told
    assert f"{NASTY}, training: {9 / update + 1:.4g}" in told
    browser.point("h1")
    assert browser.run(TOLD) is None

    browser.run("document.querySelector('.plot').focus()")
    for key, expected in ((HOME, 1), (RIGHT, 2), (RIGHT, 3), (LEFT, 2), (END, 40), (RIGHT, 40)):
        browser.press(key)
        told = browser.run(TOLD)
        assert told.startswith(f"update {expected}one, training: {9 / expected:.4g}"), told
    assert "one, validation: 1" in told
    hair, dots = "return document.querySelectorAll('.hair').length", "return document.querySelectorAll('.dot').length"
    assert (browser.run(hair), browser.run(dots)) == (1, 4)
    browser.press(ESCAPE)
    assert (browser.run(TOLD), browser.run(hair)) == (None, 0)


def test_translations_have_attention_that_follows_the_mouse(browser: Browser, tmp_path: Path) -> None:
    shown = run("one")
    show(browser, tmp_path, shown)
    assert shown.translated is not None
    sample = shown.translated.samples[0]
    pair = ".pair:nth-of-type(1)"
    assert browser.texts(f"{pair} mark") == ["dog", "cat"]
    assert browser.texts(f"{pair} .name") == ["Source", "Reference", "Translation"]
    _, *lines = browser.texts(f"{pair} .text .name + span")
    assert lines == [" ".join(text.split()) for text in (sample.reference, sample.translation)]
    target = len(sample.alignment.target_words) - 1
    browser.point(f"{pair} .word[data-side='1'][data-place='{target}']")
    weights = browser.run(
        "return [...document.querySelectorAll(arguments[0])].map((e) => Number(e.style.getPropertyValue('--weight')))",
        f"{pair} .word[data-side='0']",
    )
    assert weights == [round(each, 3) for each in sample.alignment.weights_TS[target].tolist()]
    assert len(browser.texts(f"{pair} td.link")) == 1


def test_a_slider_shows_attention_at_each_validation(browser: Browser, tmp_path: Path) -> None:
    shown = run("one").snapshots
    assert shown is not None
    show(browser, tmp_path, run("one"))
    cells = (
        "return [...document.querySelectorAll('.forming .matrix')].map((each) => "
        "[...each.querySelectorAll('tbody td')].map((cell) => Number(cell.style.getPropertyValue('--weight'))))"
    )
    assert browser.texts(".forming .matrix:nth-of-type(1) .word") == [
        *shown.pairs[0][0].source_tokens,
        *shown.pairs[0][0].target_tokens,
    ]
    browser.run("document.querySelector('.forming input').focus()")
    for key, place in ((None, 2), (LEFT, 1), (HOME, 0), (LEFT, 0), (END, 2)):
        if key is not None:
            browser.press(key)
        expected = [[round(each, 3) for each in pair[place].weights_TS.ravel().tolist()] for pair in shown.pairs]
        assert browser.run(cells) == expected
        told = "return [document.querySelector('.forming output').textContent, document.activeElement.ariaValueText]"
        assert browser.run(told) == [f"update {shown.updates[place]}"] * 2


SIZES = """
const page = document.documentElement;
const far = [...document.querySelectorAll("main *")].filter((each) => !each.closest(".table, .matrix, svg"))
  .filter((each) => each.getBoundingClientRect().right > innerWidth + 1);
return [page.scrollWidth - page.clientWidth, far.map((each) => each.outerHTML.slice(0, 80))];
"""


@pytest.mark.parametrize("width", [360, 1400])
def test_nothing_scrolls_sideways(browser: Browser, tmp_path: Path, width: int) -> None:
    show(browser, tmp_path, run("one"), run("a-very-long-name-of-a-run-" * 4, seed=1), width=width)
    assert browser.run(SIZES) == [0, []]


CONTRAST = """
const luminance = (colour) => {
  const canvas = document.createElement("canvas").getContext("2d");
  canvas.fillStyle = colour;
  canvas.fillRect(0, 0, 1, 1);
  const parts = [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3)
    .map((each) => each / 255).map((each) => (each <= 0.03928 ? each / 12.92 : ((each + 0.055) / 1.055) ** 2.4));
  return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2];
};
const ratio = (one, other) => {
  const [low, high] = [luminance(one), luminance(other)].sort((a, b) => a - b);
  return (high + 0.05) / (low + 0.05);
};
const style = getComputedStyle(document.documentElement);
const value = (name) => style.getPropertyValue(name).trim();
const found = {};
for (let place = 0; place < 10; place += 1) found[`run${place}`] = ratio(value(`--run${place}`), value("--card"));
for (const name of ["ink", "faint", "link"]) {
  found[name] = Math.min(ratio(value(`--${name}`), value("--card")), ratio(value(`--${name}`), value("--paper")));
}
found.bar = ratio(value("--ink"), value("--bar"));
const text = document.querySelector(".plot text");
found.ticks = ratio(getComputedStyle(text).fill, value("--card"));
return found;
"""


@pytest.mark.parametrize(("width", "dark"), [(1000, False), (1000, True), (360, False)])
def test_text_and_lines_stand_out_and_axe_finds_no_fault(
    browser: Browser, tmp_path: Path, width: int, dark: bool
) -> None:
    show(browser, tmp_path, run("one"), run("two", seed=1), width=width, dark=dark)
    for name, ratio in browser.run(CONTRAST).items():
        assert ratio >= (3 if name.startswith("run") else 4.5), (name, ratio)
    assert faults(browser) == []


def test_everything_that_is_used_has_a_name(browser: Browser, tmp_path: Path) -> None:
    show(browser, tmp_path, run("one"), run("two", seed=1))
    nameless = browser.run(
        "return [...document.querySelectorAll('button, input, select, [role=group], [role=img], [tabindex], article, "
        "nav, section, table')].filter((each) => !(each.ariaLabel || each.labels?.length || each.textContent.trim() || "
        "each.getAttribute('aria-labelledby'))).map((each) => each.outerHTML.slice(0, 80))"
    )
    assert nameless == []
    links = "return [...document.querySelectorAll('.contents a')].every((each) => document.querySelector(each.hash))"
    assert browser.run(links)
    levels = browser.run("return [...document.querySelectorAll('h1, h2, h3')].map((each) => Number(each.tagName[1]))")
    assert levels[0] == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))

"""The page of a report in a real browser."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise, product
from pathlib import Path

import pytest
from matplotlib.colors import to_rgb

from nmt.extras.pages.report.record import Run
from nmt.extras.pages.report.writer import page
from nmt.extras.trust.confidence import Confidence, SourceWord, TargetWord
from tests.extras.pages.report.records import NASTY, run
from tests.extras.pages.samples import nameless, values
from tests.extras.service.accessibility import faults
from tests.extras.service.browser import END, ESCAPE, HOME, LEFT, RIGHT, Browser

WEIGHT = "Number(e.style.getPropertyValue('--weight'))"
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
    assert browser.texts("main script:not([type])") == []
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
    assert [len(browser.texts(mark)) for mark in (".hair", ".dot")] == [1, 4]
    browser.press(ESCAPE)
    assert (browser.run(TOLD), browser.texts(".hair")) == (None, [])


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
    weights = [round(each, 3) for each in sample.alignment.weights_TS[target].tolist()]
    assert values(browser, f"{pair} .word[data-side='0']", WEIGHT) == weights
    assert len(browser.texts(f"{pair} td.link")) == 1


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_the_least_confident_translations_come_first(browser: Browser, tmp_path: Path, dark: bool) -> None:
    one, two = run("one"), run("two", seed=1)
    judged = {  # by run and sample; of the second sample by the first run nothing is known
        (0, 0): Confidence(0.9, 1, 1, (), (), ()),
        (0, 2): Confidence(0.6, 1, 1, (), (), ()),
        (1, 1): Confidence(0.7, 1, 1, (), (), ()),
        (1, 2): Confidence(
            0.1, 1, 1, (TargetWord("x", 0.9, 0.8), TargetWord("z", 0.6, 0.3)),
            tuple(SourceWord(word, 0.4 if word == "Hund" else 0.9) for word in f"{NASTY} der Hund".split()),
            ("source word 9 is not translated: Hund", "<b>"),
        ),
    }  # fmt: skip
    runs = []
    for place, each in enumerate((one, two)):
        assert each.translated is not None
        samples = [replace(s, confidence=judged.get((place, n))) for n, s in enumerate(each.translated.samples)]
        runs.append(replace(each, translated=replace(each.translated, samples=tuple(samples))))
    show(browser, tmp_path, *runs, dark=dark)
    assert browser.texts(".pair h2") == [f"{number}, {name}" for number in (3, 2, 1) for name in ("one", "two")]
    second = ".pair:nth-of-type(2)"
    assert browser.texts(f"{second} .confidence > *") == [
        "Check: 10\u00a0% likely right",
        "– source word 9 is not translated: Hund",
        "– <b>",
        "– doubtful words: z 30\u00a0%",
    ]
    assert browser.texts(f"{second} .text .doubtful") == ["Hund", "z"]
    assert browser.texts(f"{second} mark .doubtful") == ["z"]  # which is not in the reference either
    assert browser.texts(f"{second} .text .name + span") == [f"{NASTY} der Hund", "x y", "x z"]
    assert [len(browser.texts(f".pair:nth-of-type({n}) .confidence")) for n in range(1, 7)] == [1, 1, 0, 1, 1, 0]
    assert faults(browser) == []


def test_a_slider_shows_attention_at_each_validation(browser: Browser, tmp_path: Path) -> None:
    shown = run("one").snapshots
    assert shown is not None
    show(browser, tmp_path, run("one"))
    first = shown.pairs[0][0]
    assert browser.texts(".forming .matrix:nth-of-type(1) .word") == [*first.source_tokens, *first.target_tokens]
    browser.run("document.querySelector('.forming input').focus()")
    for key, place in ((None, 2), (LEFT, 1), (HOME, 0), (LEFT, 0), (END, 2)):
        if key is not None:
            browser.press(key)
        expected = [[round(each, 3) for each in pair[place].weights_TS.ravel().tolist()] for pair in shown.pairs]
        cells = f"[...e.querySelectorAll('tbody td')].map((e) => {WEIGHT})"
        assert values(browser, ".forming .matrix", cells) == expected
        told = [*browser.texts(".forming output"), browser.run("return document.activeElement.ariaValueText")]
        assert told == [f"update {shown.updates[place]}"] * 2


@pytest.mark.parametrize("width", [360, 1400])
def test_nothing_scrolls_sideways(browser: Browser, tmp_path: Path, width: int) -> None:
    show(browser, tmp_path, run("one"), run("a-very-long-name-of-a-run-" * 4, seed=1), width=width)
    assert values(browser, "html", "e.scrollWidth - e.clientWidth") == [0]
    far = "!e.closest('.table, .matrix, svg') && e.getBoundingClientRect().right > innerWidth + 1"
    assert [html for html, is_far in values(browser, "main *", f"[e.outerHTML.slice(0, 80), {far}]") if is_far] == []


def luminance(colour: str) -> float:
    """The relative luminance of WCAG 2, of a colour as CSS has it."""
    parts = [int(each) / 255 for each in re.findall(r"\d+", colour)] if "(" in colour else to_rgb(colour)
    linear = (part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return sum(share * part for share, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(*colours: str) -> float:
    low, high = sorted(map(luminance, colours))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize(("width", "dark"), [(1000, False), (1000, True), (360, False)])
def test_text_and_lines_stand_out_and_axe_finds_no_fault(
    browser: Browser, tmp_path: Path, width: int, dark: bool
) -> None:
    show(browser, tmp_path, run("one"), run("two", seed=1), width=width, dark=dark)
    runs = [f"run{place}" for place in range(10)]
    names = [*runs, "ink", "faint", "link", "bar", "card", "paper"]
    (found,) = values(browser, "html", f"{names}.map((name) => getComputedStyle(e).getPropertyValue(`--${{name}}`))")
    colours = dict(zip(names, found, strict=True))
    colours["ticks"], *_ = values(browser, ".plot text", "getComputedStyle(e).fill")
    pairs = [("bar", "ink"), ("ticks", "card"), *product(("ink", "faint", "link"), ("card", "paper"))]
    for name, ground in [*pairs, *product(runs, ["card"])]:
        assert contrast(colours[name], colours[ground]) >= (3 if name in runs else 4.5), (name, ground)
    assert faults(browser) == []


def test_everything_that_is_used_has_a_name(browser: Browser, tmp_path: Path) -> None:
    show(browser, tmp_path, run("one"), run("two", seed=1))
    assert nameless(browser) == []
    links = values(browser, ".contents a", "document.querySelector(e.hash) !== null")
    assert links
    assert all(links)
    levels = values(browser, "h1, h2, h3", "Number(e.tagName[1])")
    assert levels[0] == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))

"""The page of alignments in a real browser, with weights and links that are known."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from nmt.alignment.error_rate import Gold, score, score_pair
from nmt.alignment.formats import Alignment
from nmt.extras.pages.viewer import open_page
from nmt.extras.trust.confidence import Confidence, SourceWord, TargetWord
from nmt.workflows.align import Header
from tests.extras.pages.samples import aligned, nameless, values
from tests.extras.service.accessibility import faults
from tests.extras.service.browser import DOWN, ENTER, ESCAPE, HOME, LEFT, RIGHT, TAB, Browser

SOURCES = ["ein <script>document.title='taken'</script> </script> <b>Hund</b>", "הכלב ישן", "", "eins zwei drei"]
TARGETS = ["a <!--<script> &amp; dog", "the dog sleeps", "x", "ONE two three"]


def alignment(source: Sequence[str], target: Sequence[str], seed: int) -> Alignment:
    """Creates an alignment whose weights are whole steps of the file's precision."""
    steps = np.random.default_rng(seed).integers(0, 256, (len(target), len(source)))
    links = tuple((s, t) for s in range(len(source)) for t in range(len(target)) if (s + 2 * t + seed) % 3 == 0)
    return aligned(source, target, links, steps / 255)


def pairs(views: int = 1, more: int = 0) -> list[list[Alignment]]:
    texts = [*zip(SOURCES, TARGETS, strict=True), *((f"wort{n} und", f"word{n} and") for n in range(more))]
    return [
        [alignment(source.split(), target.split(), 10 * number + view) for view in range(views)]
        for number, (source, target) in enumerate(texts)
    ]


def show(browser: Browser, folder: Path, shown: list[list[Alignment]], gold: Sequence[Gold] | None = None) -> Path:
    path = folder / "pairs.html"
    header = Header([f"view {place}" for place in range(len(shown[0]))], facts=["<b>de</b>"], gold=gold)
    with open_page(path, header) as write:
        for each in shown:
            write(each)
    browser.open(path.as_uri())
    return path


def choose(browser: Browser, id_: str, value: object) -> None:
    """Sets a control as a person would."""
    values(browser, f"#{id_}", f"e.value = {value!r}")
    for kind in ("input", "change"):
        values(browser, f"#{id_}", f"e.dispatchEvent(new Event('{kind}'))")


def layout(browser: Browser, name: str) -> None:
    values(browser, f"[name=layout][value={name}]", "e.click()")


def word(pair: int, side: int, place: int) -> str:
    return f".pair:nth-of-type({pair}) .word[data-side='{side}'][data-place='{place}']"


def lit(browser: Browser, pair: int, side: int) -> list[float | None]:
    """Returns the weights by which the words of a side are highlighted."""
    words = f".pair:nth-of-type({pair}) .word[data-side='{side}']"
    found = values(browser, words, "[Number(e.dataset.place), e.style.getPropertyValue('--weight')]")
    return [float(weight) if weight else None for _, weight in sorted(found)]


STATUS = "return document.getElementById('status').textContent"


def numbers(browser: Browser) -> list[int]:
    return list(map(int, browser.texts(".pair h2")))


def drawn(browser: Browser, pair: int, sources: int) -> dict[tuple[int, int], str]:
    """The links of a pair, each with what it is."""
    ties = values(browser, f".pair:nth-of-type({pair}) .links .tie", "[Number(e.dataset.cell), e.classList[1]]")
    return {(cell % sources, cell // sources): kind for cell, kind in ties}


def enough(alignment: Alignment, least: float) -> set[tuple[int, int]]:
    """The links of at least this weight."""
    return {(int(s), int(t)) for t, s in np.argwhere(alignment.weights_TS >= least)}


def rounded(weights: np.ndarray) -> list[float]:
    return [round(each, 3) for each in weights.tolist()]


@pytest.fixture
def shown(browser: Browser, tmp_path: Path) -> list[list[Alignment]]:
    """The pairs, on a page."""
    show(browser, tmp_path, made := pairs())
    return made


def test_words_light_up_where_they_look_and_stay_text(browser: Browser, shown: list[list[Alignment]]) -> None:
    weights_TS = shown[0][0].weights_TS
    assert browser.texts(".pair:nth-of-type(1) .word") == [*SOURCES[0].split(), *TARGETS[0].split()]
    assert browser.run("return document.title") == "<b>de</b> – word alignments"
    assert browser.texts("main script, main b, header b") == []

    for side, index, weights in ((1, 1, weights_TS[1]), (1, 3, weights_TS[3]), (0, 2, weights_TS[:, 2])):
        browser.point(word(1, side, index))
        assert lit(browser, 1, 1 - side) == rounded(weights)
        assert lit(browser, 1, side) == [None] * 4
    top = values(browser, word(1, 0, 2), "e.getBoundingClientRect().top")
    best = int(weights_TS[:, 2].argmax())
    told = f"</script>: {TARGETS[0].split()[best]} {round(100 * weights_TS[best, 2])} %"
    assert browser.texts(".told")[0].startswith(told)
    browser.point("h1")
    assert lit(browser, 1, 0) + lit(browser, 1, 1) == [None] * 8
    assert values(browser, word(1, 0, 2), "e.getBoundingClientRect().top") == top  # no word moves away from the pointer

    assert values(browser, ".words", "getComputedStyle(e).direction")[2:4] == ["rtl", "ltr"]


def test_a_click_keeps_a_word_also_in_other_views_and_layouts(browser: Browser, tmp_path: Path) -> None:
    shown = pairs(views=2)
    show(browser, tmp_path, shown)
    browser.click(word(1, 1, 2))
    browser.point(word(1, 1, 0))
    assert lit(browser, 1, 0) == rounded(shown[0][0].weights_TS[2])
    choose(browser, "view", 1)
    assert lit(browser, 1, 0) == rounded(shown[0][1].weights_TS[2])
    assert set(drawn(browser, 1, 4)) == set(shown[0][1].links)
    for name in ("columns", "matrix"):
        layout(browser, name)
        assert lit(browser, 1, 0) == rounded(shown[0][1].weights_TS[2])
    assert browser.texts("[aria-pressed=true]") == ["&amp;"]
    browser.click(word(1, 1, 2))
    browser.point("h1")
    assert lit(browser, 1, 0) == [None] * 4


def test_the_slider_draws_the_own_links_and_then_those_of_enough_weight(
    browser: Browser, shown: list[list[Alignment]]
) -> None:
    for number, (each,) in enumerate(shown, 1):
        assert drawn(browser, number, len(each.source_words)) == dict.fromkeys(each.links, "link")
    assert browser.texts("#least") == ["the alignment's own"]
    for least in (1, 50, 93, 100):
        choose(browser, "threshold", least)
        for number, (each,) in enumerate(shown, 1):
            assert set(drawn(browser, number, len(each.source_words))) == enough(each, least / 100)
        assert values(browser, "#threshold", "e.ariaValueText") == [f"weight at least {least} %"]
    choose(browser, "threshold", 0)
    assert set(drawn(browser, 1, 4)) == set(shown[0][0].links)
    box = "[e.getBoundingClientRect().left, e.getBoundingClientRect().right]"
    middles = [np.mean(values(browser, f".pair:first-child [data-side='{side}']", box), axis=1) for side in (0, 1)]
    left = values(browser, ".links", box)[0][0]
    ends = "[e.getPointAtLength(0).x, e.getPointAtLength(e.getTotalLength()).x]"
    ties = values(browser, ".pair:first-child .tie", f"[Number(e.dataset.cell), {ends}]")
    assert ties
    for cell, places in ties:
        words = [middles[0][cell % 4], middles[1][cell // 4]]
        assert np.abs(np.add(left, places) - words).max() < 1


def test_the_matrix_has_a_row_for_each_target_word(browser: Browser, shown: list[list[Alignment]]) -> None:
    layout(browser, "matrix")
    cells = "[...e.cells].map((cell) => [cell.textContent, cell.className, cell.style.getPropertyValue('--weight')])"
    rows = values(browser, ".pair:nth-of-type(4) tbody tr", cells)
    (each,) = shown[3]
    assert [row[0][0] for row in rows] == TARGETS[3].split()
    for target, row in enumerate(rows):
        for source, (text, kind, weight) in enumerate(row[1:]):
            exact = each.weights_TS[target, source]
            assert (float(text or 0), float(weight)) == (pytest.approx(100 * exact, abs=0.51), round(exact, 3))
            assert kind == ("link" if (source, target) in each.links else "")
    browser.point(word(4, 0, 1))
    assert lit(browser, 4, 1) == rounded(each.weights_TS[:, 1])


def test_signed_weights_are_told_and_coloured_by_their_sign(browser: Browser, tmp_path: Path) -> None:
    weights = 0.031 * np.array([[127, -64], [0, -127], [1, 50]]) / 127
    show(browser, tmp_path, [[aligned("a b", "x y z", ((0, 0),), weights, magnitude="signed")]])
    browser.point(word(1, 0, 1))
    assert browser.texts(".told") == ["b: y -100 %, x -50 %, z 39 %"]
    assert lit(browser, 1, 1) == rounded(np.abs(weights[:, 1]) / 0.031)
    assert "100 % is 0.0310" in browser.texts(".pair header")[0]
    layout(browser, "matrix")
    colour = "getComputedStyle(e).backgroundColor.match(/[\\d.]+/g).map(Number)"
    cells = values(browser, "tbody td", f"[e.textContent, {colour}]")
    assert [text for text, _ in cells] == ["100", "-50", "", "-100", "1", "39"]
    (_, blue), (_, pale), _, (_, red), *_ = cells
    assert blue[2] > 2 * blue[0]
    assert red[0] > 2 * red[2]
    assert pale[0] > pale[2]
    assert not browser.run("return document.getElementById('threshold').checkVisibility()")
    assert faults(browser) == []


def test_gold_tells_right_wrong_and_missed_links_apart(browser: Browser, tmp_path: Path) -> None:
    shown = pairs(more=9)
    gold = []
    for number, (each,) in enumerate(shown):
        kinds_TS = np.random.default_rng(number).integers(0, 3, each.weights_TS.shape)
        gold.append(Gold(*(frozenset((int(s), int(t)) for t, s in np.argwhere(kinds_TS == kind)) for kind in (1, 2))))
    show(browser, tmp_path, shown, gold)
    choose(browser, "size", 50)
    rates = []
    for number, ((each,), links) in enumerate(zip(shown, gold, strict=True), 1):
        expected = dict.fromkeys(links.possible - links.sure, "open") | dict.fromkeys(links.sure, "missed")
        for link in each.links:
            expected[link] = "sure" if link in links.sure else "possible" if link in links.possible else "wrong"
        assert drawn(browser, number, len(each.source_words)) == expected
        rates.append(score_pair(each.links, links).aer)
    told = [each.rpartition(" ")[2] for each in browser.texts(".pair header span")]
    assert told == [f"{100 * rate:.1f}" for rate in rates]
    total = score([each.links for (each,) in shown], gold)
    assert browser.run(STATUS) == f"13 pairs, AER {100 * total.aer:.1f}"
    names = ["right, sure", "right, possible", "wrong", "missed", "possible, not linked"]
    assert browser.texts("#legend span") == names
    assert len(set(values(browser, ".mark", "e.getAttribute('d')"))) == 4  # a shape for each, not a colour alone

    for order, sign in (("worst", -1), ("best", 1)):
        choose(browser, "order", order)
        expected_order = sorted(range(13), key=lambda place: sign * rates[place])
        assert numbers(browser) == [place + 1 for place in expected_order]
    choose(browser, "threshold", 40)
    at_40 = [score_pair(enough(each, 0.4), links).aer for (each,), links in zip(shown, gold, strict=True)]
    assert numbers(browser) == [place + 1 for place in sorted(range(13), key=lambda place: at_40[place])]


def test_filter_pages_and_order(browser: Browser, tmp_path: Path) -> None:
    show(browser, tmp_path, pairs(more=30))
    assert numbers(browser) == list(range(1, 11))
    assert values(browser, "#order option:not([hidden])", "e.value") == ["file", "longest"]
    assert browser.texts("script.pairs") == []  # taken out of the document
    for where, expected in (("next", range(11, 21)), ("last", range(31, 35))):
        browser.click(f"[data-go={where}]")
        assert numbers(browser) == list(expected)
    assert browser.run("return document.querySelector('[data-go=next]').disabled")
    choose(browser, "size", 20)
    assert numbers(browser) == list(range(21, 35))
    assert len(browser.texts(".pager")) == 2
    browser.type("#filter", "One zWEI")
    browser.until(f"{STATUS} === '1 of 34 pairs'")
    assert numbers(browser) == [4]
    assert browser.texts(".word.found") == ["zwei", "ONE"]
    for words, status in (("nothing such", "0 of 34 pairs"), ("", "34 pairs")):
        choose(browser, "filter", words)
        browser.until(f"{STATUS} === '{status}'")
    choose(browser, "order", "longest")
    assert numbers(browser)[:3] == [1, 4, 2]


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_the_least_confident_pairs_come_first_with_their_doubtful_words(
    browser: Browser, tmp_path: Path, dark: bool
) -> None:
    doubtful = Confidence(
        0.2, 1, 1, tuple(TargetWord(word, 0.9, 0.4 if word == "two" else 0.8) for word in ("ONE", "two", "three")),
        tuple(SourceWord(word, 0.1 if word != "eins" else 0.9) for word in ("eins", "zwei", "drei")), ("<b>",),
    )  # fmt: skip
    joined = Confidence(0.7, 1, 1, (TargetWord("word0", 0.9, 0.1), TargetWord("and", 0.9, 0.9)), (), ())
    shown = pairs(more=1)
    shown[3] = [replace(shown[3][0], confidence=doubtful)]
    shown[4] = [replace(shown[4][0], confidence=joined)]
    browser.darken(dark)
    show(browser, tmp_path, shown)
    assert numbers(browser) == [4, 5, 1, 2, 3]
    assert browser.texts(".pair:nth-of-type(1) .confidence > *") == [
        "Check: 20\u00a0% likely right",
        "– <b>",
        "– doubtful words: two 40\u00a0%",
    ]
    for name in ("lines", "columns", "matrix"):
        layout(browser, name)
        assert browser.texts(".word .doubtful") == ["zwei", "drei", "two", "word0"]
        assert browser.texts(".pair:nth-of-type(1) .word") == [*SOURCES[3].split(), *TARGETS[3].split()]
        assert set(values(browser, ".doubtful", "getComputedStyle(e).textDecorationStyle")) == {"wavy"}
        assert faults(browser) == []
    background = "getComputedStyle(e).backgroundColor"
    tinted = values(browser, ".word .doubtful", background)
    browser.point(word(1, 1, 0))
    assert values(browser, ".word .doubtful", background) == ["rgba(0, 0, 0, 0)"] * 2 + tinted[2:]  # weights are seen
    choose(browser, "order", "file")
    assert numbers(browser) == [1, 2, 3, 4, 5]


def test_it_works_without_a_mouse(browser: Browser, shown: list[list[Alignment]]) -> None:
    focused = "return [document.activeElement.dataset.side, document.activeElement.textContent]"
    browser.run("document.querySelectorAll('.pager input')[0].focus()")
    for _ in range(5):
        browser.press(TAB)
        if browser.run("return document.activeElement.classList.contains('word')"):
            break
    assert browser.run(focused) == ["0", "ein"]
    browser.press(RIGHT)
    browser.press(RIGHT)
    assert browser.run(focused) == ["0", "</script>"]
    assert lit(browser, 1, 1) == rounded(shown[0][0].weights_TS[:, 2])
    browser.press(DOWN)
    best = int(shown[0][0].weights_TS[:, 2].argmax())
    assert browser.run(focused) == ["1", TARGETS[0].split()[best]]
    for key in (HOME, ENTER, RIGHT):
        browser.press(key)
    assert lit(browser, 1, 0) == rounded(shown[0][0].weights_TS[0])  # kept
    browser.press(ESCAPE)
    assert lit(browser, 1, 0) == rounded(shown[0][0].weights_TS[1])
    browser.press(TAB)  # one stop for each sentence
    assert browser.run(focused) == ["0", "הכלב"]
    browser.press(LEFT)  # which is on, from right to left
    assert browser.run(focused) == ["0", "ישן"]
    assert nameless(browser) == []


def test_long_sentences_and_narrow_windows(browser: Browser, tmp_path: Path) -> None:
    long = alignment([f"wort{n}" for n in range(70)] + ["w" * 120], [f"word{n}" for n in range(60)], 0)
    show(browser, tmp_path, [[long]])
    for width in (1200, 400):
        browser.resize(width, 800, mobile=True)
        for name in ("lines", "columns", "matrix"):
            layout(browser, name)
            assert browser.run("return document.documentElement.scrollWidth") <= width
        layout(browser, "lines")
        rows = values(browser, ".words", "e.className")
        assert len(rows) > 4
        assert rows == ["words source", "words target"] * (len(rows) // 2)  # by turns
        assert values(browser, ".source .word", "Number(e.dataset.place)") == list(range(71))


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("chosen", ["lines", "matrix"])
def test_axe_finds_no_fault(browser: Browser, tmp_path: Path, chosen: str, dark: bool) -> None:
    browser.darken(dark)
    gold = [Gold(frozenset(), frozenset())] * len(SOURCES)
    show(browser, tmp_path, pairs(views=2), gold)
    layout(browser, chosen)
    assert faults(browser) == []


def test_ten_thousand_pairs_are_there_in_a_moment(browser: Browser, tmp_path: Path) -> None:
    each = alignment([f"wort{n}" for n in range(12)], [f"word{n}" for n in range(12)], 0)
    path = show(browser, tmp_path, [[each]] * 10_000)
    assert path.stat().st_size < 10_000 * 1000
    began = time.monotonic()
    browser.open(path.as_uri())
    browser.until(f"{STATUS} === '10,000 pairs'")
    assert time.monotonic() - began < 10  # a tenth of that where the machine does nothing else
    assert browser.run("return document.getElementsByTagName('*').length") < 2000

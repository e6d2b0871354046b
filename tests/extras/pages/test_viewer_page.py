"""The page of alignments in a real browser, with weights and links that are known."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

from nmt.alignment.error_rate import Gold, score, score_pair
from nmt.alignment.formats import Alignment
from nmt.extras.pages.viewer import open_page
from nmt.workflows.align import Header
from tests.extras.service.accessibility import faults
from tests.extras.service.browser import CHROMEDRIVER, CHROMIUM, ENTER, TAB, Browser, browsing

pytestmark = pytest.mark.skipif(
    CHROMIUM is None or CHROMEDRIVER is None, reason="no Chromium here (Debian: apt install chromium chromium-driver)"
)

UP, DOWN, LEFT, RIGHT, HOME, ESCAPE = "\ue013", "\ue015", "\ue012", "\ue014", "\ue011", "\ue00c"

SOURCES = ["ein <script>document.title='taken'</script> </script> <b>Hund</b>", "הכלב ישן", "", "eins zwei drei"]
TARGETS = ["a <!--<script> &amp; dog", "the dog sleeps", "x", "ONE two three"]


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browsing(tmp_path_factory.mktemp("browser")) as opened:
        yield opened


@pytest.fixture(autouse=True)
def _without_complaints(browser: Browser) -> Iterator[None]:
    browser.emulate("Emulation.setDeviceMetricsOverride", width=1000, height=900, deviceScaleFactor=1, mobile=False)
    browser.complaints()
    yield
    assert browser.complaints() == []


def alignment(source: Sequence[str], target: Sequence[str], seed: int) -> Alignment:
    """Creates an alignment whose weights are whole steps of the file's precision."""
    steps = np.random.default_rng(seed).integers(0, 256, (len(target), len(source)))
    links = tuple((s, t) for s in range(len(source)) for t in range(len(target)) if (s + 2 * t + seed) % 3 == 0)
    return Alignment(tuple(source), tuple(target), links, steps / 255)


def pairs(views: int = 1, more: int = 0) -> list[list[Alignment]]:
    texts = [*zip(SOURCES, TARGETS, strict=True), *((f"wort{n} und", f"word{n} and") for n in range(more))]
    return [
        [alignment(source.split(), target.split(), 10 * number + view) for view in range(views)]
        for number, (source, target) in enumerate(texts)
    ]


def show(browser: Browser, folder: Path, shown: list[list[Alignment]], gold: Sequence[Gold] | None = None) -> None:
    path = folder / "pairs.html"
    header = Header([f"view {place}" for place in range(len(shown[0]))], facts=["<b>de</b>"], gold=gold)
    with open_page(path, header) as write:
        for each in shown:
            write(each)
    browser.open(path.as_uri())


def choose(browser: Browser, id_: str, value: object) -> None:
    """Sets a control as a person would."""
    browser.run(
        "const [id, value] = arguments; const control = document.getElementById(id); control.value = value;"
        "for (const kind of ['input', 'change']) control.dispatchEvent(new Event(kind))",
        id_,
        value,
    )


def layout(browser: Browser, name: str) -> None:
    browser.run("document.querySelector(`[name=layout][value=${arguments[0]}]`).click()", name)


def word(pair: int, side: int, place: int) -> str:
    return f".pair:nth-of-type({pair}) .word[data-side='{side}'][data-place='{place}']"


def lit(browser: Browser, pair: int, side: int) -> list[float | None]:
    """Returns the weights by which the words of a side are highlighted."""
    script = """
    const article = document.querySelectorAll(".pair")[arguments[0] - 1];
    const words = [...article.querySelectorAll(`.word[data-side="${arguments[1]}"]`)];
    return words.sort((one, other) => one.dataset.place - other.dataset.place)
      .map((each) => each.style.getPropertyValue("--weight") || null)
      .map((each) => each && Number(each));
    """
    found: list[float | None] = browser.run(script, pair, side)
    return found


DRAWN = """
const article = document.querySelectorAll(".pair")[arguments[0] - 1];
return [...article.querySelectorAll(".links .tie")].map((each) => [Number(each.dataset.cell), each.classList[1]])
  .sort(([one], [other]) => one - other);
"""

TEXTS = "return [...document.querySelectorAll('.pair h2')].map((each) => Number(each.textContent))"
STATUS = "return document.getElementById('status').textContent"


def drawn(browser: Browser, pair: int, sources: int) -> dict[tuple[int, int], str]:
    """The links of a pair, each with what it is."""
    return {(cell % sources, cell // sources): kind for cell, kind in browser.run(DRAWN, pair)}


def rounded(weights: np.ndarray) -> list[float]:
    return [round(each, 3) for each in weights.tolist()]


def test_words_light_up_where_they_look_and_stay_text(browser: Browser, tmp_path: Path) -> None:
    shown = pairs()
    show(browser, tmp_path, shown)
    weights_TS = shown[0][0].weights_TS
    texts = "return [...document.querySelectorAll(arguments[0])].map((each) => each.textContent)"
    assert browser.run(texts, ".pair:nth-of-type(1) .source .word") == SOURCES[0].split()
    assert browser.run(texts, ".pair:nth-of-type(1) .target .word") == TARGETS[0].split()
    assert browser.run("return document.title") == "<b>de</b> – word alignments"
    assert browser.run("return document.querySelectorAll('main script, main b, header b').length") == 0

    for target in (1, 3):
        browser.point(word(1, 1, target))
        assert lit(browser, 1, 0) == rounded(weights_TS[target])
        assert lit(browser, 1, 1) == [None] * 4
    browser.point(word(1, 0, 2))
    assert lit(browser, 1, 1) == rounded(weights_TS[:, 2])
    assert lit(browser, 1, 0) == [None] * 4
    place = "return document.querySelector(arguments[0]).getBoundingClientRect().top"
    top = browser.run(place, word(1, 0, 2))
    best = int(weights_TS[:, 2].argmax())
    told = browser.run("return document.querySelector('.told').textContent")
    assert told.startswith(f"</script>: {TARGETS[0].split()[best]} {round(100 * weights_TS[best, 2])} %")
    browser.point("h1")
    assert lit(browser, 1, 0) + lit(browser, 1, 1) == [None] * 8
    assert browser.run(place, word(1, 0, 2)) == top  # no word moves away from the pointer

    directions = "return [...document.querySelectorAll('.words')].map((each) => getComputedStyle(each).direction)"
    assert browser.run(directions)[2:4] == ["rtl", "ltr"]


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
    assert browser.run("return document.querySelector('[aria-pressed=true]').textContent") == "&amp;"
    browser.click(word(1, 1, 2))
    browser.point("h1")
    assert lit(browser, 1, 0) == [None] * 4


def test_the_slider_draws_the_own_links_and_then_those_of_enough_weight(browser: Browser, tmp_path: Path) -> None:
    shown = pairs()
    show(browser, tmp_path, shown)
    for number, (each,) in enumerate(shown, 1):
        assert drawn(browser, number, len(each.source_words)) == dict.fromkeys(each.links, "link")
    assert browser.run("return document.getElementById('least').textContent") == "the alignment's own"
    for least in (1, 50, 93, 100):
        choose(browser, "threshold", least)
        for number, (each,) in enumerate(shown, 1):
            enough = {(int(s), int(t)) for t, s in np.argwhere(each.weights_TS >= least / 100)}
            assert set(drawn(browser, number, len(each.source_words))) == enough
        told = browser.run("return document.getElementById('threshold').getAttribute('aria-valuetext')")
        assert told == f"weight at least {least} %"
    choose(browser, "threshold", 0)
    assert set(drawn(browser, 1, 4)) == set(shown[0][0].links)
    ends = browser.run(
        """
        const middle = (box) => (box.left + box.right) / 2;
        const words = [0, 1].map((side) => [...document.querySelectorAll(`.pair:first-child [data-side="${side}"]`)]);
        const frame = document.querySelector(".links").getBoundingClientRect();
        return [...document.querySelectorAll(".pair:first-child .tie")].map((tie) => {
          const [from, to] = [tie.getPointAtLength(0), tie.getPointAtLength(tie.getTotalLength())];
          const [source, target] = [tie.dataset.cell % 4, Math.floor(tie.dataset.cell / 4)];
          return [from.x + frame.left - middle(words[0][source].getBoundingClientRect()),
            to.x + frame.left - middle(words[1][target].getBoundingClientRect())];
        });
        """
    )
    assert ends
    assert np.abs(ends).max() < 1


def test_the_matrix_has_a_row_for_each_target_word(browser: Browser, tmp_path: Path) -> None:
    shown = pairs()
    show(browser, tmp_path, shown)
    layout(browser, "matrix")
    rows = browser.run(
        "return [...document.querySelector('.pair:nth-of-type(4) tbody').rows].map((row) => [...row.cells].map("
        "(cell) => [cell.textContent, cell.className, Number(cell.style.getPropertyValue('--weight'))]))"
    )
    (each,) = shown[3]
    assert [row[0][0] for row in rows] == TARGETS[3].split()
    for target, row in enumerate(rows):
        for source, (text, kind, weight) in enumerate(row[1:]):
            exact = each.weights_TS[target, source]
            assert (float(text or 0), weight) == (pytest.approx(100 * exact, abs=0.51), round(exact, 3))
            assert kind == ("link" if (source, target) in each.links else "")
    browser.point(word(4, 0, 1))
    assert lit(browser, 4, 1) == rounded(each.weights_TS[:, 1])


def test_signed_weights_are_told_and_coloured_by_their_sign(browser: Browser, tmp_path: Path) -> None:
    weights = 0.031 * np.array([[127, -64], [0, -127], [1, 50]]) / 127
    with open_page(tmp_path / "signed.html", Header(["x"])) as write:
        write([Alignment(("a", "b"), ("x", "y", "z"), ((0, 0),), weights, magnitude="signed")])
    browser.open((tmp_path / "signed.html").as_uri())
    browser.point(word(1, 0, 1))
    assert browser.run("return document.querySelector('.told').textContent") == "b: y -100 %, x -50 %, z 39 %"
    assert lit(browser, 1, 1) == rounded(np.abs(weights[:, 1]) / 0.031)
    assert "100 % is 0.0310" in browser.run("return document.querySelector('.pair header').textContent")
    layout(browser, "matrix")
    cells = browser.run(
        "return [...document.querySelectorAll('tbody td')].map((cell) => [cell.textContent, "
        "getComputedStyle(cell).backgroundColor.match(/[\\d.]+/g).map(Number)])"
    )
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
        cells = [(s, t) for s in range(len(each.source_words)) for t in range(len(each.target_words))]
        draw = np.random.default_rng(number).integers(0, 3, len(cells)).tolist()
        sure, possible = (
            frozenset(c for c, kind in zip(cells, draw, strict=True) if kind == wanted) for wanted in (1, 2)
        )
        gold.append(Gold(sure, possible))
    show(browser, tmp_path, shown, gold)
    choose(browser, "size", 50)
    rates = []
    for number, ((each,), links) in enumerate(zip(shown, gold, strict=True), 1):
        expected = dict.fromkeys(links.possible - links.sure, "open") | dict.fromkeys(links.sure, "missed")
        for link in each.links:
            expected[link] = "sure" if link in links.sure else "possible" if link in links.possible else "wrong"
        assert drawn(browser, number, len(each.source_words)) == expected
        rates.append(score_pair(each.links, links).aer)
    facts = browser.run("return [...document.querySelectorAll('.pair header span')].map((each) => each.textContent)")
    assert [each.rpartition(" ")[2] for each in facts] == [f"{100 * rate:.1f}" for rate in rates]
    total = score([each.links for (each,) in shown], gold)
    assert browser.run(STATUS) == f"13 pairs, AER {100 * total.aer:.1f}"
    legend = browser.run("return [...document.querySelectorAll('#legend span')].map((each) => each.textContent)")
    assert legend == ["right, sure", "right, possible", "wrong", "missed", "possible, not linked"]
    marks = "return [...new Set([...document.querySelectorAll('.mark')].map((each) => each.getAttribute('d')))].length"
    assert browser.run(marks) == 4  # a shape for each, not a colour alone

    for order, sign in (("worst", -1), ("best", 1)):
        choose(browser, "order", order)
        expected_order = sorted(range(13), key=lambda place: sign * rates[place])
        assert browser.run(TEXTS) == [place + 1 for place in expected_order]
    choose(browser, "threshold", 40)
    at_40 = [
        score_pair({(int(s), int(t)) for t, s in np.argwhere(each.weights_TS >= 0.4)}, links).aer
        for (each,), links in zip(shown, gold, strict=True)
    ]
    assert browser.run(TEXTS) == [place + 1 for place in sorted(range(13), key=lambda place: at_40[place])]


def test_filter_pages_and_order(browser: Browser, tmp_path: Path) -> None:
    show(browser, tmp_path, pairs(more=30))
    assert browser.run(TEXTS) == list(range(1, 11))
    assert browser.run("return document.querySelectorAll('script.pairs').length") == 0  # taken out of the document
    browser.run("document.querySelector('[data-go=next]').click()")
    assert browser.run(TEXTS) == list(range(11, 21))
    browser.run("document.querySelector('[data-go=last]').click()")
    assert browser.run(TEXTS) == [31, 32, 33, 34]
    assert browser.run("return document.querySelector('[data-go=next]').disabled")
    choose(browser, "size", 20)
    assert browser.run(TEXTS) == list(range(21, 35))
    pages = browser.run("return [...document.querySelectorAll('.pager')].map((each) => each.textContent.trim())")
    assert len(pages) == 2
    browser.type("#filter", "One zWEI")
    browser.until(f"{STATUS} === '1 of 34 pairs'")
    assert browser.run(TEXTS) == [4]
    found = "return [...document.querySelectorAll('.word.found')].map((each) => each.textContent)"
    assert browser.run(found) == ["zwei", "ONE"]
    choose(browser, "filter", "nothing such")
    browser.until(f"{STATUS} === '0 of 34 pairs'")
    choose(browser, "filter", "")
    browser.until(f"{STATUS} === '34 pairs'")
    choose(browser, "order", "longest")
    assert browser.run(TEXTS)[:3] == [1, 4, 2]


def test_it_works_without_a_mouse(browser: Browser, tmp_path: Path) -> None:
    shown = pairs()
    show(browser, tmp_path, shown)
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
    browser.press(HOME)
    browser.press(ENTER)
    browser.press(RIGHT)
    assert lit(browser, 1, 0) == rounded(shown[0][0].weights_TS[0])  # kept
    browser.press(ESCAPE)
    assert lit(browser, 1, 0) == rounded(shown[0][0].weights_TS[1])
    browser.press(TAB)  # one stop for each sentence
    assert browser.run(focused) == ["0", "הכלב"]
    browser.press(LEFT)  # which is on, from right to left
    assert browser.run(focused) == ["0", "ישן"]
    names = browser.run(
        "return [...document.querySelectorAll('button, input, select, [role=group], article, nav, table')]"
        ".filter((each) => !(each.ariaLabel || each.labels?.length || each.textContent.trim()))"
        ".map((each) => each.outerHTML)"
    )
    assert names == []


def test_long_sentences_and_narrow_windows(browser: Browser, tmp_path: Path) -> None:
    long = alignment([f"wort{n}" for n in range(70)] + ["w" * 120], [f"word{n}" for n in range(60)], 0)
    show(browser, tmp_path, [[long]])
    for width in (1200, 400):
        browser.emulate("Emulation.setDeviceMetricsOverride", width=width, height=800, deviceScaleFactor=1, mobile=True)
        for name in ("lines", "columns", "matrix"):
            layout(browser, name)
            assert browser.run("return document.documentElement.scrollWidth") <= width
        layout(browser, "lines")
        rows = browser.run("return [...document.querySelectorAll('.words')].map((each) => each.className)")
        assert len(rows) > 4
        assert rows == ["words source", "words target"] * (len(rows) // 2)  # by turns
        order = "return [...document.querySelectorAll('.source .word')].map((each) => Number(each.dataset.place))"
        assert browser.run(order) == list(range(71))


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("chosen", ["lines", "matrix"])
def test_axe_finds_no_fault(browser: Browser, tmp_path: Path, chosen: str, dark: bool) -> None:
    scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    browser.emulate("Emulation.setEmulatedMedia", features=[scheme])
    gold = [Gold(frozenset(), frozenset())] * len(SOURCES)
    show(browser, tmp_path, pairs(views=2), gold)
    layout(browser, chosen)
    assert faults(browser) == []


def test_ten_thousand_pairs_are_there_in_a_moment(browser: Browser, tmp_path: Path) -> None:
    each = alignment([f"wort{n}" for n in range(12)], [f"word{n}" for n in range(12)], 0)
    path = tmp_path / "many.html"
    with open_page(path, Header(["attention"])) as write:
        for _ in range(10_000):
            write([each])
    assert path.stat().st_size < 10_000 * 1000
    began = time.monotonic()
    browser.open(path.as_uri())
    browser.until(f"{STATUS} === '10,000 pairs'")
    assert time.monotonic() - began < 10  # a tenth of that where the machine does nothing else
    assert browser.run("return document.getElementsByTagName('*').length") < 2000

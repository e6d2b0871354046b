"""The pages in a real browser, around a translator whose weights are known."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import httpx
import pytest

from nmt.extras.service.batcher import Answer, Batching, RequestOptions
from nmt.extras.service.messages import Limits
from tests.extras.service.accessibility import faults
from tests.extras.service.browser import CONTROL, ENTER, TAB, Browser
from tests.extras.service.fakes import Gated, serving


class Looking(Gated):
    """Says each word backwards, in the opposite order, and looked at words by known weights."""

    def answer(self, texts: Sequence[str], options: RequestOptions, on_step: Callable[[], object]) -> list[Answer]:
        ranks = range(2, (options.n_best or 1) + 1)
        return [
            Answer(
                {**each.tree, "translations": [translation(text, options)] + [{"text": f"{rank}"} for rank in ranks]},
                each.tokens,
                each.warning,
            )
            for text, each in zip(texts, super().answer(texts, options, on_step), strict=True)
        ]


def translation(text: str, options: RequestOptions) -> dict[str, object]:
    source = text.split()
    target = [word[::-1] for word in reversed(source)]
    count = len(source)
    weights = [[(1 + (3 * t + s) % (count + 1)) / 10 for s in range(count)] for t in range(count)]
    links = [[s, count - 1 - s] for s in range(count)]
    alignment = {
        "source_words": source, "target_words": target, "links": links, "level": "word", "source_tokens": source,
        "target_tokens": target, "weights": weights,
    }  # fmt: skip
    plain = {"text": " ".join(target), "score": -0.5, "log_prob": -1.0, "tokens": target}
    return {**plain, "alignment": alignment} if options.alignment else plain


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with serving(Looking()) as (found, _):
        yield found


TEXT = "ein <script>document.title='taken'</script> <b>Hund</b> läuft"

LIT = """
const side = document.querySelector(".matrix").querySelector(["thead", "tbody"][arguments[0]]);
return [...side.querySelectorAll(".word")].map((word) => word.style.getPropertyValue("--weight"))
  .map((weight) => weight && Number(weight));
"""
TRANSLATION = "return document.getElementById('translation').textContent"
STATUS = "return document.getElementById('status').textContent"
EXPLANATION = "return document.querySelector('.explanation').textContent"


def word(side: int, place: int) -> str:
    row = ("thead th", "tbody tr")[side]
    return f".matrix {row}:nth-of-type({place + 1}) .word"


def test_the_page_translates_and_shows_where_the_model_looked(browser: Browser, tmp_path: Path, address: str) -> None:
    browser.open(address)
    browser.until("return document.getElementById('model').textContent === 'fake/best'")
    browser.type("#source", TEXT)  # and wait: no key is pressed
    browser.until(f"{TRANSLATION} === arguments[0]", " ".join(each[::-1] for each in reversed(TEXT.split())))

    answer = httpx.post(f"{address}/translate", json={"text": TEXT, "alignment": True}, trust_env=False).json()
    (found,) = answer["results"][0]["translations"]
    weights = found["alignment"]["weights"]
    browser.point(word(1, 1))
    assert (browser.run(LIT, 0), browser.run(LIT, 1)) == (weights[1], [""] * 4)
    browser.point(word(0, 2))
    assert (browser.run(LIT, 0), browser.run(LIT, 1)) == ([""] * 4, [row[2] for row in weights])
    browser.point("h1")
    assert browser.run(LIT, 0) + browser.run(LIT, 1) == [""] * 8
    color = "return getComputedStyle(document.querySelector(arguments[0])).backgroundColor"
    dark = browser.run(color, word(0, 1))
    browser.run("document.querySelector(arguments[0]).focus()", word(0, 3))
    browser.press(TAB)  # on to the first word of the translation
    assert browser.run(LIT, 0) == weights[0]
    assert browser.run(color, word(0, 1)) != dark
    strongest = max(zip(weights[0], TEXT.split(), strict=True))
    told = "läuft"[::-1] + f" looked at {strongest[1]} {round(100 * strongest[0])} %"
    assert browser.run(EXPLANATION).startswith(told)

    cells = browser.run(
        "return [...document.querySelectorAll('.matrix tbody td')].map((cell) => "
        "[Number(cell.style.getPropertyValue('--weight')), cell.classList.contains('link'), cell.textContent])"
    )
    links = found["alignment"]["links"]
    assert cells == [[w, [s, t] in links, f"{100 * w:.0f}"] for t, row in enumerate(weights) for s, w in enumerate(row)]
    browser.point(".matrix tbody tr:nth-of-type(2) td:nth-of-type(3)")
    said = f"{TEXT.split()[2]} – {TEXT.split()[-2][::-1]}: {100 * weights[1][2]:.1f} %"
    assert browser.run(EXPLANATION) == said

    browser.click("#more")
    browser.until("return [...document.querySelectorAll('#others li')].map((e) => e.textContent).join() === '2,3,4,5'")
    assert browser.run("return document.getElementById('more').hidden")
    browser.click("#copy")
    browser.until("return document.getElementById('copy').textContent === 'Copied'")

    assert browser.run("return document.title") == "nmt"  # what was typed has stayed text
    assert browser.texts("main script, main b") == []
    loaded = browser.run("return performance.getEntriesByType('resource').map((each) => each.name)")
    assert loaded
    assert all(name.startswith(f"{address}/") for name in loaded)
    assert browser.complaints() == []
    browser.screenshot(tmp_path / "page.png")
    assert (tmp_path / "page.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"


def test_the_page_names_the_languages_and_has_an_example(browser: Browser, address: str) -> None:
    shown = "return !document.getElementById('example').hidden"
    browser.open(address)
    browser.until(shown)
    assert browser.texts("label[for=source], #answer") == ["German", "English"]
    browser.click("#example")
    browser.until(f"{TRANSLATION}.includes('dnuH')")
    assert not browser.run("return document.getElementById('key').getClientRects().length > 0")  # none is needed
    unknown = Looking()
    unknown.languages = ("left side", "xx")
    with serving(unknown) as (other, _):
        browser.open(other)
        browser.until("return document.getElementById('answer').textContent == 'xx'")
        assert browser.texts("label[for=source], #answer") == ["left side", "xx"]
        assert not browser.run(shown)
        assert browser.complaints() == []


def test_the_page_offers_the_target_languages_of_a_model_of_several(browser: Browser) -> None:
    several = Looking()
    several.languages, several.targets, several.context = None, ("en", "de"), 1
    with serving(several) as (address, _):
        browser.open(address)
        browser.until("return !document.getElementById('targets').hidden")
        assert browser.texts("#targets option") == ["English", "German"]
        browser.type("#source", TEXT)
        browser.until(f"{TRANSLATION} != ''")
        options, _ = several.batches[-1]
        assert (options.to, options.context) == ("en", True)


class Doubting(Gated):
    """Knows how sure it is of a text in capitals: less of longer words."""

    def answer(self, texts: Sequence[str], options: RequestOptions, on_step: Callable[[], object]) -> list[Answer]:
        answers = super().answer(texts, options, on_step)
        for text, answer in zip(texts, answers, strict=True):
            answer.tree["translations"][0]["confidence"] = confidence(text)
        return answers


def confidence(text: str) -> dict[str, object] | None:
    if text == "1234":
        return None
    words = [(word, max(0.1, 1 - len(word) / 10)) for word in re.findall(r"\w+|[^\w\s]", text)]
    longest = max(words, key=lambda each: len(each[0]))[0]
    return {
        "right": words[0][1], "complete": 0.8, "supported": 0.8, "rejected": False,
        "reasons": ["source word 1 is not translated: <i>"] if "<i>" in text else [],
        "words": [[word.upper(), p, 0.9] for word, p in words],
        "source_words": [[word, 0.2 if word == longest and "?" in text else 0.9] for word, _ in words],
    }  # fmt: skip


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_doubtful_words_are_marked_and_reasons_are_given(browser: Browser, dark: bool) -> None:
    lines = ["ein Hund", "Schreibtisch an Fenstern <i> Schreibtisch?", "1234"]
    with serving(Doubting()) as (address, _):
        browser.darken(dark)
        browser.open(address)
        browser.run("document.getElementById('source').value = arguments[0]", "\n".join(lines))
        browser.type("#source", CONTROL + ENTER)
        browser.until(f"{TRANSLATION}.includes('1234')")
        assert browser.texts("#translation > p") == [line.upper() for line in lines]
        assert browser.texts("#translation > p .doubtful") == ["SCHREIBTISCH", "FENSTERN", "SCHREIBTISCH"]
        shown = "return [...document.querySelectorAll('.doubtful')].map((e) => [e.title, getComputedStyle(e)])"
        titles = browser.run(f"{shown}.map(([title, style]) => [title, style.textDecorationStyle])")
        assert titles == [[f"doubtful: {p}\u00a0%", "wavy"] for p in (10, 20, 10, 20, 20)]
        assert browser.texts(".confidence strong, .confidence p:not([hidden])") == [
            "70\u00a0% likely right",
            "Check: 10\u00a0% likely right",
            "– source word 1 is not translated: <i>",
            "– doubtful words: SCHREIBTISCH 10\u00a0%, FENSTERN 20\u00a0%, SCHREIBTISCH 10\u00a0%",
            f"Source: {lines[1]}",
        ]
        assert browser.texts(".confidence .doubtful") == ["Schreibtisch", "Schreibtisch"]
        assert faults(browser) == []
        browser.run("navigator.clipboard.writeText = async (text) => { document.title = text; }")
        browser.click("#copy")
        browser.until("return document.title === arguments[0]", " ".join(lines).upper())
        assert browser.complaints() == []


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_axe_finds_no_fault(browser: Browser, address: str, dark: bool) -> None:
    browser.darken(dark)
    browser.open(address)
    assert faults(browser) == []
    browser.type("#source", TEXT)
    browser.until("return document.querySelectorAll('.matrix tbody tr').length > 0")
    assert faults(browser) == []


def test_axe_would_find_faults(browser: Browser, address: str) -> None:
    browser.open(address)
    browser.run(
        "Object.assign(document.querySelector('h1').style, {color: '#999', background: '#777'});"
        "document.querySelector('main').append(document.createElement('input'))"
    )
    assert {each.partition(":")[0] for each in faults(browser)} == {"color-contrast", "label"}


def test_the_page_fits_a_narrow_window(browser: Browser, address: str) -> None:
    browser.resize(400, 800, mobile=True)
    browser.open(address)
    browser.type("#source", "wort " * 30 + "einsehrlangeswort" * 5)
    browser.until("return document.querySelectorAll('.matrix .word').length == 62")
    assert browser.run("return document.documentElement.scrollWidth") <= 400


def test_lines_are_translated_each_and_in_their_own_direction(browser: Browser, address: str) -> None:
    browser.open(address)
    browser.run("document.getElementById('source').value = arguments[0]", "שלום עולם\n\nein Hund")
    browser.type("#source", CONTROL + ENTER)
    browser.until("return document.querySelectorAll('.sentence').length == 2")
    directions = "return [...document.querySelectorAll('#translation p')].map((e) => getComputedStyle(e).direction)"
    assert browser.run(directions) == ["rtl", "ltr"]


def test_what_goes_wrong_is_said_and_tried_again(browser: Browser) -> None:
    engine = Looking(is_open=False)
    with serving(engine, Batching(queue=1, wait_s=0.0)) as (address, batcher):
        jobs = [batcher.submit(["x"], RequestOptions())]
        assert engine.begun.acquire(timeout=20)
        jobs.append(batcher.submit(["y"], RequestOptions()))
        browser.open(address)
        browser.type("#source", "ein Hund")
        browser.until(f"{STATUS} === 'Busy: the queue is full; try again in 1 s. Trying again in 1 s.'")
        engine.open()
        browser.until(f"{TRANSLATION} === 'dnuH nie'")
        assert browser.run(STATUS) == ""
        assert all(job.future.done() for job in jobs)
        browser.run("document.getElementById('source').value = arguments[0]", "x" * 2001)
        browser.type("#source", CONTROL + ENTER)
        browser.until(f"{STATUS}.startsWith('Not translated: text 1 has 2001 characters')")
        assert browser.run(TRANSLATION) == ""
    browser.type("#source", CONTROL + ENTER)
    browser.until(f"{STATUS} === 'The server does not answer.'")


def test_a_document_is_translated_and_offered(browser: Browser, address: str, tmp_path: Path) -> None:
    document = tmp_path / "Seite.html"
    document.write_text("<p>ein Hund</p>")
    browser.open(address)
    browser.until("return document.getElementById('answer').textContent === 'English'")
    browser.type("#file", str(document))
    browser.until("return document.querySelector('#status a') !== null")
    assert browser.texts("#status") == ["Save the translation of Seite.html"]
    assert faults(browser) == []
    dropped = """
    const list = new DataTransfer();
    list.items.add(new File([arguments[1]], arguments[0]));
    document.querySelector("main").dispatchEvent(new DragEvent("drop", { bubbles: true, dataTransfer: list }));
    """
    link = "return document.querySelector('#status a')"
    browser.run(dropped, "Seite 2.html", "<p>zwei Hunde</p>")
    browser.until(f"{link}?.download == 'Seite 2.html'")
    assert httpx.get(browser.run(f"{link}.href"), trust_env=False).text == "<p>ednuH iewz</p>"
    browser.run(dropped, "a.exe", "a")
    browser.until(f"{STATUS}.startsWith('Not translated: file: its name must end in one of .html')")
    browser.run(dropped, "a.html", "<!--")
    browser.until(f"{STATUS} == 'Not translated: a.html: has a tag or a comment without an end.'")
    assert "422" in "".join(browser.complaints())


def test_the_page_asks_for_a_key_where_one_is_needed(browser: Browser) -> None:
    shown = "return document.getElementById('key').getClientRects().length > 0"
    with serving(Looking(), limits=Limits(key=b"secret")) as (address, _):
        browser.open(address)
        assert not browser.run(shown)
        browser.type("#source", "ein Hund")
        browser.until(shown)
        assert "401" in "".join(browser.complaints())
        assert faults(browser) == []
        browser.type("#key", "wrong" + ENTER)
        browser.until(f"{STATUS}.includes('missing or wrong')")
        assert browser.run(TRANSLATION) == ""
        browser.run("document.getElementById('key').value = ''")
        browser.type("#key", "secret" + ENTER)
        browser.until(f"{TRANSLATION} === 'dnuH nie'")
        assert browser.run("return location.href") == f"{address}/"


def test_the_page_of_the_api_shows_what_openapi_says(browser: Browser, address: str) -> None:
    browser.open(f"{address}/docs")
    browser.until("return document.querySelectorAll('section h2').length > 2")
    assert browser.texts("section h2") == ["POST /translate", "GET /health", "GET /metrics"]
    fields = browser.texts("section code")
    assert {"text", "n_best", "beam", "alignment", "results.translations.alignment.weights"} <= set(fields)
    assert browser.complaints() == []

"""The pages in a real browser, around a translator whose weights are known."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
import uvicorn

from nmt.extras.service.app import create_app
from nmt.extras.service.batcher import Answer, Batcher, Batching, RequestOptions
from nmt.extras.service.listening import bind, url
from nmt.extras.service.messages import Limits
from nmt.extras.service.metrics import ServerMetrics
from tests.extras.service.accessibility import faults
from tests.extras.service.browser import CHROMEDRIVER, CHROMIUM, CONTROL, ENTER, TAB, Browser, browsing
from tests.extras.service.fakes import LIMITS, Gated, batching

pytestmark = pytest.mark.skipif(
    CHROMIUM is None or CHROMEDRIVER is None, reason="no Chromium here (Debian: apt install chromium chromium-driver)"
)


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


@contextmanager
def serving(batcher: Batcher, limits: Limits = LIMITS) -> Iterator[str]:
    """Serves the application over a real socket, and yields its address."""
    with bind("127.0.0.1", 0) as listening:
        config = uvicorn.Config(create_app(batcher, limits, ServerMetrics()), log_config=None, lifespan="off")
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
        thread.start()
        yield url(listening)
        server.should_exit = True
        thread.join(20)


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browsing(tmp_path_factory.mktemp("browser")) as opened:
        yield opened


TEXT = "ein <script>document.title='taken'</script> <b>Hund</b> läuft"

LIT = """
const side = document.querySelector(".matrix").querySelector(["thead", "tbody"][arguments[0]]);
return [...side.querySelectorAll(".word")].map((word) => word.style.getPropertyValue("--weight"));
"""


def word(side: int, place: int) -> str:
    if side == 0:
        return f".matrix thead th:nth-of-type({place + 1}) .word"
    return f".matrix tbody tr:nth-of-type({place + 1}) .word"


def test_the_page_translates_and_shows_where_the_model_looked(browser: Browser, tmp_path: Path) -> None:
    with batching(Looking()) as batcher, serving(batcher) as address:
        browser.open(address)
        browser.until("return document.getElementById('model').textContent === 'fake/best'")
        browser.type("#source", TEXT)  # and wait: no key is pressed
        shown = "return document.getElementById('translation').textContent"
        browser.until(f"{shown} === arguments[0]", " ".join(each[::-1] for each in reversed(TEXT.split())))

        answer = httpx.post(f"{address}/translate", json={"text": TEXT, "alignment": True}, trust_env=False).json()
        (found,) = answer["results"][0]["translations"]
        weights = found["alignment"]["weights"]
        browser.point(word(1, 1))
        assert [float(each) for each in browser.run(LIT, 0)] == weights[1]
        assert browser.run(LIT, 1) == [""] * 4
        browser.point(word(0, 2))
        assert [float(each) for each in browser.run(LIT, 1)] == [row[2] for row in weights]
        assert browser.run(LIT, 0) == [""] * 4
        browser.point("h1")
        assert browser.run(LIT, 0) + browser.run(LIT, 1) == [""] * 8
        color = "return getComputedStyle(document.querySelector(arguments[0])).backgroundColor"
        dark = browser.run(color, word(0, 1))
        browser.run("document.querySelector(arguments[0]).focus()", word(0, 3))
        browser.press(TAB)  # on to the first word of the translation
        assert [float(each) for each in browser.run(LIT, 0)] == weights[0]
        assert browser.run(color, word(0, 1)) != dark
        told = browser.run("return document.querySelector('.explanation').textContent")
        strongest = max(zip(weights[0], TEXT.split(), strict=True))
        assert told.startswith("läuft"[::-1] + f" looked at {strongest[1]} {round(100 * strongest[0])} %")

        cells = browser.run(
            "return [...document.querySelectorAll('.matrix tbody tr')].map((row) => [...row.cells].slice(1)"
            ".map((cell) => [Number(cell.style.getPropertyValue('--weight')), cell.classList.contains('link'), "
            "cell.textContent]))"
        )
        linked = {(target, source) for source, target in found["alignment"]["links"]}
        assert cells == [
            [[w, (t, s) in linked, f"{100 * w:.0f}"] for s, w in enumerate(row)] for t, row in enumerate(weights)
        ]
        browser.point(".matrix tbody tr:nth-of-type(2) td:nth-of-type(3)")
        said = f"{TEXT.split()[2]} – {TEXT.split()[-2][::-1]}: {100 * weights[1][2]:.1f} %"
        assert browser.run("return document.querySelector('.explanation').textContent") == said

        browser.click("#more")
        listed = "[...document.querySelectorAll('#others li')].map((each) => each.textContent).join()"
        browser.until(f"return {listed} === '2,3,4,5'")
        assert browser.run("return document.getElementById('more').hidden")
        browser.click("#copy")
        browser.until("return document.getElementById('copy').textContent === 'Copied'")

        assert browser.run("return document.title") == "nmt"  # what was typed has stayed text
        assert browser.run("return document.querySelectorAll('main script, main b').length") == 0
        loaded = browser.run("return performance.getEntriesByType('resource').map((each) => each.name)")
        assert loaded
        assert all(name.startswith(f"{address}/") for name in loaded)
        assert browser.complaints() == []
        browser.screenshot(tmp_path / "page.png")
        assert (tmp_path / "page.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"


def test_the_page_names_the_languages_and_has_an_example(browser: Browser) -> None:
    labels = "return ['label[for=source]', '#answer'].map((each) => document.querySelector(each).textContent)"
    hidden = "return document.getElementById('example').hidden"
    with batching(Looking()) as batcher, serving(batcher) as address:
        browser.open(address)
        browser.until(f"return !({hidden.removeprefix('return ')})")
        assert browser.run(labels) == ["German", "English"]
        browser.click("#example")
        browser.until("return document.getElementById('translation').textContent.includes('dnuH')")
    unknown = Looking()
    unknown.languages = ("left side", "xx")
    with batching(unknown) as batcher, serving(batcher) as address:
        browser.open(address)
        browser.until("return document.getElementById('answer').textContent == 'xx'")
        assert browser.run(labels) == ["left side", "xx"]
        assert browser.run(hidden)
        assert browser.complaints() == []


def test_the_page_offers_the_target_languages_of_a_model_of_several(browser: Browser) -> None:
    several = Looking()
    several.languages, several.targets, several.context = None, ("en", "de"), 1
    with batching(several) as batcher, serving(batcher) as address:
        browser.open(address)
        browser.until("return !document.getElementById('targets').hidden")
        names = "return [...document.querySelectorAll('#targets option')].map((each) => each.textContent)"
        assert browser.run(names) == ["English", "German"]
        browser.type("#source", TEXT)
        browser.until("return document.getElementById('translation').textContent != ''")
        options, _ = several.batches[-1]
        assert (options.to, options.context) == ("en", True)


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_axe_finds_no_fault(browser: Browser, dark: bool) -> None:
    scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    browser.emulate("Emulation.setEmulatedMedia", features=[scheme])
    with batching(Looking()) as batcher, serving(batcher) as address:
        browser.open(address)
        assert faults(browser) == []
        browser.type("#source", TEXT)
        browser.until("return document.querySelectorAll('.matrix tbody tr').length > 0")
        assert faults(browser) == []


def test_axe_would_find_faults(browser: Browser) -> None:
    with batching(Looking()) as batcher, serving(batcher) as address:
        browser.open(address)
        browser.run(
            "Object.assign(document.querySelector('h1').style, {color: '#999', background: '#777'});"
            "document.querySelector('main').append(document.createElement('input'))"
        )
        assert {each.partition(":")[0] for each in faults(browser)} == {"color-contrast", "label"}


def test_the_page_fits_a_narrow_window(browser: Browser) -> None:
    with batching(Looking()) as batcher, serving(batcher) as address:
        browser.emulate("Emulation.setDeviceMetricsOverride", width=400, height=800, deviceScaleFactor=1, mobile=True)
        browser.open(address)
        browser.type("#source", "wort " * 30 + "einsehrlangeswort" * 5)
        browser.until("return document.querySelectorAll('.matrix .word').length == 62")
        assert browser.run("return document.documentElement.scrollWidth") <= 400
        browser.emulate("Emulation.clearDeviceMetricsOverride")


def test_lines_are_translated_each_and_in_their_own_direction(browser: Browser) -> None:
    with batching(Looking()) as batcher, serving(batcher) as address:
        browser.open(address)
        browser.run("document.getElementById('source').value = arguments[0]", "שלום עולם\n\nein Hund")
        began = time.monotonic()
        browser.type("#source", CONTROL + ENTER)
        browser.until("return document.querySelectorAll('.sentence').length == 2")
        directions = browser.run(
            "return [...document.querySelectorAll('#translation p')].map((each) => getComputedStyle(each).direction)"
        )
        assert directions == ["rtl", "ltr"]
        assert time.monotonic() - began < 10


def test_what_goes_wrong_is_said_and_tried_again(browser: Browser) -> None:
    engine = Looking(is_open=False)
    status = "return document.getElementById('status').textContent"
    with batching(engine, Batching(queue=1, wait_s=0.0)) as batcher, serving(batcher) as address:
        first, second = batcher.submit(["x"], RequestOptions()), None
        assert engine.begun.acquire(timeout=20)
        second = batcher.submit(["y"], RequestOptions())
        browser.open(address)
        browser.type("#source", "ein Hund")
        browser.until(f"{status} === 'Busy: the queue is full; try again in 1 s. Trying again in 1 s.'")
        engine.open()
        browser.until("return document.getElementById('translation').textContent === 'dnuH nie'")
        assert browser.run(status) == ""
        assert first.future.done()
        assert second.future.done()
        browser.run("document.getElementById('source').value = arguments[0]", "x" * 2001)
        browser.type("#source", CONTROL + ENTER)
        browser.until(f"{status}.startsWith('Not translated: text 1 has 2001 characters')")
        assert browser.run("return document.getElementById('translation').textContent") == ""
    browser.type("#source", CONTROL + ENTER)
    browser.until(f"{status} === 'The server does not answer.'")


def test_the_page_asks_for_a_key_where_one_is_needed(browser: Browser) -> None:
    shown = "return document.getElementById('key').getClientRects().length > 0"
    translated = "return document.getElementById('translation').textContent"
    with batching(Looking()) as batcher, serving(batcher, Limits(key=b"secret")) as address:
        browser.complaints()  # of pages before
        browser.open(address)
        assert not browser.run(shown)
        browser.type("#source", "ein Hund")
        browser.until(shown)
        assert "401" in "".join(browser.complaints())
        assert faults(browser) == []
        browser.type("#key", "wrong" + ENTER)
        browser.until("return document.getElementById('status').textContent.includes('missing or wrong')")
        assert browser.run(translated) == ""
        browser.run("document.getElementById('key').value = ''")
        browser.type("#key", "secret" + ENTER)
        browser.until(f"{translated} === 'dnuH nie'")
        assert browser.run("return location.href") == f"{address}/"
    with batching(Looking()) as batcher, serving(batcher) as address:
        browser.open(address)
        browser.type("#source", "ein Hund")
        browser.until(f"{translated} === 'dnuH nie'")
        assert not browser.run(shown)


def test_the_page_of_the_api_shows_what_openapi_says(browser: Browser) -> None:
    with batching(Looking()) as batcher, serving(batcher) as address:
        browser.complaints()  # of pages before
        browser.open(f"{address}/docs")
        heads = "return JSON.stringify([...document.querySelectorAll('section h2')].map((each) => each.textContent))"
        browser.until(f"{heads}.length > 2")
        assert json.loads(browser.run(heads)) == ["POST /translate", "GET /health", "GET /metrics"]
        fields = browser.run("return [...document.querySelectorAll('section code')].map((each) => each.textContent)")
        assert {"text", "n_best", "beam", "alignment", "results.translations.alignment.weights"} <= set(fields)
        assert browser.complaints() == []

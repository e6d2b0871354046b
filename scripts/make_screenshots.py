"""Pictures of the README: the report, the page of alignments and the server's page, for a model of the shipped corpus.

    python scripts/make_screenshots.py [--run runs/de-en] [--output docs/pictures]

Needs Chromium and chromedriver (Debian: apt install chromium chromium-driver). Writes report.png, alignment-page.png
and server.png, with 64 colours.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmark_serve import serving
from PIL import Image

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.extras.service.browser import Browser, browsing  # noqa: E402

SENTENCE = "Morgen wird die Lehrerin den Haustürschlüssel finden."
LINES = (2, 8)
"""First and last line of the test set that are shown on the page of alignments."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", default="runs/de-en", help="trained model")
    parser.add_argument("--output", type=Path, default=ROOT / "docs" / "pictures", help="folder for the pictures")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as name, browsing(Path(name)) as browser:
        folder = Path(name)
        for kind in ("de", "en", "align"):
            lines = (ROOT / "data" / "de-en" / f"test.{kind}").read_text(encoding="utf-8").splitlines(keepends=True)
            (folder / f"x.{kind}").write_text("".join(lines[LINES[0] - 1 : LINES[1]]), encoding="utf-8")
        _nmt("report", options.run, "--samples", "3", "--output", folder / "report.html")
        files = ("--source", folder / "x.de", "--target", folder / "x.en", "--gold", folder / "x.align")
        _nmt("align", options.run, *files, "--format", "html", "--output", folder / "pairs.html")
        browser.open((folder / "report.html").as_uri())
        browser.run("for (const each of document.querySelectorAll('h2'))"
                    "if (each.textContent === 'Training') each.scrollIntoView()")  # fmt: skip
        _picture(browser, options.output / "report.png", 620)
        browser.open((folder / "pairs.html").as_uri())
        browser.until("return document.querySelector('.word')")
        browser.point(".word:nth-of-type(3)")
        _picture(browser, options.output / "alignment-page.png", 620)
        with serving([options.run]) as (port, _):
            _size(browser, 950)  # before the mouse points, or the page scrolls there
            browser.open(f"http://127.0.0.1:{port}")
            browser.type("#source", SENTENCE)
            browser.until("return document.querySelector('.matrix')")
            browser.point(".matrix tbody tr:nth-of-type(5) .word")  # the fifth word of the translation
            _picture(browser, options.output / "server.png", 950)


def _picture(browser: Browser, path: Path, height: int) -> None:
    _size(browser, height)
    browser.screenshot(path)
    with Image.open(path) as picture:
        picture.convert("RGB").quantize(64).save(path, optimize=True)


def _size(browser: Browser, height: int) -> None:
    browser.emulate("Emulation.setDeviceMetricsOverride", width=1000, height=height, deviceScaleFactor=1, mobile=False)


def _nmt(*arguments: object) -> None:
    subprocess.run([sys.executable, "-m", "nmt", *map(str, arguments)], check=True)


if __name__ == "__main__":
    main()

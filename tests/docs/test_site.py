"""The documentation as a site: what is written from the code is what the code has, and no link leads nowhere."""

from __future__ import annotations

import html
import importlib
import re
import shutil
import subprocess
import sys
import threading
from collections import Counter
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote

import pytest
import yaml
from markdown_it import MarkdownIt

from nmt.config.help import keys, sections
from nmt.config.structure import Document, validate
from nmt.experiment import Experiment
from tests.docs.pages import PAGES, ROOT
from tests.docs.test_commands import options_of
from tests.extras.service.accessibility import faults
from tests.extras.service.browser import CHROMEDRIVER, CHROMIUM, browsing

for package in ("material", "latex2mathml"):
    pytest.importorskip(package, reason="pip install --group docs")
docs_site = importlib.import_module("scripts.docs_site")


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with all pages, and the configuration for a builder."""
    folder = tmp_path_factory.mktemp("pages")
    subprocess.run([sys.executable, ROOT / "scripts" / "docs_site.py", folder], cwd=ROOT, check=True)
    return folder


@pytest.fixture(scope="module")
def site(pages: Path) -> Path:
    """Built as `make docs` does, where a link without an end fails."""
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--config-file", str(pages / "mkdocs.yml")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return pages / "site"


def broken(site: Path) -> list[str]:
    """Links of a site to files or anchors that it has not."""
    texts = {page: page.read_text(encoding="utf-8") for page in site.rglob("*.html") if page.name != "404.html"}
    anchors = {page.resolve(): set(re.findall(r"""\bid=["']?([^"' >]+)""", text)) for page, text in texts.items()}
    found = []
    for page, text in texts.items():
        for target, anchor in re.findall(r"""<a\b[^>]*?href=["']?([^"'#>\s]*)#?([^"'>\s]*)""", text):
            path = (page.parent / html.unescape(unquote(target))).resolve() if target else page.resolve()
            path = path / "index.html" if path.is_dir() else path
            if re.match(r"\w+:", target) or anchor.startswith("__"):
                continue
            if not path.is_file() or (anchor and path in anchors and unquote(anchor) not in anchors[path]):
                found.append(f"{page.relative_to(site)}: {target}#{anchor}")
    return sorted(set(found))


def test_no_link_is_broken(site: Path) -> None:
    assert broken(site) == []


def test_no_link_is_broken_by_zensical(pages: Path, site: Path) -> None:
    """Material's authors build their sites with it from now on, from the same files."""
    pytest.importorskip("zensical", reason="pip install zensical")
    shutil.copytree(pages / "docs", pages / "other" / "docs")
    shutil.copyfile(pages / "mkdocs.yml", pages / "other" / "mkdocs.yml")
    command = [sys.executable, "-m", "zensical", "build"]
    done = subprocess.run(command, cwd=pages / "other", capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    built = pages / "other" / "site"
    ours, theirs = ({page.relative_to(at) for page in at.rglob("*.html")} for at in (site, built))
    assert ours <= theirs
    assert broken(built) == []


def text_of(page: Path) -> str:
    """The article of a page as a reader sees it."""
    article = re.search(r"<article.*</article>", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    assert article
    return html.unescape(re.sub(r"<[^>]+>", "", article[0]))


def test_each_command_has_a_page_with_all_its_options(site: Path) -> None:
    of_nmt = {name: options for name, options in options_of().items() if name != "words"}  # of examples/plugin
    for name, options in of_nmt.items():
        text = text_of(site / "commands" / f"{name}.html")
        assert text.split()[:2] == ["nmt", f"{name}¶"]
        for option in options - {"-h", "--metric"}:  # the latter is hidden where no plug-in has a metric
            assert re.search(rf"(?<![\w-]){option}(?![\w-])", text), f"{name} {option}"


def test_each_key_of_the_configuration_is_told_once_for_each_kind(site: Path) -> None:
    pages = "".join(page.read_text(encoding="utf-8") for page in (site / "configuration").glob("*.html"))
    told = re.findall(r"<tr>\s*<td><code>([^<]*)</code></td>", pages)
    known = [key for key in keys(Experiment) if key.rpartition(".")[2] != "kind"]
    rows = Counter(f"{each.place}.{row.name}".removeprefix(".") for each in sections(Experiment) for row in each.rows)
    assert Counter(told) == {key: rows[key] for key in known}


def test_defaults_are_those_that_a_configuration_gets(site: Path) -> None:
    corpus = {"source": "a", "target": "b"}
    # The group is given: left out, it has a default of its own, a patience of 10.
    tree = {"run": "r", "data": {"train": corpus, "valid": corpus}, "training": {"stopping": {"epochs": 1}}}
    given = {f"data.{part}.{side}" for part in ("train", "valid") for side in corpus}
    given |= {"run", "training.stopping.epochs"}
    resolved = validate(Experiment, Document(tree, {(): "test"})).model_dump(mode="json")
    compared = 0
    for section in sections(Experiment):
        here: object = resolved
        for step in filter(None, section.place.split(".")):
            here = here.get(step) if isinstance(here, dict) else None
        if not isinstance(here, dict) or (section.kinds and here.get("kind") not in section.kinds):
            continue
        for row in section.rows:
            key, value = f"{section.place}.{row.name}".removeprefix("."), here[row.name]
            if not isinstance(value, dict | list) and key not in given:
                told = row.default if isinstance(value, str) else yaml.safe_load(row.default.replace("e-", ".0e-"))
                assert told == value, key
                compared += 1
    assert compared > 60


def test_pages_ask_nobody_for_anything(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    assert len(pages) > 40
    for page in pages:
        text = page.read_text(encoding="utf-8")
        loaded = re.findall(r"<(?:script|link|img|iframe|source)\b[^>]*?(?:src|href)=[\"']?([^\"' >]+)", text)
        assert loaded
        assert [each for each in loaded if each.startswith(("http:", "https:", "//"))] == [], page.name


def test_what_stands_outside_docs_comes_along(site: Path) -> None:
    assert (site / "SECURITY.html").is_file()
    assert (site / "data" / "de-en" / "index.html").is_file()
    config = "configs/multi30k-de-en-best.yaml"
    assert (site / config).read_bytes() == (ROOT / config).read_bytes()
    assert f'href="{config}"' in (site / "results.html").read_text(encoding="utf-8")


def formulas_of(page: Path) -> list[str]:
    """The formulas of a page as GitHub finds them: after Markdown, which may take underscores and backslashes for its
    own, and those in a line with white space before them and no letter behind."""
    tokens = MarkdownIt("commonmark").enable("table").parse(page.read_text(encoding="utf-8"))
    found = [token.content for token in tokens if token.info == "math"]
    for text in (part.content for token in tokens for part in token.children or () if part.type == "text"):
        formulas = re.compile(r"(?<!\S)\$(?! )([^$]+)(?<! )\$(?!\w)")
        assert "$" not in formulas.sub("", text), text
        found += formulas.findall(text)
    return found


def test_each_formula_becomes_mathml(site: Path) -> None:
    total = 0
    for page in (ROOT / "docs").rglob("*.md"):
        text = (site / page.relative_to(ROOT / "docs")).with_suffix(".html").read_text(encoding="utf-8")
        assert text.count("<math ") == len(formulas_of(page)), page.name
        assert "$" not in re.sub(r"<(code|script)\b.*?</\1>", "", text, flags=re.DOTALL), page.name
        total += len(formulas_of(page))
    assert total > 200


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_formulas_are_latex_that_github_takes(page: Path) -> None:
    for formula in formulas_of(page):
        assert formula in page.read_text(encoding="utf-8")
        assert "\\" not in docs_site.mathml(formula, "inline"), (
            formula
        )  # latex2mathml leaves a command that it does not know
        assert not re.search(r"\\operatorname|\\mbox|[<>|]", formula), formula


def test_formulas_in_code_are_left_alone() -> None:
    code = "`$x$` ``$x$``\n\n    $x$\n\n```bash\n$x$\n```\n\n$5 ($x$"
    assert docs_site.with_formulas(code) == code
    found = docs_site.with_formulas("So (as $x$), $-y_s$: x\n\n```math\nx\n```\n")
    inline, block = '<span class="formula">M{}</span>', '<div class="formula">M</div>'
    expected = f"So (as {inline.format('),')} {inline.format(':')} x\n\n{block}\n"
    assert re.sub("<math.*?</math>", "M", found) == expected


@pytest.mark.skipif(CHROMIUM is None or CHROMEDRIVER is None, reason="no Chromium here")
def test_formulas_fit_a_phone(site: Path, tmp_path: Path) -> None:
    """A wide one on lines of its own scrolls, as tables do; one in a sentence must not be wide."""
    with browsing(tmp_path) as browser:
        browser.resize(390, 800, mobile=True)
        for page in ("attention", "attention-explained", "align-rules"):
            browser.open((site / f"{page}.html").as_uri())
            assert browser.run("return document.documentElement.scrollWidth") == 390, page
            inline = "[...document.querySelectorAll('p .formula, li .formula')]"
            assert browser.run(f"return {inline}.filter(e => e.offsetWidth > 300).map(e => e.textContent)") == []


@pytest.mark.skipif(CHROMIUM is None or CHROMEDRIVER is None, reason="no Chromium here")
def test_axe_finds_no_fault(site: Path, tmp_path: Path) -> None:
    """In what is ours of a page. The theme has navigation of its own around it and in each block of code, and browsers
    let the keyboard scroll wide ones."""
    handler = partial(SimpleHTTPRequestHandler, directory=str(site))
    handler.log_message = lambda *_: None
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server, browsing(tmp_path) as browser:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        for page in ("index", "align", "attention", "commands/train", "configuration/training"):
            for dark in (False, True):
                browser.darken(dark)
                browser.open(f"http://127.0.0.1:{server.server_port}/{page}.html")
                browser.until("return document.querySelector('article').textContent.length > 1000")
                theirs = ("landmark-unique:", "scrollable-region-focusable:")
                assert [each for each in faults(browser, "article") if not each.startswith(theirs)] == [], page
        server.shutdown()
        assert browser.complaints() == []


MOVED = [
    ("README.md", "docs/align.md#two-directions", "align.md#two-directions"),
    ("docs/reliability.md", "../SECURITY.md", "SECURITY.md"),
    ("docs/begin.md", "../README.md", "index.md"),
    ("docs/begin.md", "train.md", "train.md"),
    ("data/de-en/README.md", "../../docs/align.md", "../../align.md"),
    ("docs/begin.md", "nowhere.md", "nowhere.md"),
    ("docs/begin.md", "https://no-color.org", "https://no-color.org"),
    ("docs/begin.md", "#what-a-run-is", "#what-a-run-is"),
]


@pytest.mark.parametrize(("path", "link", "moved"), MOVED)
def test_links_are_moved_with_their_pages(path: str, link: str, moved: str) -> None:
    assert docs_site.with_links(f"see [it]({link}).", path) == f"see [it]({moved})."


def test_options_stay_on_one_line() -> None:
    ray, beam = (f'<code class="option">{option}</code>' for option in ("--ray", "--beam 5"))
    block = "\n\n    `--ray`\n```\n`--ray`\n```"
    assert docs_site.whole_options(f"With `--ray` and `--beam 5`.{block}") == f"With {ray} and {beam}.{block}"
    others = "[`--ray`](cluster.md) or ``--ray`` or `nmt --ray`"
    assert docs_site.whole_options(others) == others
    assert docs_site.cell("see --ray, a--b | c") == 'see <span class="option">--ray</span>, a--b \\| c'


def test_bars_in_code_are_plain_in_tables_alone() -> None:
    assert docs_site.with_bars("| `a\\|b` | \\|z\\| |\n`a\\|b`") == "| `a|b` | \\|z\\| |\n`a\\|b`"

"""The examples in docstrings and on the pages run, and give what they show."""

from __future__ import annotations

import doctest
import importlib
import re
from pathlib import Path

import pytest

import nmt
from scripts.make_golden_run import copy
from tests.workflows.runs import sentences

ROOT = Path(__file__).parents[2]
EXAMPLE = re.compile(r"^ *>>> ", re.MULTILINE)
SOURCES = sorted(path for path in (ROOT / "nmt").rglob("*.py") if EXAMPLE.search(path.read_text(encoding="utf-8")))
DOCS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
PAGES = [path for path in DOCS if "```python\nimport nmt\n" in path.read_text(encoding="utf-8")]


def module_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with small models as runs/de-en and runs/en-de. Read it only."""
    folder = tmp_path_factory.mktemp("examples")
    (folder / "runs").mkdir()
    for golden, name in (("recurrent", "de-en"), ("transformer", "en-de")):
        copy(ROOT / "tests" / "golden" / "format-1" / golden, folder / golden)
        (folder / golden / "run").rename(folder / "runs" / name)
    lines = [f"{source}\t{target}\n" for source, target in sentences(60, seed=1)]
    (folder / "pairs.tsv").write_text("".join(lines), encoding="utf-8")
    return folder


def test_there_are_examples() -> None:
    assert {"nmt", "nmt.translator.translator", "nmt.translator.both_directions"} <= set(map(module_of, SOURCES))
    assert {"README.md", "python.md", "align.md", "evaluate.md"} <= {page.name for page in PAGES}


@pytest.mark.parametrize("path", SOURCES, ids=module_of)
def test_docstrings(path: Path, runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(runs)
    result = doctest.testmod(importlib.import_module(module_of(path)), optionflags=doctest.ELLIPSIS)
    assert (result.attempted > 0, result.failed) == (True, 0)


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_pages(page: Path, runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs the code that a reader copies; the translations on the pages are by other models."""
    monkeypatch.chdir(runs)
    for code in re.findall(r"```python\n(import nmt\n.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL):
        exec(code, {"sources": ["eins zwei"], "references": ["one two"]})


TRANSLATED = {
    "Der Hund bellt oft.": "The dog often barks.",
    "Hat der Hund gebellt?": "Did the dog bark?",
    "Die Rosen wachsen im Garten.": "The roses grow in the garden.",
    "Morgen wird die Lehrerin den Haustürschlüssel finden.": "Tomorrow the teacher will find the front door key.",
    "Der <b>Hund</b> bellt oft.  Hat der Hund gebellt?": "The <b>dog</b> often barks.  Did the dog bark?",
}
"""The sentences that the pages have the demo's model translate, and their translations. Four
seeds and a fifth training, otherwise rounded, have translated them so."""

GIVEN = re.compile(r"(?:echo '([^']*[a-zäöüß][^']*[.?])' \| (?:\.venv/bin/)?nmt translate)|translate\(\[?\"([^\"]+)\"")


def test_the_pages_translate_only_sentences_that_a_demo_translates_rightly() -> None:
    texts = [path.read_text(encoding="utf-8") for path in (*DOCS, ROOT / "scripts" / "demo.py")]
    given = {one or other for text in texts for one, other in GIVEN.findall(text)}
    assert len(given) >= 5
    assert given <= TRANSLATED.keys() | {"Tomorrow the teacher will find the front door key."}  # of another model


def test_the_demo_translates_the_sentences_of_the_pages_rightly() -> None:
    if not (ROOT / "runs" / "de-en" / "best").exists():
        pytest.skip("runs/de-en is not there: make demo trains it")
    changes = ["search.markup=true", "search.document=true"]
    translator = nmt.load(ROOT / "runs" / "de-en", device="cpu", overrides=changes)
    assert [each.text for each in translator.translate(list(TRANSLATED))] == list(TRANSLATED.values())

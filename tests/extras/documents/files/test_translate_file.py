"""`nmt translate FILE -o FILE`."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import nmt as package
from nmt.extras.documents.files import translate_file
from nmt.extras.documents.files.document import MARKUP, Block, DocumentFile
from nmt.translator.translation import Results
from tests.workflows.runs import call

PAGE = '<h1>eins</h1>\n<p title="zwei Hund">drei <b>Hund</b> &amp; Katze</p><p>eins</p><p>12</p>\n'


def test_a_page_is_translated_with_its_markup(trained: Path, tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text(PAGE, encoding="utf-8")
    arguments = ("page.html", "-o", "out.html", "--report", "out.tsv")
    done = call(tmp_path, "translate", trained / "run", "--precision", "float32", "-i", *arguments)
    assert done.output == ""
    assert "4 translated, 1 copied, 0 left: out.html" in done.stderr
    out = (tmp_path / "out.html").read_text(encoding="utf-8")
    assert Counter(re.findall("<[^>]*>", re.sub('title="[^"]*"', "", out))) == Counter(
        re.findall("<[^>]*>", re.sub('title="[^"]*"', "", PAGE))
    )
    translator = package.load(
        trained / "run", precision="float32", overrides=["search.markup=true", "search.document=true"]
    )
    one, two = (translator.translate(text).text for text in ("eins", "zwei Hund"))
    assert out.startswith(f'<h1>{one}</h1>\n<p title="{two}">')
    assert out.endswith(f"</p><p>{one}</p><p>12</p>\n")
    rows = [line.split("\t") for line in (tmp_path / "out.tsv").read_text(encoding="utf-8").splitlines()]
    assert [(row[0], row[1]) for row in rows] == [
        ("translated", "line 1"), ("translated", "line 2, title"), ("translated", "line 2"), ("translated", "line 2"),
        ("copied", "line 2"),
    ]  # fmt: skip
    assert rows[0][2:] == ["eins", one]


def test_mistakes_are_named(trained: Path, tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text("<p>eins</p>", encoding="utf-8")
    (tmp_path / "bad.html").write_bytes(b"<p>\xff</p>")
    (tmp_path / "text").write_text("eins\n", encoding="utf-8")
    run = trained / "run"
    for arguments, message in (
        (("-i", "page.html"), "--output: name the file for the translation of page.html"),
        (("-i", "page.html", "-o", "page.html"), "page.html"),
        (
            ("-i", "page.html", "-o", "x.docx"),
            "--output x.docx: has another format than page.html; let its name end in",
        ),
        (("-i", "no.html", "-o", "x.html"), "no.html: no such file"),
        (("-i", "bad.html", "-o", "x.html"), "bad.html: is not text in utf-8; save it in UTF-8"),
        (
            ("-i", "page.html", "-o", "x.html", "--format", "tsv"),
            "--format: is for text, line by line, and page.html is",
        ),
        (("-i", "page.html", "-o", "x.html", "--report", "page.html"), "--report page.html: is an input file"),
        (("-i", "page.html", "-o", "x.html", "--report", "x.html"), "--report x.html: is the file of the translation"),
        (("-i", "page.html", "-o", "x.html", "--workers", "2"), "--workers: is for text, line by line"),
        (("-i", "page.html", "-o", "x.html", "--wait", "3"), "--wait: is for text, line by line, and page.html is"),
        (("-i", "text", "-o", "x.docx"), "--output x.docx: only a document gives a document"),
        (("-i", "text", "--report", "r"), "--report: is for documents (.html"),
    ):
        assert message in call(tmp_path, "translate", run, *arguments).error
    assert not (tmp_path / "x.html").exists()


class Blocks(DocumentFile):
    """Blocks without a file."""

    def __init__(self, *texts: str) -> None:
        self.blocks = [Block(text.lstrip("@"), "", is_apart=text.startswith("@")) for text in texts]

    def write(self, translations: Any) -> bytes:
        raise NotImplementedError


class Translator:
    """Notes what it is given, and translates to capitals; loses tags of what has a "?"."""

    estimator = None

    def __init__(self, context: int) -> None:
        self.given: list[Any] = []
        data = type("Data", (), {"context": context})
        self.trained = type("Trained", (), {"experiment": type("Experiment", (), {"data": data})})

    def translate(self, texts: list[str]) -> Results[Any]:
        self.given += texts
        changed = [MARKUP.sub("", text) if "?" in text else text.replace("a", "A") for text in texts]
        return Results(type("Translation", (), {"text": text, "cut": 0}) for text in changed)


def test_equal_blocks_are_translated_once() -> None:
    translator: Any = Translator(0)
    found = translate_file.translate_blocks(translator, Blocks("a", "b", "a", "<x1>a</x1>", "<x1>a?</x1>"))
    assert translator.given == ["a", "b", "<x1>a</x1>", "<x1>a?</x1>"]
    assert [(each.text, each.fate) for each in found] == [
        ("A", "translated"), ("b", "copied"), ("A", "translated"), ("<x1>A</x1>", "translated"),
        ("<x1>a?</x1>", "left"),
    ]  # fmt: skip


def test_a_text_of_many_pages_is_left() -> None:
    translator: Any = Translator(0)
    found = translate_file.translate_blocks(translator, Blocks("a", "a" * 65_537))
    assert translator.given == ["a", ""]
    assert [each.fate for each in found] == ["translated", "left"]


def test_a_translation_without_its_words_or_placeholders_is_left() -> None:
    for text, translation, fate in (
        ("<x1>a</x1> &amp;", "<x1></x1> &amp;", "left"),
        ("a", "2", "translated"),
        ("– – <x1/>", "–<x1/>", "translated"),
        ("%s a %d", "%s A %d", "translated"),
        ("%s a", "%s A %s", "left"),
        ("%s a %d", "%d A %s", "left"),  # a program would take a number for a text
        ("<x1./>a %d", "%d A<x1./>", "left"),
        ("<x1/>a {b} %1$s", "%1$s {b} A<x1/>", "translated"),
    ):
        translator: Any = Translator(0)
        translator.translate = lambda _, text=translation: Results([type("Translation", (), {"text": text, "cut": 0})])
        (found,) = translate_file.translate_blocks(translator, Blocks(text))
        assert (found.text, found.fate) == (text if fate == "left" else translation, fate)


def test_a_model_with_context_reads_the_blocks_before() -> None:
    translator: Any = Translator(2)
    translate_file.translate_blocks(translator, Blocks("a", "@title", "b", "a", "@title"))
    assert [(str(text), list(getattr(text, "previous", []))) for text in translator.given] == [
        ("a", []), ("title", []), ("b", ["a"]), ("a", ["a", "b"]),
    ]  # fmt: skip

"""Results in a notebook: HTML that a parser reads back to the words and weights it was made of."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import nmt
from nmt.alignment.formats import Alignment
from nmt.core.notebook import background
from nmt.translator.scorer import PairScore
from nmt.translator.translation import MOST_SHOWN, Results, Translation

HARD = ["<script>alert(1)</script>", "\"'&amp;", "שלום", "</td>", "\ud800"]


class Page:
    """Tags, which must be closed in order, with their attributes, and the text in each cell."""

    def __init__(self, html: str) -> None:
        root = ET.fromstring(f"<page>{html}</page>")
        elements = list(root.iter())[1:]
        self.text = "".join(root.itertext())
        self.tags = [(element.tag, element.attrib) for element in elements]
        self.cells = [(e.tag, e.attrib, "".join(e.itertext())) for e in elements if e.tag in ("td", "th")]

    def heads(self) -> list[str]:
        return [text for tag, _, text in self.cells if tag == "th"]


def page_of(result: Translation | Alignment | PairScore | Results[Translation]) -> Page:
    page = Page(result._repr_html_())
    for tag, attributes in page.tags:
        assert tag in ("table", "tr", "td", "th", "bdi", "div", "span")
        assert set(attributes) <= {"style", "title"}  # nothing that runs or is fetched
        # Colours that suit one background only would be unreadable on the other.
        assert not re.search(r"(?<!-)\bcolor:|#[0-9a-f]{3}|white\b(?!-)|black|url", attributes.get("style", ""))
    return page


def seen(words: list[str]) -> list[str]:
    return [word.replace("\ud800", "?") for word in words]


def test_a_translation_shows_text_and_score() -> None:
    for text in HARD:
        page = page_of(Translation(text, -0.51234, -1.0))
        assert [each for tag, _, each in page.cells if tag == "td"] == [*seen([text]), "-0.5123"]


def test_a_score_shows_its_subwords() -> None:
    page = page_of(PairScore(-1.5, -3.0, ("▁<b>", "</s>"), (math.log(0.25), math.log(1.0))))
    assert [text for tag, _, text in page.cells if tag == "td"] == ["-1.5", "-3", "▁<b> </s>"]
    spans = [attributes for tag, attributes in page.tags if tag == "span"]
    assert [each["title"] for each in spans] == ["log-probability -1.386", "log-probability 0"]
    assert [re.findall(r", ([\d.]+)\)", each["style"]) for each in spans] == [["0.75"], ["0.00"]]


def test_a_background_is_never_more_than_opaque_or_less_than_none() -> None:
    shares = [background("1, 2, 3", share) for share in (-0.5, 0.25, 1.5)]
    assert shares == [f"background: rgba(1, 2, 3, {share})" for share in ("0.00", "0.25", "1.00")]


def test_a_list_shows_the_first_results() -> None:
    page = page_of(Results(Translation(f"t{number}", 0.0, 0.0) for number in range(MOST_SHOWN + 2)))
    assert [tag for tag, _ in page.tags].count("table") == MOST_SHOWN
    assert "t19" in page.text
    assert page.text.endswith("… and 2 more")
    assert Results[Translation]()._repr_html_() == ""


def test_results_of_a_model_are_lists_that_a_notebook_shows(trained: Path) -> None:
    translator = nmt.load(trained / "run", precision="float32")
    pairs = ["eins zwei.", "<i>Hund</i>"], ["one two.", "dog & cat"]
    for results in (translator.translate(pairs[0]), translator.align(*pairs), translator.score(*pairs)):
        assert isinstance(results, list)
        assert results == list(results)
        Page(results._repr_html_())
    alignment = translator.align(*pairs)[1]
    assert page_of(alignment).heads() == ["<i>Hund</i>", "dog", "&", "cat"]

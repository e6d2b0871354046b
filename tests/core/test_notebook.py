"""Results in a notebook: HTML that a parser reads back to the words and weights it was made of."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ET

from nmt.alignment.formats import Alignment
from nmt.core.notebook import background
from nmt.translator.scorer import PairScore
from nmt.translator.translation import Results, Translation

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


def test_a_score_shows_its_subwords() -> None:
    page = page_of(PairScore(-1.5, -3.0, ("▁<b>", "</s>"), (math.log(0.25), math.log(1.0))))
    assert [text for tag, _, text in page.cells if tag == "td"] == ["-1.5", "-3", "▁<b> </s>"]
    spans = [attributes for tag, attributes in page.tags if tag == "span"]
    assert [each["title"] for each in spans] == ["log-probability -1.386", "log-probability 0"]
    assert [re.findall(r", ([\d.]+)\)", each["style"]) for each in spans] == [["0.75"], ["0.00"]]


def test_a_background_is_never_more_than_opaque_or_less_than_none() -> None:
    shares = [background("1, 2, 3", share) for share in (-0.5, 0.25, 1.5)]
    assert shares == [f"background: rgba(1, 2, 3, {share})" for share in ("0.00", "0.25", "1.00")]

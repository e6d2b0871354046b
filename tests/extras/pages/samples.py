"""Alignments to draw and to write, and pages as a parser reads them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from html.parser import HTMLParser
from typing import Any

import numpy as np

from nmt.alignment import Links
from nmt.alignment.formats import Alignment
from tests.extras.service.browser import Browser


def aligned(
    source: str | Sequence[str], target: str | Sequence[str], links: Links = (), weights: Any = None, **keys: Any
) -> Alignment:
    """An alignment of words, or of the words of texts; without weights of its own all are 0."""
    sources, targets = (tuple(side.split() if isinstance(side, str) else side) for side in (source, target))
    shape = len(targets), len(sources)
    weights_TS = np.zeros(shape) if weights is None else np.asarray(weights, float).reshape(shape)
    return Alignment(sources, targets, links, weights_TS, **keys)


def values(browser: Browser, selector: str, expression: str) -> list[Any]:
    """The values of an expression of JavaScript for each element, ``e``."""
    elements = "[...document.querySelectorAll(arguments[0])]"
    found: list[Any] = browser.run(f"return {elements}.map((e) => {expression})", selector)
    return found


def nameless(browser: Browser) -> list[str]:
    """The elements that are used, or are parts of the page, and have no name."""
    parts = "button, input, select, [role=group], [role=img], [tabindex], article, nav, section, table"
    name = "e.ariaLabel || e.labels?.length || e.textContent.trim() || e.getAttribute('aria-labelledby')"
    found = values(browser, parts, f"[e.outerHTML.slice(0, 80), !!({name})]")
    return [html for html, is_named in found if not is_named]


class Page(HTMLParser):
    """The contents of a page."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: set[str] = set()
        self.references: list[str] = []
        self.scripts: list[tuple[dict[str, str | None], str]] = []
        self.ids: list[str] = []
        self.text = ""
        self._open = ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._open = tag
        self.tags.add(tag)
        self.references += [value or "" for name, value in attrs if name in ("src", "href", "action", "srcset")]
        self.ids += [value or "" for name, value in attrs if name == "id"]
        if tag == "script":
            self.scripts.append((dict(attrs), ""))

    def handle_endtag(self, tag: str) -> None:
        self._open = ""

    def handle_data(self, data: str) -> None:
        if self._open == "script":
            attributes, text = self.scripts[-1]
            self.scripts[-1] = (attributes, text + data)
        elif self._open != "style":
            self.text += data

    def data(self, name: str) -> list[Any]:
        """The JSON of the scripts that have this class or id."""
        return [json.loads(text) for each, text in self.scripts if name in (each.get("class"), each.get("id"))]

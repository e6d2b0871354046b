"""Alignments as one HTML file for a browser: words side by side, their weights, links and gold.

The page (`nmt/extras/pages/page`) is in the file, and so are the data, as blocks of JSON that no browser takes for
HTML; it asks no server for anything. A block is a list of pairs,

    [source words, target words, [[links, weights] of each view], gold links or null]

with links as a flat list `[source, target, source, target, …]`, gold as two of these, sure and merely possible, and
weights as base64 of one byte for each cell of the matrix, target word by target word: the weight in steps of 1/255, so
wrong by at most 1/510. Raw weights are shares of the pair's largest absolute value, which follows them; of signed
ones, -127 to 127 steps of a 127th, with 128 added, and true. A fifth
entry, where there is one, is the text above the pair (`PageRecord`).
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from importlib.resources import files
from itertools import repeat
from pathlib import Path
from string import Template
from typing import Any

import numpy as np

from nmt.alignment import Link, Weights
from nmt.alignment.error_rate import Gold
from nmt.alignment.formats import Alignment
from nmt.core.files import refuse_unwritable, whole_file, writing
from nmt.workflows.align import Header, WritePair

_BLOCK_PAIRS = 200
_BODY = """<body>
<header id="top">
  <h1>Word alignments</h1>
  <p id="facts"></p>
</header>
<main>
$pairs</main>"""


@contextmanager
def open_page(path: Path | None, header: Header) -> Iterator[WritePair]:
    """Opens a page, which is written in bounded memory for any number of pairs. Leaving the context completes the file;
    after an exception nothing is written.

    Alignments are at level "word". Raises InputError if the file cannot be written.
    """
    assert path is not None
    refuse_unwritable(path)
    block: list[Any] = []
    golds = iter(header.gold or repeat(None))

    def write(alignments: Sequence[Alignment]) -> None:
        if len(alignments) != len(header.views):
            raise ValueError(f"{len(alignments)} alignments for {len(header.views)} views")
        gold, confidence = next(golds), alignments[0].confidence
        heading = None if confidence is None else PageRecord(confidence=confidence.tree())
        block.append(record(alignments, gold if gold is not None and gold.is_judged else None, heading))
        if len(block) == _BLOCK_PAIRS:
            stream.write(data_block('class="pairs"', block))
            block.clear()

    with ExitStack() as stack:
        with writing(f"--output {path}"):
            partial = stack.enter_context(whole_file(path))
        # a lone surrogate, which UTF-8 does not have, becomes a question mark
        stream = stack.enter_context(partial.open("w", encoding="utf-8", errors="replace", newline="\n"))
        body = _BODY.replace("$pairs", page_file("pairs.html"))
        begin, end = page(title="Word alignments", body=body, missing="Alignments", programs=["common.js", "viewer.js"])
        meta = {"views": list(header.views), "facts": list(header.facts), "gold": header.gold is not None}
        stream.write(begin + data_block('id="meta"', {**meta, "explanations": dict(header.explanations)}))
        yield write
        if block:
            stream.write(data_block('class="pairs"', block))
        stream.write(end)


@dataclass(frozen=True)
class PageRecord:
    """The text above a pair."""

    title: str | None = None
    """Title that is shown instead of the pair's number."""
    texts: tuple[tuple[str, ...], ...] = ()
    """Lines: a name, then text in parts of which the second, the fourth and so on are marked."""
    confidence: Mapping[str, Any] | None = None
    """Confidence of the translation, as in JSON, whose words are marked among the aligned words, and in the lines
    "Source" and "Translation"."""


def record(alignments: Sequence[Alignment], gold: Gold | None = None, heading: PageRecord | None = None) -> list[Any]:
    """Builds the entry of a pair in a block, with its alignment by each view. Raises ValueError unless all are of one
    pair and between words."""
    first = alignments[0]
    for alignment in alignments:
        if alignment.level != "word":
            raise ValueError("the viewer shows alignments between words")
        if (alignment.source_words, alignment.target_words) != (first.source_words, first.target_words):
            raise ValueError("the views are not of the same sentence pair")
    views = [[_flat(alignment.links), *_scaled(alignment)] for alignment in alignments]
    links = None if gold is None else [_flat(gold.sure), _flat(gold.possible - gold.sure)]
    pair = [first.source_words, first.target_words, views, links]
    return pair if heading is None else [*pair, asdict(heading)]


def data_block(attribute: str, tree: object) -> str:
    """Writes data for a program of the page, as an element with this attribute, in JSON without a less-than sign, which
    neither begins nor ends an element. The viewer reads blocks of ``pairs``, in the order of the page, and ``meta``,
    everything that all pairs share: ``views``, their names, ``facts``, ``gold``, true with gold links, ``explanations``
    of the links by view, and ``layout`` where it is not the lines that the page begins with."""
    text = json.dumps(tree, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
    return f'<script type="application/json" {attribute}>{text}</script>\n'


def page(*, title: str, body: str, missing: str, programs: Sequence[str]) -> tuple[str, str]:
    """Writes an HTML file without its data: the text before the data, and after. ``missing`` is what needs
    ``programs``, files of JavaScript."""
    program = "".join(map(page_file, programs))
    blocks = {"title": title, "body": body, "missing": missing, "style": page_file("style.css"), "program": program}
    begin, _, end = page_file("page.html").partition("$data\n")
    return Template(begin).substitute(blocks), Template(end).substitute(blocks)


def page_file(name: str) -> str:
    """Reads a part of a page: ``style.css``, ``viewer.js``, ``pairs.html`` and so on."""
    return (files("nmt.extras.pages") / "page" / name).read_text(encoding="utf-8")


def _flat(links: Iterable[Link]) -> list[int]:
    return [index for link in sorted(set(links)) for index in link]


def _scaled(alignment: Alignment) -> list[Any]:
    weights_TS = np.asarray(alignment.weights_TS, np.float64)
    if alignment.magnitude == "relative":
        return [quantized(weights_TS)]
    most = float(np.abs(weights_TS).max(initial=0))
    share_TS, signed = weights_TS / (most or 1.0), alignment.magnitude == "signed"
    return [quantized((np.rint(127 * share_TS) + 128) / 255 if signed else share_TS), most, signed]


def quantized(weights_TS: Weights) -> str:
    """Encodes a matrix for a block."""
    steps_TS = np.rint(255 * np.clip(np.asarray(weights_TS, np.float64), 0, 1)).astype(np.uint8)
    return b64encode(steps_TS.tobytes()).decode("ascii")

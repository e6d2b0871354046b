"""The HTML file of alignments: what is in it, read with the standard library's own parsers."""

from __future__ import annotations

import base64
import re
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nmt.alignment.error_rate import Gold
from nmt.alignment.formats import Alignment
from nmt.core.errors import InputError
from nmt.extras.pages.viewer import open_page
from nmt.workflows.align import Header
from tests.extras.pages.samples import Page, aligned

NASTY = ("<script>", "</script>", "<!--<script>", "]]>", "&lt;", '"\\', "\u2028", "nul\x00", "日本", "שלום", "$&")


def alignment(sources: tuple[str, ...], targets: tuple[str, ...], seed: int = 0) -> Alignment:
    links = tuple((s, t) for s in range(len(sources)) for t in range(len(targets)) if (s + t + seed) % 3 == 0)
    return aligned(sources, targets, links, np.random.default_rng(seed).random((len(targets), len(sources))))


def written(path: Path, pairs: list[list[Alignment]], **keys: Any) -> Page:
    with open_page(path, Header([f"view{place}" for place in range(len(pairs[0]))], **keys)) as write:
        for each in pairs:
            write(each)
    return Page(path.read_text(encoding="utf-8"))


def test_everything_is_in_the_file_as_it_was(tmp_path: Path) -> None:
    sides = [(NASTY, NASTY[::-1]), ((), ("x",)), (("a", "b"), ()), ((), ())] + [(("a",), ("b",))] * 500
    pairs = [[alignment(*each, seed) for seed in (1, 2)] for each in sides]
    gold = [Gold(frozenset({(0, 0)}), frozenset({(1, 0), (0, 0)}))] + [Gold()] * (len(pairs) - 1)
    found = written(tmp_path / "a.html", pairs, gold=gold, facts=["</script><b>", "x"])
    (meta,), blocks = found.data("meta"), found.data("pairs")
    records = [record for block in blocks for record in block]
    assert meta == {"views": ["view0", "view1"], "facts": ["</script><b>", "x"], "gold": True, "explanations": {}}
    assert len(records) == len(pairs)
    for (source, target, views, links), each, expected in zip(records, pairs, gold, strict=True):
        assert (tuple(source), tuple(target)) == (each[0].source_words, each[0].target_words)
        for (flat, weights), one in zip(views, each, strict=True):
            assert tuple(zip(flat[::2], flat[1::2], strict=True)) == one.links
            steps = np.frombuffer(base64.b64decode(weights), np.uint8).reshape(one.weights_TS.shape)
            assert np.abs(steps / 255 - one.weights_TS).max(initial=0) <= 1 / 510 + 1e-12
        assert links == [[0, 0], [1, 0]] if expected.sure else links == [[], []]
    assert "b" not in found.tags  # of the facts
    assert len(blocks) == 3


def test_the_file_asks_nothing_of_the_network(tmp_path: Path) -> None:
    found = written(tmp_path / "a.html", [[alignment(("a",), ("b",))]])
    text = (tmp_path / "a.html").read_text(encoding="utf-8")
    assert not re.findall(r"https?:|url\(|@import|//(?! )", text)
    assert found.references == ["data:,"]
    assert not {"iframe", "img", "object", "embed", "base", "form"} & set(found.tags)
    policy = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:"
    assert policy in text
    (_, program) = found.scripts[-1]
    assert not re.findall(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|(eval|fetch|import)\(", program)
    assert (text.count("</style>"), text.count("</script>")) == (1, 3)  # its program, and two of data


def test_the_same_alignments_give_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a", "b"):
        written(tmp_path / name, [[alignment(NASTY, ("x", "y"))]])
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_weights_outside_0_to_1_are_cut_and_lone_surrogates_stand_as_question_marks(tmp_path: Path) -> None:
    odd = aligned("\ud800", "x y", (), [1 + 1e-9, -1e-9])
    (((source, _, ((_, weights),), gold),),) = written(tmp_path / "a", [[odd]]).data("pairs")
    assert (source, base64.b64decode(weights), gold) == (["?"], b"\xff\x00", None)


def test_after_an_error_nothing_has_changed(tmp_path: Path) -> None:
    path = tmp_path / "a.html"
    path.write_text("before")

    with pytest.raises(KeyboardInterrupt), open_page(path, Header(["x"])) as write:  # noqa: PT012
        for _ in range(300):
            write([aligned("a", "b")])
        raise KeyboardInterrupt
    assert {path: path.read_text() for path in tmp_path.iterdir()} == {path: "before"}


def test_memory_does_not_grow_with_the_pairs(tmp_path: Path) -> None:
    def peak(count: int) -> int:
        each = alignment(("word",) * 20, ("word",) * 20)
        tracemalloc.start()
        with open_page(tmp_path / "a.html", Header(["x"])) as write:
            for _ in range(count):
                write([each])
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most

    peak(1)  # what is imported and cached
    assert peak(1000) < 1.2 * peak(400)


def test_faults(tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"^--output .*nowhere/a.html: cannot be written: folder .*nowhere does not exist"
    ):
        open_page(tmp_path / "nowhere" / "a.html", Header(["x"])).__enter__()
    with pytest.raises(InputError, match=r"cannot be written: is a folder$"):
        open_page(tmp_path, Header(["x"])).__enter__()
    one, other = aligned("a", "b"), aligned("a", "c")
    subword = aligned("a", "b", level="subword", source_tokens=("a",), target_tokens=("b",))
    messages = {"1 alignments for 2 views": [one], "same sentence pair": [one, other], "between words": [subword] * 2}
    with open_page(tmp_path / "a.html", Header(["x", "y"])) as write:
        for message, pair in messages.items():
            with pytest.raises(ValueError, match=message):
                write(pair)

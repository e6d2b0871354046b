from __future__ import annotations

import re

import pytest

from nmt.extras.documents.files.inline import Fragment, fragments, spans_of, with_lines

Parts = list[tuple[str, str]]


def pieces(parts: Parts) -> list[Fragment]:
    """Text, "<b", "b>" and "/img" as the beginning, the end and the whole of an element, side by side."""
    found, begin = [], 0
    for part, name in parts:
        kind = {"<": "open", ">": "close", "/": "alone"}.get(part, "text")
        end = begin + (len(part) if kind == "text" else 1)
        found.append(Fragment(kind, begin, end, part if kind == "text" else "", name))  # type: ignore[arg-type]
        begin = end
    return found


@pytest.mark.parametrize(
    ("parts", "text", "span"),
    [
        ([("Hund", "")], "Hund", (0, 4)),
        ([(" \n Ein  \tHund ", "")], "Ein Hund", (3, 13)),
        ([("<", "b"), ("Hund", ""), (">", "b")], "Hund", (1, 5)),
        ([("/", "i"), (" ", ""), ("<", "b"), ("<", "u"), (" x", ""), (">", "u"), (">", "b"), ("/", "i")], "x", (5, 6)),
        ([("a", ""), ("<", "b"), ("b", ""), (">", "b"), ("/", "i"), ("c", "")], "a<x1>b</x1><x4/>c", (0, 6)),
        ([("<", "b"), ("a", ""), (">", "b"), ("c", "")], "<x0>a</x0>c", (0, 4)),
        (
            [("a", ""), (">", "b"), ("b", ""), ("<", "u"), ("c", ""), (">", "b"), ("d", "")],
            "a<x1/>b<x3/>c<x5/>d",
            (0, 7),
        ),
        ([("\u00a0a\u00a0", "")], "\u00a0a\u00a0", (0, 3)),
    ],
)
def test_a_block_is_the_text_between_its_outer_things(parts: Parts, text: str, span: tuple[int, int]) -> None:
    (found,) = spans_of(pieces(parts), "here")
    assert (found.block.text, found.begin, found.end) == (text, *span)
    assert found.block.place == "here"


def test_nothing_to_read_is_no_block() -> None:
    for parts in ([], [(" ", "")], [("/", "img")], [("<", "b"), (" – ", ""), (">", "b")]):
        assert spans_of(pieces(parts), "") == []


def test_a_part_of_a_text_is_divided_by_a_pattern() -> None:
    markup = re.compile(r"</(?P<close>\w+)>|<(?P<open>\w+)>|%s")
    found = list(fragments("<a>x & <b>y</b>%s z", 3, 17, markup))
    assert [(piece.kind, piece.begin, piece.end, piece.text) for piece in found] == [
        ("text", 3, 7, "x &amp; "), ("open", 7, 10, ""), ("text", 10, 11, "y"), ("close", 11, 15, ""),
        ("alone", 15, 17, ""),
    ]  # fmt: skip
    assert [piece.name for piece in found] == ["", "b", "", "b", "%s"]


@pytest.mark.parametrize(
    ("translation", "expected"),
    [
        ("one", "[one]"),
        ("one two three four", "[one two]\n > [three four]"),
        ("one two three four five", "[one two]\n > [three four]\n > [five]"),
        ("一二三四五六七八九十一二三", "[一二三四五六七八九十一二三]"),
    ],
)
def test_a_translation_has_lines_like_its_source(translation: str, expected: str) -> None:
    text = "ein Hund\n > bellt laut"
    group = [
        Fragment("text", 0, 8, "ein Hund"),
        Fragment("text", 8, 12, " ", "break"),
        Fragment("text", 12, 22, "bellt laut"),
    ]
    (span,) = spans_of(group, "")
    assert with_lines(span, text, group, lambda line: f"[{line}]").spell(translation) == expected

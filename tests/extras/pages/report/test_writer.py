"""The page of a report, read with the standard library's parser."""

from __future__ import annotations

from dataclasses import replace
from unittest.mock import Mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt.evaluation.bootstrap import compare, sentence_counts
from nmt.extras.pages.report import writer
from nmt.extras.pages.report.record import Run
from nmt.extras.pages.report.writer import marked, page
from tests.extras.pages.report.records import NASTY, bare, run
from tests.extras.pages.samples import Page


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leaves out the pictures, which take most of the time."""
    for name in ("draw_chart", "draw_model", "draw_by_length"):
        monkeypatch.setattr(writer, name, Mock())
    monkeypatch.setattr(writer, "inline_svg", Mock(return_value=""))
    monkeypatch.setattr(writer, "chart_points", Mock(return_value={}))


def test_nothing_that_a_run_says_is_taken_for_the_page() -> None:
    read = Page(page([run(NASTY), run("two", seed=1)]))
    assert [each.get("type") for each, _ in read.scripts] == ["application/json"] * (len(read.scripts) - 1) + [None]
    assert read.text.count(NASTY) > 5
    assert all(each.startswith(("#", "data:,")) for each in read.references)
    assert len(read.ids) == len(set(read.ids))
    (pairs,) = read.data("pairs")
    assert [pair[4]["title"] for pair in pairs] == [f"{n}, {name}" for n in (1, 2, 3) for name in (NASTY, "two")]
    assert pairs[0][0] == [*NASTY.split(), "der", "Hund"]
    assert pairs[0][4]["texts"][1] == ["Reference", " ".join(NASTY.split()) + " the ", "dog", " sleeps"]
    assert len(read.data("trace")) == 12


SECTIONS = [
    ([bare("x")], ["training", "model", "figures"], ["corpus", "translations", "by-length", "attention"]),
    ([run("x"), bare("y")], ["corpus", "translations", "by-length", "attention"], []),
    ([replace(run("x"), metrics=({"kind": "train", "update": 1},))], ["figures", "model"], ["training"]),
]


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize(("runs", "there", "missing"), SECTIONS, ids=["bare", "mixed", "no curve"])
def test_what_there_is_nothing_of_has_no_section(runs: list[Run], there: list[str], missing: list[str]) -> None:
    read = Page(page(runs))
    assert set(there) <= set(read.ids)
    assert not set(missing) & set(read.ids)
    assert set(read.references) - {"data:,"} >= {f"#{name}" for name in there}
    assert ("there is no corpus" in read.text) == any(each.notes for each in runs)


@pytest.mark.usefixtures("undrawn")
def test_the_matrix_is_called_what_it_is() -> None:
    attends = run("one")
    assert attends.translated is not None
    blind = replace(attends, translated=replace(attends.translated, looks=None))
    told = [" ".join(Page(page(runs)).text.split()) for runs in ([attends], [blind], [attends, blind])]
    attention = "The matrix is the attention, in per cent"
    gradient = "The matrix is how steeply a word's score changes with the source (by gradients), in per cent"
    either = "The matrix is the attention, or of a model without any how steeply"
    found = [[each in text for each in (attention, gradient, either)] for text in told]
    assert found == [[True, False, False], [False, True, False], [False, False, True]]


@pytest.mark.usefixtures("undrawn")
def test_significance_is_told_with_the_sign_of_the_later_run() -> None:
    references = ["a b c d e f", "g h i j k l", "m n o p q r"] * 8
    worse = [line.replace("c", "x").replace("j", "y") for line in references]
    comparison = compare(*(sentence_counts(lines, references) for lines in (references, worse)))
    one, two = run("one"), run("two")
    assert two.translated is not None
    two = replace(two, translated=replace(two.translated, against_first=comparison))
    text = Page(page([one, two])).text
    assert f"−{100 - comparison.score_b:.1f} (−{comparison.high:.1f} to −{comparison.low:.1f}), p" in text
    assert f"p = {comparison.p_value:.3f}: significant" in text


@pytest.mark.usefixtures("undrawn")
def test_rules_of_links_are_told_apart_where_runs_differ() -> None:
    one, two = run("one"), run("two", seed=1)
    rule = one.origin.links
    other = replace(two, origin=replace(one.origin, links="No weight is a link."))
    for runs, told in (([one, two], rule), ([one, other], f"one: {rule} two: No weight is a link.")):
        (meta,) = Page(page(runs)).data("meta")
        assert meta["explanations"]["attention"] == told


MARKED = [
    ("the dog sleeps", "the cat sleeps", ("the ", "dog", " sleeps")),
    ("the dog sleeps", "the dog sleeps", ("the dog sleeps",)),
    ("the dog", "", ("", "the dog")),
    ("", "the dog", ("",)),
    ("a b c d", "b d", ("", "a", " b ", "c", " d")),
    ("a b", "a b c", ("a b",)),
    ("x a", "a y", ("", "x", " a")),
]


@pytest.mark.parametrize(("text", "other", "expected"), MARKED)
def test_what_the_other_has_not_is_marked(text: str, other: str, expected: tuple[str, ...]) -> None:
    assert marked(text, other) == expected


WORDS = st.lists(st.sampled_from(["a", "b", "c", "dd"]), max_size=8)


@given(WORDS, WORDS)
def test_the_parts_are_the_text_and_what_is_not_marked_is_in_the_other(text: list[str], other: list[str]) -> None:
    parts = marked(" ".join(text), " ".join(other))
    assert "".join(parts) == " ".join(text)
    assert all(parts[1::2])
    left = iter(other)  # unmarked words stand in the other, in their order
    assert all(word in left for word in "".join(parts[0::2]).split())
    assert len(" ".join(parts[1::2]).split()) + len("".join(parts[0::2]).split()) == len(text)

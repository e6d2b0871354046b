"""Markup put into translations."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt.extras.documents.markup import extract
from nmt.extras.documents.text_spans import PieceWeights, to_units, units
from nmt.extras.documents.transfer import Unit, UnitWeights, restore


def restored(text: str, target: str, links: Iterable[tuple[int, int]] | None = None) -> str:
    """``links`` are between white-space words of plain text and translation, by default each with its like."""
    marked = extract(text)
    source_units = units(marked.text, 0, len(marked.text), marked)
    target_units = units(target, 0, len(target))
    source_words = [match.span() for match in re.finditer(r"\S+", marked.text)]
    target_words = [match.span() for match in re.finditer(r"\S+", target)]
    if links is None:
        links = [(place, place) for place in range(min(len(source_words), len(target_words)))]
    weights_JI = np.zeros((len(target_units), len(source_units)))
    for source, target_word in links:
        for i, (begin, end) in enumerate(source_units):
            for j, (first, last) in enumerate(target_units):
                inside = source_words[source][0] <= begin and end <= source_words[source][1]
                if inside and target_words[target_word][0] <= first and last <= target_words[target_word][1]:
                    # within a word: punctuation to punctuation
                    alike = marked.text[begin].isalnum() == target[first].isalnum()
                    weights_JI[j, i] = 1.0 if alike else 0.1
    return restore(marked, source_units, target, looking(target_units, weights_JI))


def looking(spans: Sequence[tuple[int, int]], weights_JI: np.ndarray) -> list[Unit]:
    return [Unit(begin, end, UnitWeights(0, row_I)) for (begin, end), row_I in zip(spans, weights_JI, strict=True)]


@pytest.mark.parametrize(
    ("text", "target", "links", "expected"),
    [
        ("der <b>Hund</b>, ja", "the dog, yes", None, "the <b>dog</b>, yes"),
        ("<p>der Hund.</p>", "the dog.", None, "<p>the dog.</p>"),
        ("<b>der Hund</b>.", "the dog.", None, "<b>the dog</b>."),
        ("der <b>große Hund</b> bellt", "the dog big barks", [(0, 0), (1, 2), (2, 1), (3, 3)],
         "the <b>dog big</b> barks"),
        ("er <b>steht</b> früh <i>auf</i>", "he gets up early", [(0, 0), (1, 1), (2, 3), (3, 2)],
         "he <b>gets</b> <i>up</i> early"),
        # one target word for two elements: the first has it, the other one stands empty beside it
        ("<b>Haus</b> <i>Tür</i>", "door", [(0, 0), (1, 0)], "<b>door</b> <i></i>"),
        # siblings never overlap, whatever the alignment
        ("<b>a b</b> <i>c</i>", "x y z", [(0, 0), (1, 2), (2, 1)], "<b>x</b> <i>y</i> z"),
        # an element whose words are not translated encloses the word that is left over
        ("der <b>doch</b> Hund", "the dog", [(0, 0), (2, 1)], "<b>the</b> dog"),
        ("<a><b>x</b> <b>y</b></a> z", "1z 2y 3x", [(0, 2), (1, 1), (2, 0)], "1z <a><b>2y</b> <b>3x</b></a>"),
        ("<b><b>x</b> y</b>", "y x", [(0, 1), (1, 0)], "<b>y <b>x</b></b>"),
        ("<b></b> der <i> </i>Hund", "the dog", None, "<b></b> the <i></i>dog"),
        ("der<fn/> Hund<fn/>, ja", "the dog, yes", None, "the<fn/> dog<fn/>, yes"),
        ("der <br/> Hund", "the dog", None, "the <br/> dog"),
        ("der<br/>Hund", "the dog", None, "the<br/>dog"),
        ("der <x/>Hund bellt", "barks the dog", [(0, 1), (1, 2), (2, 0)], "barks the <x/>dog"),
        ("der Hund <x/> bellt", "the dog, barks", [(0, 0), (1, 1), (2, 2)], "the dog, <x/> barks"),
        ("<x/> der Hund <y/>", "dog the", [(0, 1), (1, 0)], "<x/> dog the <y/>"),
        ("<x/><y/>Hund", "dog", None, "<x/><y/>dog"),
        ("<b>Hund<br/></b> ja", "dog yes", None, "<b>dog<br/></b> yes"),
        ("<b>un <i>bal</b> anced</i>", "un bal anced", None, "<b>un <i>bal</b> anced</i>"),
        ("<li>eins</li>", "one", None, "<li>one</li>"),
        ("Hund", "dog", None, "dog"),
        ("<br/>", "", None, "<br/>"),
        ("<b>狗</b>在", "dog 狗在", [(0, 1)], "dog <b>狗</b>在"),
        # a full stop is no part of what ends in an ellipsis, whatever its link, nor a note's place behind it
        ("Öffne <b>Datei – Drucken…</b>", "Open File - Print.", None,
         "Open <b>File - Print</b>."),
        ("Open <b>File - Print</b>.", "Öffne Datei – Drucken….", None, "Öffne <b>Datei – Drucken…</b>."),
        ("Hund schläft<sup>2</sup>.", "Dog sleeps.", None, "Dog sleeps<sup>2</sup>."),
        ("&lt;b&gt;Hund&lt;/b&gt; ja", "dog yes", None, "&lt;b&gt;dog&lt;/b&gt; yes"),
    ],
)  # fmt: skip
def test_tags(text: str, target: str, links: list[tuple[int, int]] | None, expected: str) -> None:
    assert restored(text, target, links) == expected


@pytest.mark.parametrize(
    ("text", "target", "links", "expected"),
    [
        # what the translation repeats stands
        ("Nimm {x} jetzt", "now take {x}", [(0, 1)], "now take {x}"),
        ("A &amp; B", "A & B", None, "A &amp; B"),
        ("&quot;Hund&quot;", '"dog"', None, "&quot;dog&quot;"),
        ("3,5 km", "3,5 km", None, "3,5 km"),
        ("3 Hunde", "3-legged 33 dogs 3rd", None, "3 33 dogs 3rd"),
        # one of two that are alike: where the translation looks
        ("{x} und {x}", "{x} and {x}", None, "{x} and {x}"),
        # else what is aligned is replaced
        ("3 Hunde", "three dogs", None, "3 dogs"),
        ("Nimm {x} jetzt", "now take this", [(0, 1), (1, 2), (2, 0)], "now take {x}"),
        ("siehe <b>www.a.b</b>.", "see here.", None, "see <b>www.a.b</b>."),
        # else it follows its left neighbour, or leads its right one
        ("Nimm {x} jetzt", "now take", [(0, 1), (2, 0)], "now take {x}"),
        ("5 Hunde", "dogs", [(1, 0)], "5 dogs"),
        ("Hund 5", "dog", [(0, 0)], "dog 5"),
        # two with one target word: one has it, the other stands beside it
        ("5 7 Hunde", "some dogs", [(0, 0), (1, 0), (2, 1)], "5 7 dogs"),
        # never run together
        ("Nr. 5 und {x}7", "", None, "5 {x}7"),
        ("Nimm %s", "x,", [(1, 0)], "x %s"),
        ("5/{x} 8", "", None, "5 {x} 8"),
        ("%s(c)%s", "", None, "%s %s"),
        ("%s<b>Hund%s</b> ja", "%sHund%s yes", None, "%s<b>Hund%s</b> yes"),
        ("<b>5</b> <i>{x}</i>", "", None, "<b>5</b> <i>{x}</i>"),
        ("10&nbsp;km", "10 km", None, "10&nbsp;km"),
    ],
)  # fmt: skip
def test_words_that_are_kept(text: str, target: str, links: list[tuple[int, int]] | None, expected: str) -> None:
    assert restored(text, target, links) == expected


def test_a_stand_in_gives_way_to_what_it_stands_for() -> None:
    marked = extract("Der {x} und 7 Hunde", stand_in="Haus")
    source_units = units(marked.text, 0, len(marked.text), marked)
    target = "The house and 2 dogs"
    spans = units(target, 0, len(target))
    weights_JI = np.eye(5) * 0.9 + 0.02
    assert restore(marked, source_units, target, looking(spans, weights_JI)) == "The {x} and 7 dogs"


def test_a_word_in_brackets_stays_in_brackets() -> None:
    marked = extract("Nimm ({x}) jetzt")
    weights_JI = np.eye(5)[[0, 1, 3, 4]]
    spans = units("take () now", 0, 11)
    found = restore(marked, units(marked.text, 0, 16, marked), "take () now", looking(spans, weights_JI))
    assert found == "take ({x}) now"


def test_neighbours_that_look_less_are_not_replaced() -> None:
    marked = extract("Vor {x}")
    weights_JI = np.array([[0.9, 0.1], [0.4, 0.6], [0.1, 0.9]])
    target = units("in front house", 0, 14)
    assert restore(marked, units(marked.text, 0, 7, marked), "in front house", looking(target, weights_JI)) == (
        "in front {x}"
    )


def test_the_interval_is_the_best_of_all() -> None:
    """Against all intervals there are."""
    draw = np.random.default_rng(1)
    for _ in range(200):
        marked = extract("a <b>b c</b> d")
        J = int(draw.integers(1, 7))
        weights_JI = draw.dirichlet([0.4] * 4, J)
        target = " ".join("x" * J)
        spans = units(target, 0, len(target))
        found = restore(marked, units(marked.text, 0, 7, marked), target, looking(spans, weights_JI))
        before = found[: found.index("<b>")].count("x")
        inside = found[found.index("<b>") : found.index("</b>")].count("x")
        gain_J = 2 * weights_JI[:, 1:3].sum(axis=1) - 1
        best = max(gain_J[first:last].sum() for first in range(J) for last in range(first + 1, J + 1))
        assert gain_J[before : before + inside].sum() == pytest.approx(best)


# ---------------------------------------------------------------------------------------------------- properties

WORDS = st.sampled_from(["Hund", "die", "a", "Ö,", "(c)", "d.", "狗", "-"])
KEPT = st.sampled_from(["{x}", "%s", "&amp;", "7", "3,50", "www.a.b", "a@b.cd", "{x}7", "😀", "$HOME"])
ALONE = st.sampled_from(["<br/>", "<x id='1'/>", "<!-- c -->", "&nbsp;", "&shy;"])


@st.composite
def marked_up(draw: st.DrawFn, depth: int = 3) -> str:
    """A well-formed text with elements of a name of their own at each depth."""
    parts = []
    for _ in range(draw(st.integers(0, 4))):
        kind = draw(st.sampled_from(["word", "word", "kept", "alone", "element"]))
        if kind == "element" and depth:
            name = draw(st.sampled_from(["b", "i", "g"]))
            parts.append(f'<{name} n="{draw(st.integers(0, 99))}">{draw(marked_up(depth=depth - 1))}</{name}>')
        else:
            parts.append(draw({"kept": KEPT, "alone": ALONE}.get(kind, WORDS)))
    separators = [draw(st.sampled_from([" ", " ", "", "  "])) for _ in parts]
    return "".join(part + separator for part, separator in zip(parts, separators, strict=True))


def outline(text: str) -> list[str]:
    """Every element with the path to it, which is its ancestors' tags."""
    xml = re.sub(r"&(?!amp;)\w+;", "", text)
    root = ElementTree.fromstring(f"<root>{xml}</root>")

    def walk(element: ElementTree.Element, path: str) -> list[str]:
        found = []
        for child in element:
            own = f"{path}/{child.tag}{sorted(child.attrib.items())}"
            found += [own, *walk(child, own)]
        return found

    return sorted(walk(root, ""))


@given(marked_up(), st.lists(st.sampled_from(["dog", "the", "x,", "狗", "(y)", ".", "…"]), max_size=8), st.data())
def test_every_item_is_there_once_and_tags_are_nested_as_they_were(
    text: str, target_words: list[str], data: st.DataObject
) -> None:
    marked = extract(text)
    target = " ".join(target_words)
    source_units = units(marked.text, 0, len(marked.text), marked)
    spans = units(target, 0, len(target))
    weight = st.sampled_from([0.0, 0.1, 0.5, 1.0])
    weights_JI = np.array(
        [[data.draw(weight) for _ in source_units] for _ in spans], dtype=np.float64
    ).reshape(len(spans), len(source_units))  # fmt: skip
    found = restore(marked, source_units, target, looking(spans, weights_JI))
    assert Counter(item.text for item in extract(found).items) == Counter(item.text for item in marked.items)
    assert outline(found) == outline(text)
    # without the items the model's words are left, but for those that items have replaced
    left, place = "", 0
    for item in extract(found).items:
        begin = found.index(item.text, place)
        left, place = f"{left}{found[place:begin]} ", begin + len(item.text)
    left += found[place:]
    rest = iter("".join(target.split()))
    assert all(character in rest for character in "".join(left.split()))
    if not marked.kept:
        assert left.split() == target.split() or "".join(left.split()) == "".join(target.split())
    assert not re.search(r"\s\s", found)


@given(marked_up())
def test_a_text_that_translates_to_itself_is_itself(text: str) -> None:
    """But for white space that is doubled, or inside tags at their edges."""
    marked = extract(text)
    source_units = units(marked.text, 0, len(marked.text), marked)
    found = restore(marked, source_units, marked.text, looking(source_units, np.eye(len(source_units))))
    assert "".join(found.split()) == "".join(text.split())


# ---------------------------------------------------------------------------------------------------------- units


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Der Hund, der's 3-mal z.B. sah!", ["Der", "Hund", ",", "der's", "3-mal", "z.B", ".", "sah", "!"]),
        ("狗在 睡", ["狗", "在", "睡"]),
        ("यह एक", ["यह", "एक"]),
        ("  ", []),
    ],
)
def test_units(text: str, expected: list[str]) -> None:
    assert [text[begin:end] for begin, end in units(text, 0, len(text))] == expected


def test_units_end_at_tags_and_kept_words_are_one() -> None:
    marked = extract("Haus<b>tür</b> www.a.b/c.")
    assert [marked.text[begin:end] for begin, end in units(marked.text, 0, len(marked.text), marked)] == [
        "Haus", "tür", "www.a.b/c", "."
    ]  # fmt: skip


def test_weights_of_pieces_become_weights_of_units() -> None:
    # pieces "Hund|," and "狗睡" over units Hund , / 狗 睡; the last row and column are end-of-sentence
    weights = PieceWeights(np.array([[0.6, 0.2, 0.2], [0.1, 0.8, 0.1]], dtype=np.float32), ((0, 2),), ((0, 4), (4, 5)))
    assert to_units(weights, [(0, 1), (1, 2)], [(0, 4), (4, 5)]) == pytest.approx(np.array([[0.75, 0.25]] * 2))
    assert to_units(weights, [(0, 1), (5, 6)], [(0, 2), (2, 4), (4, 5)]) == pytest.approx(
        np.array([[0.375, 0.375, 0.25], [0.0, 0.0, 0.0]])
    )


def test_items_that_are_alike_share_out_what_is_repeated() -> None:
    marked = extract("{x} {y}", stand_in="X")
    source_units = units(marked.text, 0, 3, marked)
    target = units("X, X", 0, 4)
    alike = np.full((3, 2), 0.5)
    assert restore(marked, source_units, "X, X", looking(target, alike)) == "{x}, {y}"
    crossed = np.array([[0.1, 0.9], [0.5, 0.5], [0.9, 0.1]])
    assert restore(marked, source_units, "X, X", looking(target, crossed)) == "{y}, {x}"

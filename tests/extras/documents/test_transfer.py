"""Markup put into translations."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt.data.words import Span
from nmt.extras.documents.markup import Marked, extract
from nmt.extras.documents.text_spans import units
from nmt.extras.documents.transfer import Unit, UnitWeights, restore


def words(text: str) -> list[Span]:
    return [match.span() for match in re.finditer(r"\S+", text)]


def restored(text: str, target: str, links: Iterable[tuple[int, int]] | None = None) -> str:
    """``links`` are between white-space words of plain text and translation, by default each with its like."""
    plain = extract(text).text
    source_words, target_words = words(plain), words(target)
    if links is None:
        links = [(place, place) for place in range(min(len(source_words), len(target_words)))]
    pairs = [(source_words[source], target_words[target_word]) for source, target_word in links]

    def weight(source: Span, unit: Span) -> float:
        if not any(a <= source[0] and source[1] <= b and c <= unit[0] and unit[1] <= d for (a, b), (c, d) in pairs):
            return 0.0
        # within a word: punctuation to punctuation
        return 1.0 if plain[source[0]].isalnum() == target[unit[0]].isalnum() else 0.1

    return weighted(extract(text), target, weight)


def weighted(marked: Marked, target: str, weights: Callable[[Span, Span], float] | Sequence[Sequence[float]]) -> str:
    """Restores the markup by the weights of units: a function of their spans, or a row for each unit of the target."""
    sources, spans = units(marked.text, marked), units(target)
    rows = [[weights(source, span) for source in sources] for span in spans] if callable(weights) else weights
    looking = [Unit(*span, UnitWeights(0, np.array(row))) for span, row in zip(spans, rows, strict=True)]
    return restore(marked, sources, target, looking)


RESTORED = [
    ("der <b>Hund</b>, ja", "the dog, yes", None, "the <b>dog</b>, yes"),
    ("<p>der Hund.</p>", "the dog.", None, "<p>the dog.</p>"),
    ("<b>der Hund</b>.", "the dog.", None, "<b>the dog</b>."),
    ("der <b>große Hund</b> bellt", "the dog big barks", [(0, 0), (1, 2), (2, 1), (3, 3)], "the <b>dog big</b> barks"),
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
    ("Öffne <b>Datei – Drucken…</b>", "Open File - Print.", None, "Open <b>File - Print</b>."),
    ("Open <b>File - Print</b>.", "Öffne Datei – Drucken….", None, "Öffne <b>Datei – Drucken…</b>."),
    ("Hund schläft<sup>2</sup>.", "Dog sleeps.", None, "Dog sleeps<sup>2</sup>."),
    ("&lt;b&gt;Hund&lt;/b&gt; ja", "dog yes", None, "&lt;b&gt;dog&lt;/b&gt; yes"),
    # words that are kept; what the translation repeats stands
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
    ("Der Hund {x}.", "The dog.", [(0, 0), (1, 1)], "The dog. {x}"),
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
]  # fmt: skip


@pytest.mark.parametrize(("text", "target", "links", "expected"), RESTORED)
def test_tags_and_words_that_are_kept(
    text: str, target: str, links: list[tuple[int, int]] | None, expected: str
) -> None:
    assert restored(text, target, links) == expected


HALF = [0.5, 0.5]


WEIGHED = [
    # a stand-in gives way to what it stands for
    ("Der {x} und 7 Hunde", "Haus", "The house and 2 dogs", np.eye(5) * 0.9 + 0.02, "The {x} and 7 dogs"),
    # and so does what a model adds to a digit that stands for a number
    ("500 Euro", "X", "2,000.50 euros", np.eye(2)[[0, 0, 0, 1]], "500 euros"),
    ("um 2.30 Uhr", "X", "at 2:00", np.eye(3)[[0, 1, 1, 1]], "at 2.30"),
    ("97 Hunde", "X", "2-legged dogs", [[0.8, 0.2], [0.0, 1.0]], "97 -legged dogs"),
    ("2 Hunde", "X", "2-legged 2", [[0.0, 1.0], [1.0, 0.0]], "2-legged 2"),
    # a word in brackets stays in brackets
    ("Nimm ({x}) jetzt", None, "take () now", np.eye(5)[[0, 1, 3, 4]], "take ({x}) now"),
    # neighbours that look less are not replaced
    ("Vor {x}", None, "in front house", [[0.9, 0.1], [0.4, 0.6], [0.1, 0.9]], "in front {x}"),
    # items that are alike share out what is repeated
    ("{x} {y}", "X", "X, X", [HALF, HALF, HALF], "{x}, {y}"),
    ("{x} {y}", "X", "X, X", [[0.1, 0.9], HALF, [0.9, 0.1]], "{y}, {x}"),
]


@pytest.mark.parametrize(("text", "stand_in", "target", "weights", "expected"), WEIGHED)
def test_weights_decide(text: str, stand_in: str | None, target: str, weights: Any, expected: str) -> None:
    assert weighted(extract(text, stand_in), target, weights) == expected


def test_tags_nested_as_deep_as_a_line_allows_come_once() -> None:
    for depth in (99, 1000):
        text = "<b>" * depth + "der Hund" + "</b>" * depth
        found = restored(text, "the dog")
        assert re.sub("</?b>", "", found).split() == ["the", "dog"]
        assert Counter(re.findall("</?b>", found)) == {"<b>": depth, "</b>": depth}


def test_the_interval_is_the_best_of_all() -> None:
    """Against all intervals there are."""
    draw = np.random.default_rng(1)
    for _ in range(200):
        marked = extract("a <b>b c</b> d")
        J = int(draw.integers(1, 7))
        weights_JI = draw.dirichlet([0.4] * 4, J)
        target = " ".join("x" * J)
        found = weighted(marked, target, weights_JI)
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

    def walk(element: ElementTree.Element, path: str) -> list[str]:
        paths = [(child, f"{path}/{child.tag}{sorted(child.attrib.items())}") for child in element]
        return [each for child, own in paths for each in (own, *walk(child, own))]

    xml = re.sub(r"&(?!amp;)\w+;", "", text)
    return sorted(walk(ElementTree.fromstring(f"<root>{xml}</root>"), ""))


@given(marked_up(), st.lists(st.sampled_from(["dog", "the", "x,", "狗", "(y)", ".", "…"]), max_size=8), st.data())
def test_every_item_is_there_once_and_tags_are_nested_as_they_were(
    text: str, target_words: list[str], data: st.DataObject
) -> None:
    marked = extract(text)
    target = " ".join(target_words)
    found = weighted(marked, target, lambda *_: data.draw(st.sampled_from([0.0, 0.1, 0.5, 1.0])))
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
        assert "".join(left.split()) == "".join(target.split())
    assert not re.search(r"\s\s", found)


@given(marked_up())
def test_a_text_that_translates_to_itself_is_itself(text: str) -> None:
    """But for white space that is doubled, or inside tags at their edges."""
    marked = extract(text)
    # the words of a translation do not end at tags of the source, so that these units are the source's own
    spans = units(marked.text, marked)
    same = [Unit(*span, UnitWeights(number, np.ones(1))) for number, span in enumerate(spans)]
    found = restore(marked, spans, marked.text, same)
    assert "".join(found.split()) == "".join(text.split())

"""Parts of a text that are not translated."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt.extras.documents.markup import extract

TEXTS = {
    # text: what a model sees, and the items with their kinds
    "<b>Hund</b>, ja": ("Hund, ja", [("<b>", "open"), ("</b>", "close")]),
    "a < b und c > d": ("a < b und c > d", []),
    "x<3 und <5>": ("x<3 und <5>", [("3", "word"), ("5", "word")]),
    "if x<y and z>w": ("if x<y and z>w", []),
    '<a href="x>y" checked>Hund</a>': ("Hund", [('<a href="x>y" checked>', "open"), ("</a>", "close")]),
    "<br/><hr><x id='1' /> Hund": (" Hund", [("<br/>", "alone"), ("<hr>", "alone"), ("<x id='1' />", "alone")]),
    "<B>Hund</b >": ("Hund", [("<B>", "open"), ("</b >", "close")]),
    "<b>un <i>bal</b> anced</i>": (
        "un bal anced",
        [("<b>", "open"), ("<i>", "alone"), ("</b>", "close"), ("</i>", "alone")],
    ),
    "</b>Hund<b>": ("Hund", [("</b>", "alone"), ("<b>", "alone")]),
    "<b><b>x</b> y</b>": ("x y", [("<b>", "open"), ("<b>", "open"), ("</b>", "close"), ("</b>", "close")]),
    "Hund<!-- <b> --><?php x ?><!DOCTYPE html>": (
        "Hund",
        [("<!-- <b> -->", "alone"), ("<?php x ?>", "alone"), ("<!DOCTYPE html>", "alone")],
    ),
    "R &amp; B &lt;Hund&gt;": ("R & B <Hund>", [("&amp;", "word"), ("&lt;", "word"), ("&gt;", "word")]),
    "M&uuml;ller &#65; AT&T": ("Müller A AT&T", []),
    "10&nbsp;km": ("10 km", [("10", "word"), ("&nbsp;", "alone")]),
    "Donau&shy;dampf": ("Donaudampf", [("&shy;", "alone")]),
    "Zeile<br>zwei<br> drei": ("Zeile zwei drei", [("<br>", "alone"), ("<br>", "alone")]),
    "Ein <br/> Hund": ("Ein Hund", [("<br/>", "alone")]),
    "Ein <i><br>Hund %s  da": ("Ein Hund %s  da", [("<i>", "alone"), ("<br>", "alone"), ("%s", "word")]),
    "(siehe https://a.b/c_(d)?e=f&g=%20#h). www.x.org!": (
        "(siehe https://a.b/c_(d)?e=f&g=%20#h). www.x.org!",
        [("https://a.b/c_(d)?e=f&g=%20#h", "word"), ("www.x.org", "word")],
    ),
    "&quot;www.a.b?c&amp;d&amp;&quot;": ('"www.a.b?c&amp;d&"', [("&quot;www.a.b?c&amp;d&amp;&quot;", "word")]),
    "(www.a.b&amp; c)": ("(www.a.b& c)", [("www.a.b&amp;", "word")]),
    "Mail an a.b+c@d-e.co.uk.": ("Mail an a.b+c@d-e.co.uk.", [("a.b+c@d-e.co.uk", "word")]),
    "{a} und {{b c}}, ${d}, %{e} #{f}": (
        "{a} und {{b c}}, ${d}, %{e} #{f}",
        [("{a}", "word"), ("{{b c}}", "word"), ("${d}", "word"), ("%{e}", "word"), ("#{f}", "word")],
    ),
    "%s %d %1$s %(name)s %-5.2f 50 % der 100% %% %sabc": (
        "%s %d %1$s %(name)s %-5.2f 50 % der 100% %% %sabc",
        [
            *((each, "word") for each in ("%s", "%d", "%1$s", "%(name)s", "%-5.2f")),
            *((each, "word") for each in ("50", "100%", "%%")),
        ],
    ),
    "{ kein Platz } { }": ("{ kein Platz } { }", []),
    "1.000,50 3:1 2020-05-12 -5 B2B 5km 5-jährig 3. 10/2": (
        "1.000,50 3:1 2020-05-12 -5 B2B 5km 5-jährig 3. 10/2",
        [(each, "word") for each in ("1.000,50", "3:1", "2020-05-12", "-5", "3", "10/2")],
    ),
    "{a}{b}&amp;5": ("{a}{b}&5", [("{a}{b}&amp;5", "word")]),
    # tags that are escaped, once or twice, but not a name in angle brackets
    "&lt;b&gt;Hund&lt;/b&gt; a &lt; b": (
        "Hund a < b",
        [("&lt;b&gt;", "open"), ("&lt;/b&gt;", "close"), ("&lt;", "word")],
    ),
    "&amp;lt;a x=&quot;y z&quot;&amp;gt;Hund&amp;lt;/a&amp;gt;": (
        "Hund",
        [("&amp;lt;a x=&quot;y z&quot;&amp;gt;", "open"), ("&amp;lt;/a&amp;gt;", "close")],
    ),
    # notes, and formulas
    "schläft<sup>2</sup>. m<sup>2)</sup>": ("schläft. m", [("<sup>2</sup>", "alone"), ("<sup>2)</sup>", "alone")]),
    "H<sub>2</sub>O, x<sup>n</sup>": (
        "H<sub>2</sub>O, xn",
        [("H<sub>2</sub>O", "word"), ("<sup>", "open"), ("</sup>", "close")],
    ),
    # emoji, also of several characters, and variables
    "Hund😀 👩‍👧🇩🇪 ❤️ 👍🏽 1️⃣": (
        "Hund😀 👩‍👧🇩🇪 ❤️ 👍🏽 1️⃣",
        [(each, "word") for each in ("😀", "👩‍👧🇩🇪", "❤️", "👍🏽", "1️⃣")],
    ),
    "$HOME, %PATH%, $5, 5$, US$": (
        "$HOME, %PATH%, $5, 5$, US$",
        [(each, "word") for each in ("$HOME", "%PATH%", "5", "5")],
    ),
}


@pytest.mark.parametrize("text", TEXTS)
def test_what_is_found(text: str) -> None:
    plain, items = TEXTS[text]
    marked = extract(text)
    assert marked.text == plain
    assert [(item.text, item.kind) for item in marked.items] == items


def test_a_stand_in_is_seen_for_what_a_model_need_not_know() -> None:
    marked = extract("Nimm {x} für 3,50, 1 oder 7, www.a.b, v{y}. {a}{b} &amp;", stand_in="Haus")
    assert marked.text == "Nimm Haus für 2, 1 oder 3, Haus, v{y}. Haus &"
    assert [marked.text[begin:end] for begin, end in marked.kept] == [
        "Haus", "2", "1", "3", "Haus", "{y}", "Haus", "&"
    ]  # fmt: skip
    digits = extract("12 " * 9, stand_in="X").text.split()
    assert digits == ["2", "3", "4", "5", "6", "7", "8", "9", "2"]


@pytest.mark.parametrize(
    ("text", "leans"),
    [
        ("Hund <x/> bellt", "not"),
        ("Hund<x/> bellt", "left"),
        ("Hund <x/>bellt", "right"),
        ("Hund<x/>bellt", "left"),
        ("<x/> Hund", "not"),
        ("<x/>Hund", "right"),
        ("Hund<x/>", "left"),
        ("<b><x/>Hund</b>", "right"),
        ("der<b> <x/>Hund</b>", "right"),
        ("<b>Hund</b> <x/> bellt", "not"),
        ("<b>Hund</b><x/> bellt", "left"),
        ("Hund<br>bellt", "not"),
        ("<li>eins</li><li><x/>zwei</li>", "right"),
    ],
)
def test_what_a_tag_leans_on(text: str, leans: str) -> None:
    (item,) = (item for item in extract(text).items if item.kind == "alone")
    assert item.leans == leans


def test_no_sentence_crosses_the_border_of_a_block() -> None:
    marked = extract("<p>Ein <b>Hund</b></p><ul><li>eins</li> <li>zwei</li></ul>")
    assert marked.text == "Ein Hundeins zwei"
    assert marked.borders == (0, 8, 12, 13, 17)


@given(st.text(alphabet="<>/b i=\"'&amp;#{}%s5.x@:\u00a0-!?"))
def test_any_text_is_its_plain_text_with_the_items_between(text: str) -> None:
    marked = extract(text)
    place = 0
    for item in marked.items:
        assert item.begin <= item.end
        assert (item.kind == "word") == (item.begin < item.end)
        place = text.index(item.text, place) + len(item.text)  # in order, and none overlaps another
    opened = []
    for index, item in enumerate(marked.items):
        if item.kind == "open":
            opened.append(index)
        elif item.kind == "close":
            assert opened.pop() == item.partner
    assert not opened


@pytest.mark.parametrize(
    "unit",
    [
        "<",
        "<a ",
        "<a b=c ",
        "{",
        "{{",
        "%",
        "&",
        "a@",
        "1.",
        "http://(",
        "<b>",
        "</b>",
        "<!--",
        "1-",
        "0",
        "<?",
        "&lt;a ",
    ],
)
def test_a_line_as_long_as_may_be_takes_no_time(unit: str) -> None:
    text = "%" + unit * (65_536 // len(unit)) + "a"
    started = time.process_time()
    extract(text)
    assert time.process_time() - started < 5.0

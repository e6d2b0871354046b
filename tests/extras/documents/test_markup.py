"""Parts of a text that are not translated."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt.extras.documents.markup import extract, tags_and_placeholders

KINDS = {"+": "open", "-": "close", ".": "alone", "=": "word"}
SAME = None
ESCAPED = "&amp;lt;a x=&quot;y z&quot;&amp;gt;"
TEXTS: dict[str, tuple[str | None, list[str]]] = {
    # text: what a model sees, and the items behind the signs of their kinds
    "<b>Hund</b>, ja": ("Hund, ja", ["+<b>", "-</b>"]),
    "a < b und c > d": (SAME, []),
    "x<3 und <5>": (SAME, ["=3", "=5"]),
    "if x<y and z>w": (SAME, []),
    '<a href="x>y" checked>Hund</a>': ("Hund", ['+<a href="x>y" checked>', "-</a>"]),
    "<br/><hr><x id='1' /> Hund": (" Hund", [".<br/>", ".<hr>", ".<x id='1' />"]),
    "<B>Hund</b >": ("Hund", ["+<B>", "-</b >"]),
    "<b>un <i>bal</b> anced</i>": ("un bal anced", ["+<b>", ".<i>", "-</b>", ".</i>"]),
    "</b>Hund<b>": ("Hund", [".</b>", ".<b>"]),
    "<b><b>x</b> y</b>": ("x y", ["+<b>", "+<b>", "-</b>", "-</b>"]),
    "Hund<!-- <b> --><?php x ?><!DOCTYPE html>": ("Hund", [".<!-- <b> -->", ".<?php x ?>", ".<!DOCTYPE html>"]),
    "R &amp; B &lt;Hund&gt;": ("R & B <Hund>", ["=&amp;", "=&lt;", "=&gt;"]),
    "M&uuml;ller &#65; AT&T": ("Müller A AT&T", []),
    "10&nbsp;km": ("10 km", ["=10", ".&nbsp;"]),
    "Donau&shy;dampf": ("Donaudampf", [".&shy;"]),
    "Zeile<br>zwei<br> drei": ("Zeile zwei drei", [".<br>", ".<br>"]),
    "Ein <br/> Hund": ("Ein Hund", [".<br/>"]),
    "Ein <i><br>Hund %s  da": ("Ein Hund %s  da", [".<i>", ".<br>", "=%s"]),
    "(siehe https://a.b/c_(d)?e=f&g=%20#h). www.x.org!": (SAME, ["=https://a.b/c_(d)?e=f&g=%20#h", "=www.x.org"]),
    "&quot;www.a.b?c&amp;d&amp;&quot;": ('"www.a.b?c&amp;d&"', ["=&quot;www.a.b?c&amp;d&amp;&quot;"]),
    "(www.a.b&amp; c)": ("(www.a.b& c)", ["=www.a.b&amp;"]),
    "Mail an a.b+c@d-e.co.uk.": (SAME, ["=a.b+c@d-e.co.uk"]),
    "{a} und {{b c}}, ${d}, %{e} #{f}": (SAME, ["={a}", "={{b c}}", "=${d}", "=%{e}", "=#{f}"]),
    "%s %d %1$s %(name)s %-5.2f 50 % der 100% %% %sabc": (
        SAME,
        ["=%s", "=%d", "=%1$s", "=%(name)s", "=%-5.2f", "=50", "=100%", "=%%"],
    ),
    "{ kein Platz } { }": (SAME, []),
    "1.000,50 3:1 2020-05-12 -5 B2B 5km 5-jährig 3. 10/2": (
        SAME,
        ["=1.000,50", "=3:1", "=2020-05-12", "=-5", "=3", "=10/2"],
    ),
    "كان ١٬٢٣٤٫٥ أو ٥٠٪": (SAME, ["=١٬٢٣٤٫٥", "=٥٠٪"]),
    "{a}{b}&amp;5": ("{a}{b}&5", ["={a}{b}&amp;5"]),
    # tags that are escaped, once or twice, but not a name in angle brackets
    "&lt;b&gt;Hund&lt;/b&gt; a &lt; b": ("Hund a < b", ["+&lt;b&gt;", "-&lt;/b&gt;", "=&lt;"]),
    f"{ESCAPED}Hund&amp;lt;/a&amp;gt;": ("Hund", [f"+{ESCAPED}", "-&amp;lt;/a&amp;gt;"]),
    # notes, and formulas
    "schläft<sup>2</sup>. m<sup>2)</sup>": ("schläft. m", [".<sup>2</sup>", ".<sup>2)</sup>"]),
    "H<sub>2</sub>O, x<sup>n</sup>": ("H<sub>2</sub>O, xn", ["=H<sub>2</sub>O", "+<sup>", "-</sup>"]),
    # emoji, also of several characters, and variables
    "Hund😀 👩‍👧🇩🇪 ❤️ 👍🏽 1️⃣": (SAME, ["=😀", "=👩\u200d👧🇩🇪", "=❤️", "=👍🏽", "=1️⃣"]),
    "{% if a %}b{# c #}d<% e %> &lt;% g %&gt;": ("bd ", [".{% if a %}", ".{# c #}", ".<% e %>", ".&lt;% g %&gt;"]),
    "<%= e.f %> &lt;%= g %&gt; {{{h}}} {0, number} {i, plural, one {j} other {# k}} {l": (
        SAME,
        ["=<%= e.f %>", "=&lt;%= g %&gt;", "={{{h}}}", "={0, number}", "={i, plural, one {j} other {# k}}"],
    ),
    "1914–1918, 1\u00a0000–2\u00a0000, 97–2003-Format, 25–jährig, 1–2–3": (
        SAME,
        ["=1914–1918", "=1\u00a0000–2\u00a0000", "=3"],
    ),
    "$HOME, %PATH%, $5, 5$, US$": (SAME, ["=$HOME", "=%PATH%", "=5", "=5"]),
}


@pytest.mark.parametrize("text", TEXTS)
def test_what_is_found(text: str) -> None:
    plain, items = TEXTS[text]
    marked = extract(text)
    assert marked.text == (plain or text)
    assert [(item.text, item.kind) for item in marked.items] == [(item[1:], KINDS[item[0]]) for item in items]


def test_a_stand_in_is_seen_for_what_a_model_need_not_know() -> None:
    marked = extract("Nimm {x} für 3,50, 1 oder 7, www.a.b, v{y}. {a}{b} &amp;", stand_in="Haus")
    assert marked.text == "Nimm Haus für 2, 1 oder 3, Haus, v{y}. Haus &"
    assert [marked.text[begin:end] for begin, end in marked.kept] == [
        "Haus", "2", "1", "3", "Haus", "{y}", "Haus", "&"
    ]  # fmt: skip
    digits = extract("12 " * 9, stand_in="X").text.split()
    assert digits == ["2", "3", "4", "5", "6", "7", "8", "9", "2"]


LEANING = [
    ("not", ["Hund <x/> bellt", "<x/> Hund", "<b>Hund</b> <x/> bellt", "Hund<br>bellt"]),
    ("left", ["Hund<x/> bellt", "Hund<x/>bellt", "Hund<x/>", "<b>Hund</b><x/> bellt"]),
    ("right", ["Hund <x/>bellt", "<x/>Hund", "<b><x/>Hund</b>", "der<b> <x/>Hund</b>",
               "<li>eins</li><li><x/>zwei</li>"]),
]  # fmt: skip


@pytest.mark.parametrize(("leans", "texts"), LEANING)
def test_what_a_tag_leans_on(leans: str, texts: list[str]) -> None:
    for text in texts:
        assert [item.leans for item in extract(text).items if item.kind == "alone"] == [leans], text


def test_no_sentence_crosses_the_border_of_a_block() -> None:
    marked = extract("<p>Ein <b>Hund</b></p><ul><li>eins</li> <li>zwei</li></ul>")
    assert marked.text == "Ein Hundeins zwei"
    assert marked.borders == (0, 8, 12, 13, 17)


def test_placeholders_of_programs() -> None:
    text = "<x1> %s </x1> %lu %-5.2f %1$s %(a)s %% %1 %L2 %.*f %Y %-m %s%d {x} {0.a} ${y} $z 50 % of 50% a 100%s %10"
    assert tags_and_placeholders(text) == [*text.split()[:-7], "%10"]


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
        opened += [index] * (item.kind == "open")
        assert item.kind != "close" or opened.pop() == item.partner
    assert not opened


@pytest.mark.parametrize(
    "unit",
    "<|<a |<a b=c |{|{{|%|&|a@|1.|http://(|<b>|</b>|<!--|1-|0|<?|&lt;a |{%|{#|<%|&lt;%|{{{|{a,b,|{a,b,{}|¼–".split("|"),  # noqa: SIM905
)
def test_a_line_as_long_as_may_be_takes_no_time(unit: str) -> None:
    text = "%" + unit * (65_536 // len(unit)) + "a"
    started = time.process_time()
    extract(text)
    assert time.process_time() - started < 5.0

"""Blocks of HTML, against Python's own parser and by hand."""

from __future__ import annotations

import random
from collections.abc import Callable
from html.parser import HTMLParser

import pytest

from nmt.extras.documents.files.document import MARKUP, DamagedFile
from nmt.extras.documents.files.html import read

PAGE = """\
<!DOCTYPE html>
<html lang=de><head><title>Hund &amp; Katze</title>
<meta name="description" content="Zwei 'Tiere'"><meta name=viewport content="width=9">
<script>if (a<b) "Hund"</script><style>p { }</style></head>
<body><h1><b>Ein Titel</b></h1>
<p>Ein <a href="x.html" title='Zum "Hund"'>großer
 Hund</a> bellt <img src=a.png alt="Ein Bild"> oft, AT&T &lt; 3&nbsp;Euro.<br>
Zweite <code>x = 1</code> Zeile <i>ohne Ende</p>
<ul><li>eins<li>zwei <!-- drei --> vier</ul><p translate=no>nein</p><p>ein <span class="a notranslate">Name</span></p>
<pre>  bleibt </pre><input type=submit value="Los"><input type=text value="bleibt" placeholder=bleibt> a < b &copy;
<p>123 – 45</p></body></html>
"""


def upper(text: str) -> str:
    """Another text with the same tags and entities."""
    parts, end = [], 0
    for match in MARKUP.finditer(text):
        parts += [text[end : match.start()].upper(), match.group()]
        end = match.end()
    return "".join([*parts, text[end:].upper()])


def translated(page: str, change: Callable[[str], str]) -> str:
    document = read(page.encode())
    return document.write([change(block.text) for block in document.blocks]).decode()


def test_blocks_of_a_page() -> None:
    assert [block.text for block in read(PAGE.encode()).blocks] == [
        "Hund &amp; Katze",
        "Zwei 'Tiere'",
        "Ein Titel",
        "Ein <x1>großer Hund</x1> bellt <x5/> oft, AT&amp;T &lt; 3&nbsp;Euro.",
        'Zum "Hund"',
        "Ein Bild",
        "Zweite <x1/> Zeile <x3/>ohne Ende",
        "eins",
        "zwei <x1/> vier",
        "ein",
        "Los",
        "a &lt; b &copy;",
        "123 – 45",
    ]
    assert [block.place for block in read(PAGE.encode()).blocks][3:6] == ["line 6", "line 6, title", "line 7, alt"]


def test_what_is_not_text_keeps_its_bytes() -> None:
    assert translated(PAGE, str) == PAGE
    expected = PAGE
    for part in (
        "Hund &amp; Katze", "Zwei 'Tiere'", "Ein Titel", ">Ein <", "großer\n Hund", "bellt", "oft, AT", "T &lt; 3",
        "Euro", "Ein Bild", 'Zum "Hund"', "Zweite", "Zeile", "ohne Ende", "eins", "zwei", "vier", "<p>ein", "Los",
        " a < b ",
    ):  # fmt: skip
        assert part in expected
        changed = upper(part).replace("<P>", "<p>").replace("\n ", " ").replace(" < B", " &lt; B")
        expected = expected.replace(part, changed)
    assert translated(PAGE, upper) == expected.replace("AT&T", "AT&amp;T")


def test_scripts_of_a_template_are_things_between_words() -> None:
    page = "<p>der <%= a.name %> bellt, <% if (1 < 2) %>ja</p>"
    assert [block.text for block in read(page.encode()).blocks] == ["der <x1./> bellt, <x3./>ja"]
    assert translated(page, upper) == "<p>DER <%= a.name %> BELLT, <% if (1 < 2) %>JA</p>"


def test_what_a_translation_says_is_text() -> None:
    """Signs that the model writes by itself are read back as they are."""
    page = "<p title=\"Hund\">Ein <b>Hund</b> &lt; zwei</p><p title='Hund'>x</p>"
    strange, found = "\"'& </p><z> ", list[str | None]()

    class Reader(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            found.extend([value for _, value in attrs] or [tag])

        def handle_data(self, data: str) -> None:
            found.append(data)

    Reader().feed(translated(page, lambda text: strange + text))
    assert found == [f"{strange}Hund", f"{strange}Ein ", "b", "Hund", " < zwei", f"{strange}Hund", f"{strange}x"]


@pytest.mark.parametrize("seed", range(50))
def test_any_soup_comes_back_as_it_was(seed: int) -> None:
    draw = random.Random(seed)
    parts = [
        "<p>", "</p>", "<b>", "</b>", "<i class='x'>", "</i>", "<br/>", '<img alt="a > b">', "<code>", "</code>",
        "Hund", " ", "\n", "&amp;", "&", "<", ">", "é", "<!-- x -->", "<script>", "</script>", "<td title='", "'>",
        "🐕", "</x>", "<?php x ?>", "<![CDATA[x]]>", "&#8364;", "<a", "\r\n", "\t", "\u00a0",
    ]  # fmt: skip
    page = "".join(draw.choices(parts, k=60)) + "--><p>x</p>"  # nothing is open at the end
    assert translated(page, str) == page
    translated(page, upper)


@pytest.mark.parametrize(
    ("encoding", "declared"),
    [
        ("utf-8", ""),
        ("utf-8-sig", ""),
        ("utf-16", ""),
        ("latin-1", '<meta charset="latin-1">'),
        ("cp1251", '<?xml version="1.0" encoding="windows-1251"?>'),
    ],
)
def test_the_encoding_of_a_page_stays(encoding: str, declared: str) -> None:
    text = "Привет" if encoding == "cp1251" else "Grüße"
    data = f"{declared}<p>{text}</p>".encode(encoding)
    document = read(data)
    assert document.write([block.text for block in document.blocks]) == data
    assert (
        document.write(["x €" for _ in document.blocks])
        .decode(encoding)
        .endswith("<p>x &#8364;</p>" if encoding == "latin-1" else "<p>x €</p>")
    )


def test_a_sentence_goes_on_after_what_is_no_text() -> None:
    page = (
        "<p>Wenn <math><mi>x</mi></math> gilt<style>a {}</style> und <svg><text>x</text></svg>, dann "
        "<ruby>漢<rp>(</rp><rt>かん</rt><rp>)</rp></ruby>字.</p><script>x</script>"
    )
    texts = [block.text for block in read(page.encode()).blocks]
    assert texts == ["Wenn <x1/> gilt<x3/> und <x5/>, dann <x7>漢<x9/><x10/><x11/></x7>字."]
    assert translated(page, str) == page


def test_an_empty_page_stays_empty() -> None:
    assert read(b"").write([]) == b""


def test_a_page_in_another_encoding_is_refused() -> None:
    for data, message in (
        (b"<p>Gr\xfc\xdfe", "is not text in utf-8"),
        (b"<meta charset=klingon>", "not known, klingon"),
    ):
        with pytest.raises(DamagedFile, match=message):
            read(data)

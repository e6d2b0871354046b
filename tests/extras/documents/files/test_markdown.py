"""Markdown, against the pages that markdown-it-py makes of it."""

from __future__ import annotations

import random
import re
from collections import Counter
from html.parser import HTMLParser

import pytest
from markdown_it import MarkdownIt

from nmt.extras.documents.files.document import DamagedFile
from nmt.extras.documents.files.markdown import read
from tests.extras.documents.files.changes import capitals, unchanged
from tests.extras.documents.files.shuffled import shuffled

TEXT = """\
---
title: Der Hund
---
# Der *große* Hund #

Ein Absatz mit **fettem** Text, ***beidem***, `code`,
einem [Link](http://x.de/a_b "Ein \\"Titel\\"") und ![Ein *Bild*](a.png 'so').
Dazu [ref] und [noch][ref], <https://x.de>, <b>fett</b>, <kbd>Strg</kbd>[^1], $a_1 * b_1$.@
Neue Zeile \\* mit &copy; 5 < 6 & AT&T.\\
Letzte <br> Zeile

> Ein Zitat
> über zwei Zeilen.
>
> - [ ] eine Aufgabe
weiter
  1) eins
     eins

> [!NOTE]
> Ein Hinweis

| A *b* | C \\| d |
|-------|--------|
| eins  | `x\\|y` zwei\\|drei |
- | x | y
  | --- | ---
  | z | [ref]

Titel
über zwei
===

    code

```py
code
```

:::note
Text
:::

<div>
HTML
</div>

[ref]: http://x.de "Titel"
[^1]: Eine Fußnote.
""".replace("@", "  ")


def texts(text: str) -> list[str]:
    return [block.text for block in read(text.encode()).blocks]


def translated(text: str, *translations: str) -> str:
    return read(text.encode()).write(translations).decode()


def test_blocks() -> None:
    assert texts(TEXT) == [
        "Der <x1>große</x1> Hund",
        "Ein Absatz mit <x1>fettem</x1> Text, <x5><x6>beidem</x6></x5>, <x11/>, einem <x15>Link</x15> und "  # noqa: ISC004
        "<x19>Ein <x21>Bild</x21></x19>. Dazu <x28>ref</x28> und <x32>noch</x32>, <x36/>, <x38>fett</x38>, "
        "<x42/><x43/>, <x45/>.",
        'Ein "Titel"', "so", "Neue Zeile * mit © 5 &lt; 6 &amp; AT&amp;T.", "Letzte", "Zeile",
        "Ein Zitat über zwei Zeilen.", "eine Aufgabe weiter", "eins eins", "Ein Hinweis", "A <x1>b</x1>", "C <x1/> d",
        "eins", "zwei<x1/>drei", "x", "y", "z", "Titel über zwei", "Text", "Eine Fußnote.",
    ]  # fmt: skip
    places = [block.place for block in read(TEXT.encode()).blocks]
    assert places[:5] == ["line 4", "line 6", "line 6, title", "line 6, title", "line 6"]
    for text in (TEXT, TEXT.replace("\n", "\r\n"), "\ufeff" + TEXT, TEXT.replace("\n", "\r")):
        assert unchanged(read(text.encode())) == text.encode()
        assert texts(text) == texts(TEXT)


class _Page(HTMLParser):
    """Writes the tags of a page, with other signs in texts."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.written = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = (
            (name, " ".join(value.upper().split()) if value and name in ("alt", "title") else value)
            for name, value in attrs
        )
        self.written += f"<{tag} {marks(str(list(values)))}>"

    def handle_endtag(self, tag: str) -> None:
        self.written += f"</{tag}>"

    def handle_data(self, data: str) -> None:
        self.written += marks(data).upper()


def marks(text: str) -> str:
    return text.replace("<", "‹").replace(">", "›")


def parts(text: str) -> list[str]:
    """Returns the tags and the texts of the page of a text, in capitals and without white space at their ends."""
    page = MarkdownIt("commonmark").enable(["table", "strikethrough"]).render(text)
    written = re.split("(<[^>]*>)", re.sub(r"[ \n\t]+", " ", _Page(page).written))
    return [part for part in map(str.strip, written) if part]


def test_a_page_changes_its_words_alone() -> None:
    out = capitals(read(TEXT.encode()))
    assert parts(out) == parts(TEXT)
    for part in (
        "---\ntitle: Der Hund\n---\n# DER *GROSSE* HUND #\n\nEIN ABSATZ MIT **FETTEM** TEXT, ***BEIDEM***, `code`, ",
        '[LINK](http://x.de/a_b "EIN \\"TITEL\\"") UND ![EIN *BILD*](a.png \'SO\'). DAZU [REF][ref] UND\n[NOCH][ref], ',
        "<https://x.de>, <b>FETT</b>, <kbd>Strg</kbd>[^1], $a_1 * b_1$.  \nNEUE ZEILE * MIT © 5 < 6 & AT&T.\\\n",
        "> EIN ZITAT ÜBER\n> ZWEI ZEILEN.\n>\n> - [ ] EINE AUFGABE\nWEITER\n  1) EINS\n     EINS\n\n",
        "\n\n> [!NOTE]\n> EIN HINWEIS\n",
        "| EINS  | `x\\|y` ZWEI\\|DREI |\n- | X | Y\n  | --- | ---\n  | Z | [ref]\n",
        ":::note\nTEXT\n:::\n",
        "[^1]: EINE FUSSNOTE.\n",
    ):
        assert part in out


@pytest.mark.parametrize("translation", [
    "1. a", "12) a", "# a", "- a", "+ a", "> a", "* a", "=== a", "~~~ a", "```", "a *b* c", "a _b_ c_d_e", "[a](b)",
    "[ref]", "![a](b)", "a <b> c", "a & b &amp; c", "&copy", "a \\* \\ b\\", "`a`", "~~a~~", "a | b", "<!-- a -->",
    "<http://a.b>", "a #", "***", "a  ", "$a$", "[^1]", "--", "a<", "a&", "a!",
])  # fmt: skip
def test_what_a_translation_says_is_text(translation: str) -> None:
    for begin, end in (("", ""), ("# ", " #"), ("- ", ""), ("| x |\n|---|\n| ", " |"), ("> ", "")):
        text = f"{begin}Hund{end}\n\n[ref]: x\n"
        out = translated(text, *(["x"] if "---" in text else []), translation)
        words = marks(" ".join(translation.split()).upper())
        assert parts(out) == [words if part == "HUND" else part for part in parts(text)]


@pytest.mark.parametrize(
    ("text", "translation", "expected"),
    [
        ("Ein **Hund:** bellt", "<x1>狗：</x1>叫", "**狗：** 叫"),
        ("Ein _Hund_ bellt", "a<x1>b</x1>c", "a _b_ c"),
        ("Ein *Hund* bellt", "a<x1>b</x1>c", "a*b*c"),
        ("Ein *Hund* bellt", "a <x1></x1> c", "a  c"),
        ("Ein *Hund* *bellt*", "<x1>a</x1><x5>b</x5>", "*a* *b*"),
        ("`a`, `b` und c `d`", "<x1/>, und c", "`a` `b`, und c `d`"),
        ("Ein [Hund](x) bellt", "Ja!<x1></x1>", "Ja\\![](x)"),
        ("Der ![Hund] und [Hund]\n\n[Hund]: x", "a <x1>d</x1> b <x5>c</x5>", "a ![d][Hund] b [c][Hund]\n\n[Hund]: x"),
    ],
)
def test_emphasis_is_read_as_such(text: str, translation: str, expected: str) -> None:
    assert translated(text, translation) == expected


def tags(text: str) -> Counter[str]:
    return Counter(re.findall("<[^>]*>", re.sub(r"\('alt', '[^']*'\)", "", "".join(parts(text)))))


def test_other_words_keep_their_elements() -> None:
    draw = random.Random(1)
    elements = (
        "*%s*", "**%s**", "***%s***", "_%s_", "~~%s~~", "[%s](x (t))", "![%s](<y z>)", "[%s][ref]", "<b>%s</b>",
        "`%s`", "[`%s`](x)", "**a [%s](x) b**", "*a **%s***", "%s", "%s", "%s",
    )  # fmt: skip
    for _ in range(400):
        words = [draw.choice(elements) % draw.choice(("Hund", "c d,", "(x)", "e!", "狗：")) for _ in range(8)]
        text = draw.choice(("%s", "# %s", "> %s", "- %s", "|x|\n|-|\n| %s |")) % " ".join(words) + "\n\n[ref]: z\n"
        document = read(text.encode())
        out = document.write([shuffled(block.text, draw) for block in document.blocks]).decode()
        assert tags(out) == tags(text), (text, out)


@pytest.mark.parametrize("seed", range(60))
def test_any_text_comes_back_as_it_was(seed: int) -> None:
    draw = random.Random(seed)
    words = [
        "Hund ", "Hund", "hund", "**", "*", "_", "`", "~~", "[", "](x)", "][ref]", "]", "![", "](x 'y')", "\n", "\n",
        "\n\n", "\n> ", "\n- ", "\n  ", "\n1. ", "\n# ", "\n| a | b |\n|---|---|\n| ", " | ", "\t", "\n```\n",
        "\n---\n", "a\u00a0b", "🐕", "$x$", "\n    ", "\n[ref]: x\n", "\n===\n", "!",
    ]  # fmt: skip
    marked = ["<b>", "</b>", "<br>", "&amp;", "&", "<", "<https://a.b>", "<kbd>", "</kbd>", "<!-- x -->", "\n<div>\n"]
    marked += ["[^1]", "\\", "  \n"]
    for _ in range(5):
        text = "".join(draw.choices(words, k=40))
        document = read(text.encode())
        assert unchanged(document) == text.encode()
        assert parts(capitals(document)) == parts(text), text
        text = "".join(draw.choices([*words, *marked, *marked], k=40))
        document = read(text.encode())
        assert unchanged(document) == text.encode()
        capitals(document)


def test_admonitions_and_definitions() -> None:
    text = 'Wort\n: Ein Sinn\n\n!!! note "Achtung"\n    Der Hund\n    bellt\n\n??? tip\n    Nein !!! Ja\n'
    assert texts(text) == ["Wort", "Ein Sinn", '"Achtung"', "Der Hund bellt", "Nein !!! Ja"]
    assert capitals(read(text.encode())) == text.upper().replace("NOTE", "note").replace("TIP", "tip")


def test_other_encodings_are_refused() -> None:
    with pytest.raises(DamagedFile, match="is too long to be translated at once; divide it"):
        read(b"a" * (1 + (4 << 20)))
    with pytest.raises(DamagedFile, match="is not text in utf-8"):
        read("Grüße".encode("latin-1"))
    assert texts("") == []
    for text in (
        "Hund " + "[" * 3000,
        "> " * 500 + "Hund",
        "*a " * 3000,
        "Hund\n\n" * 3000,
        "<" * 3000 + "![](" * 1000,
    ):
        assert unchanged(read(text.encode())) == text.encode()


def test_displayed_formulas_keep_their_bytes() -> None:
    text = (
        "Hund\n$$\n=\\text{a | b}\n- *c\n$$\n\nHund $$a = *b$$ bellt $$c$$. Von $$ zu\n\n> $$\n> Hund\n> $$\n\n"
        "\\begin{equation}\na *= 3\n\n\\begin{b*}\n+ Hund\n\\end{b*}\n\\end{equation}\n\nKatze: `$$ x $$`\n"
    )
    document = read(text.encode())
    assert [block.text for block in document.blocks] == [
        "Hund", "Hund <x1/> bellt <x3/>. Von $$ zu", "Katze:",
    ]  # fmt: skip
    changed = [block.text.replace("Hund", "dog") for block in document.blocks]
    found = document.write(changed).decode()
    assert found == text.replace("Hund\n$$", "dog\n$$", 1).replace("Hund $$a", "dog $$a")

from __future__ import annotations

from typing import ClassVar

import pytest

from nmt.extras.documents.files.paragraphs import ParagraphReader, Titles
from nmt.extras.documents.files.runs import TextRun
from nmt.extras.documents.files.xml_tokens import Token


class Reader(ParagraphReader):
    """A format with an element for each role."""

    namespaces: ClassVar = {"urn:x": "x"}
    roles: ClassVar = {
        "x:p": "paragraph", "x:r": "run", "x:a": "container", "x:h": "head", "x:c": "content", "x:br": "break",
        "x:sp": "space", "x:hy": "hyphen", "x:no": "ignored", "x:left": "left", "x:start": "range", "x:end": "range",
    }  # fmt: skip
    attributes: ClassVar = {"x:img": ("alt",)}

    def run(self, outer: TextRun, token: Token) -> TextRun:
        tag = self.source[token.begin : token.end]
        return TextRun(outer.format + tag, outer.begin + tag, f"</{token.name}>{outer.end}")


def texts(content: str) -> list[str]:
    document = Reader(f'<doc xmlns="urn:x">{content}</doc>'.encode()).document
    assert document.write([block.text for block in document.blocks]).decode() == f'<doc xmlns="urn:x">{content}</doc>'
    return [block.text for block in document.blocks]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("<p>a <r>b</r> cde</p>x<p>1</p><p/>", ["a <x1>b</x1> cde", "1"]),
        ("<p>a<sp/>b<hy/>c<no>x</no>d<img/>e</p>", ["a b-cd<x6/>e"]),
        ("<p>a <a><h>x</h><c>b</c></a> c</p>", ["a <x1>b</x1> c"]),
        ("<p>a <a>b<br/>c</a> d</p>", ["a", "b", "c", "d"]),
        ("<p>a <start id='1'/>b<end id='1'/> c</p>", ["a <x1>b</x1> c"]),
        ("<p>a <start id='1'/>b <a>c<end id='1'/></a> d</p>", ["a <x1/>b <x3>c<x5/></x3> d"]),
        ("<p>a <box><p>b</p></box> c</p><left><p>d</p></left>", ["a <x1/> c", "b"]),
        ("<p>a <p>b</p> c</p><p>d</p>", ["b", "d"]),
        ("<p>a <img alt='\"b\"'/> c</p><img alt=''/>", ["a <x1/> c", '"b"']),
        ("<p>a &#98; <![CDATA[<c>]]></p>", ["a b &lt;c&gt;"]),
    ],
)
def test_roles(content: str, expected: list[str]) -> None:
    assert texts(content) == expected


def test_titles() -> None:
    content = (
        b'<x xmlns:d="http://purl.org/dc/elements/1.1/"><d:title>Ein Titel</d:title><d:creator>Ich</d:creator></x>'
    )
    document = Titles(content).document
    assert document.write(["A title"]) == content.replace(b"Ein Titel", b"A title")

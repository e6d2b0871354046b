from __future__ import annotations

import pytest

from nmt.extras.documents.files.document import Block, DamagedFile, Span, TextDocument, decoded, escaped, line_names


def test_only_the_markup_of_the_source_stays() -> None:
    source = "<x1>AT&amp;T</x1>&nbsp;x"
    assert escaped("<x1>a & b</x1>", source) == "<x1>a &amp; b</x1>"
    assert escaped("&amp;&amp;&lt;&nbsp;<x1>", source) == "&amp;&amp;&amp;lt;&nbsp;<x1>"
    assert escaped("<x1><x1></x1></x2>", source) == "<x1>&lt;x1&gt;</x1>&lt;/x2&gt;"
    assert escaped("&copy; &copy; &copy;", source) == "&amp;copy; &amp;copy; &amp;copy;"
    assert escaped("a < b > c <", source) == "a &lt; b &gt; c &lt;"


def test_spans_inside_tags_are_written_with_them() -> None:
    text = "-- one {two:three} four --"
    outer = Span(3, 23, Block("one <x1/> four", ""), {"<x1/>": (7, 18)})
    inner = Span(12, 17, Block("three", ""), spell=str.upper)
    last = Span(24, 26, Block("--", ""))
    document = TextDocument(text, [inner, last, outer])
    texts = [block.text for block in document.blocks]
    assert texts == ["one <x1/> four", "three", "--"]
    assert document.write(texts) == text.encode()
    assert document.write(["<x1/>: 1 & 4", "three", "--"]) == b"-- {two:three}: 1 &amp; 4 --"
    assert document.write(["one <x1/> four", "drei", "=="]) == b"-- one {two:DREI} four =="
    assert document.write(["<x1/> eins", "drei", "--"]) == b"-- {two:DREI} eins --"


def test_a_wrong_encoding_is_refused() -> None:
    for data, message in (
        (b"<a>\xff</a>", "is not text in utf-8"),
        (b'<?xml version="1.0" encoding="klingon"?><a/>', "not known, klingon"),
        (b'<?xml version="1.0" encoding="hex"?><a/>', "not known, hex"),
        (b'<?xml version="1.0" encoding="idna"?><a/>', "is not text in idna"),  # it has no references
        ("<a/>".encode("utf-16-le"), "is not text in utf-8"),  # no mark says what it is
        (
            b'<?xml version="1.0" encoding="utf-7"?><a>x+-</a>+',
            "is not text in utf-7",
        ),  # it would be written in another way
    ):
        with pytest.raises(DamagedFile, match=message):
            decoded(data)


def test_lines_are_counted_from_one() -> None:
    line_of = line_names("a\n\nb")
    assert [line_of(offset) for offset in (0, 3, 4)] == ["line 1", "line 3", "line 3"]

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from nmt.extras.documents.files import xml_tokens
from nmt.extras.documents.files.document import DamagedFile, decoded
from nmt.extras.documents.files.xml_tokens import tokens

TEXT = """\
<?xml version="1.0"?>
<!DOCTYPE a>
<a x="1 &amp; 2" w:y='/>'>Grü&#223;e<b/><c>é &lt; x</c><!-- <hm> --><d></d>
<e y="/>"></e><![CDATA[<raw>]]> 🐕 <?pi x?>end</a>
"""


def test_tokens_have_no_gaps_and_are_those_of_another_parser() -> None:
    found = tokens(TEXT.replace("w:y", "wy"))
    assert "".join(TEXT.replace("w:y", "wy")[token.begin : token.end] for token in found) == TEXT.replace("w:y", "wy")
    root = ElementTree.fromstring(TEXT.replace("w:y", "wy"))
    assert [token.name for token in found if token.kind in ("open", "alone")] == [each.tag for each in root.iter()]
    assert next(token.attributes for token in found if token.name == "a") == root.attrib
    assert [(token.name, token.kind) for token in found if token.name in ("b", "d", "e")] == [
        ("b", "alone"), ("d", "open"), ("d", "close"), ("e", "open"), ("e", "close"),
    ]  # fmt: skip
    texts = [TEXT.replace("w:y", "wy")[token.begin : token.end] for token in found if token.kind in ("text", "cdata")]
    assert "".join(texts).replace("&#223;", "ß").replace("&lt;", "<") == "".join(root.itertext())


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "latin-1"])
def test_a_file_is_read_in_the_encoding_that_it_names(encoding: str) -> None:
    declared = "latin-1" if encoding == "latin-1" else "utf-8"
    data = f'<?xml version="1.0" encoding="{declared}"?><a>ü</a>'.encode(encoding)
    text, name = decoded(data)
    assert text.encode(name) == data
    assert "ü" in text
    assert [token.kind for token in tokens(text)][-3:] == ["open", "text", "close"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<a>", "is not well-formed XML, line 1: no element found"),
        ("<a>\n</b>", "line 2: mismatched tag"),
        ('<!DOCTYPE a [<!ENTITY x "y">]><a>&x;</a>', "declares entities of its own"),
        ('<!DOCTYPE a [<!ENTITY % x SYSTEM "file:///etc/passwd">%x;]><a/>', "declares entities of its own"),
        ("<a>" * 2000, "nests its elements too deep"),
    ],
)
def test_other_texts_are_refused(text: str, message: str) -> None:
    with pytest.raises(DamagedFile, match=message):
        tokens(text)


def test_a_text_of_too_many_tokens_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(xml_tokens, "MOST_TOKENS", 9)
    assert len(tokens(f"<a>{'<b/>' * 3}</a>")) == 5
    with pytest.raises(DamagedFile, match="is too long"):
        tokens(f"<a>{'<b/>' * 6}</a>")

"""Entries of dictionaries, against entries read by eye from small files of each format."""

from __future__ import annotations

import gzip
from collections import Counter
from pathlib import Path

import pytest
from lxml import etree

from nmt.core.errors import InputError
from nmt.extras.corpus.augment.dictionary import entries_of, read_entries, read_rows

DING = """# Version :: a comment
Grille {f} [zool.] (Insekt); Heimchen {n} /HC/ | Grillen {pl} :: cricket (insect) <crickett> | crickets

jdn./etw. pflegen; etw. hüten {vt} | pflegend :: to tend sb./sth.; to care for sb. | tending
singen {vi} :: to sing {sang; sung}
an etw. {+Dat.} hängen {vi} :: to be attached to sth.
Uferweg {m}; ein langer schmaler Weg an einem Ufer :: path/track on the bank; bank path
lau {adj} | lauer :: mild
sb’s Recht :: sb’s right
"""
OF_DING = [
    ("Grille", "cricket", "f"),
    ("Heimchen", "cricket", "n"),
    ("Grillen", "crickets", "pl"),
    ("pflegen", "tend", "vt"),
    ("hüten", "tend", "vt"),
    ("pflegend", "tending", ""),
    ("singen", "sing", "vi"),
    ("Uferweg", "bank path", "m"),
    ("Recht", "right", ""),
]

TEI = """<?xml version="1.0" encoding="UTF-8"?>
<?xml-stylesheet type="text/css" href="freedict.css"?>
<TEI xmlns="http://www.tei-c.org/ns/1.0"><teiHeader><fileDesc><titleStmt><title>deu-eng</title></titleStmt>
<publicationStmt><p>A sample.</p></publicationStmt><sourceDesc><p>None.</p></sourceDesc></fileDesc></teiHeader>
<text><body xml:lang="de">
<entry xml:id="ufer"><form type="lemma"><orth>Ufer</orth><pron>uːfɐ</pron></form>
 <form type="infl"><orth>Ufern</orth></form>
 <gramGrp><pos>n</pos> <gen>neut</gen></gramGrp>
 <sense n="1"><usg type="dom">geo</usg><cit type="trans" xml:lang="en"><quote>bank</quote></cit>
  <cit type="trans" xml:lang="en"><quote>shore</quote></cit>
  <cit type="example"><quote>am Ufer</quote><cit type="trans"><quote>on the bank</quote></cit></cit></sense>
 <sense n="2"><cit type="trans"><quote><oRef/>bank
   side</quote></cit></sense></entry>
<entry><form><orth>säen</orth><orth>aussäen</orth></form><gramGrp><pos>v</pos></gramGrp>
 <sense><sense><cit type="trans"><quote>to sow (seeds)</quote></cit></sense></sense></entry>
<entry><form><orth>leer</orth></form><sense><note>none</note></sense></entry>
</body></text></TEI>
"""
TEI_WITH_PREFIX = """<t:TEI xmlns:t="http://www.tei-c.org/ns/1.0"><t:entry><t:form><t:orth>Ufer</t:orth></t:form>
<t:cit type="trans"><t:quote>bank</t:quote></t:cit></t:entry></t:TEI>
"""
OF_TEI = [("Ufer", "bank", "n neut"), ("Ufer", "bank side", "n neut"), ("säen", "sow", "v"), ("aussäen", "sow", "v")]


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("de-en", DING, OF_DING),
        ("deu-eng.tei", TEI, OF_TEI),
        ("de-en.tsv", "Grille {f}\tcricket\nUfer; Strand\tbank [of a river]\nzu, lang\t(none)\n",
         [("Grille", "cricket", "f"), ("Ufer", "bank", ""), ("Strand", "bank", "")]),
        ("de-en.csv", 'Grille,"cricket; grig"\nUfer,bank\n', [("Grille", "cricket", ""), ("Ufer", "bank", "")]),
        ("de-en.tsv", "#words\tof\nGrille\tcricket\n", [("Grille", "cricket", "")]),
        ("de-en.tsv", "Grille\tNN\tcricket\nUfer\tNN\tbank\n", [("Grille", "cricket", ""), ("Ufer", "bank", "")]),
        ("de-en.tsv", "das Ufer\tthe bank\nElse\tan Else\nla\tthere\nvor\tin the way\n",
         [("Ufer", "bank", ""), ("Else", "Else", ""), ("la", "there", ""), ("vor", "in the way", "")]),
        ("deu-eng.tei", TEI_WITH_PREFIX, [("Ufer", "bank", "")]),
    ],
)  # fmt: skip
@pytest.mark.parametrize("compressed", [False, True])
def test_entries_of_each_format(
    tmp_path: Path, name: str, text: str, expected: list[tuple[str, str, str]], compressed: bool
) -> None:
    path = tmp_path / name
    path.write_bytes(gzip.compress(text.encode()) if compressed else text.encode())
    assert [tuple(entry) for row in read_rows(path) for entry in entries_of(row)] == expected


def test_headwords_and_first_translations_are_those_that_lxml_finds(tmp_path: Path) -> None:
    path = tmp_path / "sample.tei"
    path.write_text(TEI, encoding="utf-8")
    tei = {"t": "http://www.tei-c.org/ns/1.0"}
    found = etree.parse(path).xpath("//t:form[not(@type='infl')]/t:orth[../..//t:cit]/text()", namespaces=tei)
    assert found == list(dict.fromkeys(entry.source for row in read_rows(path) for entry in entries_of(row)))


def test_the_language_of_the_sources_is_the_source(tmp_path: Path) -> None:
    path = tmp_path / "dictionary"
    path.write_text(DING, encoding="utf-8")
    counts = Counter(["die", "grillen", "singen"]), Counter(["crickets", "sing", "the", "bank"])
    straight, crossed = read_entries(path, counts), read_entries(path, counts[::-1])
    assert [tuple(entry) for entry in straight] == OF_DING
    assert ("cricket", "Grille", "f") in crossed
    assert ("care for", "pflegen", "vt") in crossed


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Ufer :: bank\n\nStrand : beach\n", ":3: has no ' :: ' between source and target; mend the line"),
        ("%h Ufer\nbank\n", ": 2 of 2 rows are no pairs: 2 without exactly one TAB"),
        ("", ": empty; a corpus needs at least one pair"),
        ("etw. :: (thing)\n", ": has no entry of at most 5 words on both sides; give another dictionary"),
        (TEI.replace("</sense></entry>", "</entry>", 1), ": not well-formed XML: mismatched tag: line 13, column 23"),
        (TEI.replace("UTF-8", "Big5", 1), ": names an encoding that is not read in XML, Big5; convert it"),
        (TEI.replace("<TEI", '<!DOCTYPE TEI [<!ENTITY a "b">]>\n<TEI', 1), ": declares entities, which can fill"),
    ],
)
def test_a_faulty_dictionary_is_one_line(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "dictionary"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError) as raised:
        read_entries(path, [{}, {}])
    assert str(raised.value).startswith(f"{path}{message}")


@pytest.mark.parametrize("text", [DING, TEI])
def test_a_cut_file_is_one_line(tmp_path: Path, text: str) -> None:
    path = tmp_path / "dictionary.gz"
    path.write_bytes(gzip.compress(text.encode() * 40)[:-20])
    with pytest.raises(InputError) as raised:
        read_entries(path, [{}, {}])
    assert str(raised.value) == f"{path}: the compressed file is damaged or cut short; fetch it again"

"""XLIFF, against ElementTree."""

from __future__ import annotations

import re
from collections.abc import Iterable
from xml.etree import ElementTree

import pytest

from nmt.extras.documents.files.document import DamagedFile
from nmt.extras.documents.files.xliff import read
from tests.extras.documents.files.changes import capitals, unchanged

OLD = """\
<?xml version="1.0" encoding="utf-8"?>
<xliff xmlns="urn:oasis:names:tc:xliff:document:1.2" version="1.2">
 <file original="a" source-language="de">
  <header><note>Der Hund</note></header><body>
  <trans-unit id="1">
    <source>Der <g id="1">große</g> Hund<x id="2" equiv-text="{{a}}"/> &amp; ich</source>
    <note>Notiz</note>
  </trans-unit>
  <trans-unit id="2">
   <source>Ein <bpt id="1">&lt;b></bpt>Hund<ept id="1">&lt;/b></ept><ph id="3"><sub>x</sub></ph>bellt</source>
   <target state="new" equiv-trans='no'/></trans-unit>
  <trans-unit id="3"><source>Ein Hund</source><target state='needs-translation'>Ein Hund</target></trans-unit>
  <trans-unit id="4"><source>Fertig</source><target>Done</target></trans-unit>
  <trans-unit id="5" approved="yes"><source>Fertig</source></trans-unit>
  <trans-unit id="6"><source>Fertig</source><target state="final"></target></trans-unit>
  <group translate="no"><trans-unit id="7"><source>Nein</source></trans-unit>
   <trans-unit id="8" translate="yes">
    <source>Ja, <mrk mtype="protected" translate="no">Anna</mrk></source></trans-unit></group>
  <trans-unit id="9"><source>Eins. Zwei.</source>
   <seg-source><g id="1"><mrk mtype="seg" mid="0">Eins.</mrk>
    <mrk mtype="seg" mid="1">Zwei <bx id="1"/>b<ex id="1"/>.</mrk></g></seg-source>
   <target><mrk mtype="seg" mid="0"/></target>
   <alt-trans><source>Alt</source><target>Old</target></alt-trans></trans-unit>
  <trans-unit id="10"><source><![CDATA[Ein <b>Hund</b> & ich]]></source></trans-unit>
  <trans-unit id="11"><source>{VAR_PLURAL, plural,
   =0 {kein Hund} =1 {ein Hund} other {<x id="I" equiv-text="{{n}}"/> Hunde}}</source></trans-unit>
  <trans-unit id="12" xml:space="preserve"><source>Erste Zeile.
  Zweite Zeile.</source></trans-unit>
  <trans-unit id="13"><source>–</source></trans-unit>
  <trans-unit id="14"><source/></trans-unit>
 </body></file>
</xliff>
"""

NEW = """\
<xliff xmlns="urn:oasis:names:tc:xliff:document:2.0" version="2.1" srcLang="de" trgLang="en"><file id="f">
 <unit id="1"><notes><note>Notiz</note></notes>
  <segment id="a"><source>Der <pc id="1">große</pc> <sc id="2"/>Hund<ec startRef="2"/>.</source></segment>
  <ignorable><source> </source></ignorable>
  <segment state="initial" subState="x:y">
   <source>Er <mrk id="m" translate="no">Bello</mrk> b<cp hex="001A"/>ellt.<ph id="4"/></source>
   <target></target></segment>
 </unit>
 <unit id="2"><segment state="final"><source>Ja</source><target/></segment></unit>
 <unit id="3"><segment><source>Ja</source><target>Yes</target></segment></unit>
 <unit id="4" translate="no"><segment><source>Ja</source></segment></unit>
 <unit id="5"><segment><source>Noch ein Hund</source><target>Noch ein Hund</target></segment></unit>
</file></xliff>
"""


def texts(text: str) -> list[str]:
    return [block.text for block in read(text.encode()).blocks]


def test_blocks() -> None:
    assert texts(OLD) == [
        "Der <x1>große</x1> Hund<x5/> &amp; ich", "Ein <x1>Hund</x1><x4/>bellt", "Ein Hund", "Ja,", "Eins.",
        "Zwei <x1>b</x1>.", "Ein <x1>Hund</x1> &amp; ich", "kein Hund", "ein Hund", "Hunde", "Erste Zeile.",
        "Zweite Zeile.",
    ]  # fmt: skip
    assert texts(NEW) == ["Der <x1>große</x1> <x5>Hund</x5>.", "Er <x1/> b<x3/>ellt.", "Noch ein Hund"]
    assert [block.place for block in read(OLD.encode()).blocks][:2] == ["line 5", "line 9"]


def local(element: ElementTree.Element) -> str:
    return element.tag.rpartition("}")[2]


def without_new(text: str, changed: set[str]) -> ElementTree.Element:
    """Takes out what a translation may change: targets, states, and white space between elements."""
    root = ElementTree.fromstring(text)
    for parent in list(root.iter()):
        if local(parent) in ("trans-unit", "segment") and parent.get("id", "") in changed:
            for child in [each for each in parent if local(each) == "target"]:
                parent.remove(child)
        if local(parent) in ("trans-unit", "segment", "unit"):
            for child in parent:
                child.tail = ""
    return root


@pytest.mark.parametrize(
    "text", [OLD, NEW.replace("<segment state", '<segment id="b" state').replace("<segment>", '<segment id="c">')]
)
def test_targets_are_sources_in_another_language(text: str) -> None:
    assert unchanged(read(text.encode())) == text.encode()
    out = capitals(read(text.encode()))
    before, after = ElementTree.fromstring(text), ElementTree.fromstring(out)
    units: Iterable[tuple[ElementTree.Element, ElementTree.Element]] = list(
        zip(
            *([each for each in root.iter() if local(each) in ("trans-unit", "segment")] for root in (before, after)),
            strict=True,
        )
    )
    changed = set()
    for old, new in units:
        targets = [[each for each in unit if local(each) == "target"] for unit in (old, new)]
        if [ElementTree.tostring(each) for each in targets[0]] == [ElementTree.tostring(each) for each in targets[1]]:
            continue
        changed.add(new.get("id", ""))
        source = next((each for each in new if local(each) == "seg-source"), None)
        source = next(each for each in new if local(each) == "source") if source is None else source
        (target,) = targets[1]
        assert [(each.tag, each.attrib) for each in list(target.iter())[1:]] == [
            (each.tag, each.attrib) for each in list(source.iter())[1:]
        ]
        if "VAR_PLURAL" not in (source.text or ""):
            assert "".join(target.itertext()).upper() == "".join(source.itertext()).upper()
        if local(new) == "trans-unit":
            assert (target.get("state"), target.get("state-qualifier")) == ("needs-review-translation", "leveraged-mt")
        else:
            assert (new.get("state"), new.get("subState")) == ("translated", None)
    assert len(changed) == (8 if text == OLD else 3)
    roots = [without_new(each, changed) for each in (text, out)]
    for root in roots:
        for each in root.iter():
            if local(each) == "segment":
                each.attrib.pop("state", "")
                each.attrib.pop("subState", "")
    assert ElementTree.tostring(roots[0]) == ElementTree.tostring(roots[1])


def test_targets_as_they_are_written() -> None:
    out = capitals(read(OLD.encode()))
    state = 'state="needs-review-translation" state-qualifier="leveraged-mt"'
    for part in (
        (
            f'</source>\n    <target {state}>DER <g id="1">GROSSE</g> HUND<x id="2" equiv-text="{{{{a}}}}"/>'
            " &amp; ICH</target>\n    <note>"
        ),
        f"<target equiv-trans='no' {state}>EIN <bpt",
        f"<target {state}><![CDATA[EIN <b>HUND</b> & ICH]]></target>",
        '=0 {KEIN HUND} =1 {EIN HUND} other {<x id="I" equiv-text="{{n}}"/> HUNDE}}</target>',
        ">ERSTE ZEILE.\n  ZWEITE ZEILE.</target>",
        '><g id="1"><mrk mtype="seg" mid="0">EINS.</mrk>\n    <mrk mtype="seg" mid="1">ZWEI <bx',
    ):
        assert part in out
    prefixed = re.sub(r"<(/?)(?=\w)(?!\?)", r"<\1y:", NEW).replace("xmlns=", "xmlns:y=")
    assert '<y:segment id="a" state="translated"><y:source>' in capitals(read(prefixed.encode()))
    assert "</y:source><y:target>DER " in capitals(read(prefixed.encode()))


def test_what_a_translation_says_is_text() -> None:
    document = read(OLD.encode())
    strange = [f"]]> & < \" ' </target> {block.text}" for block in document.blocks]
    root = ElementTree.fromstring(document.write(strange))
    found = {
        unit.get("id"): "".join(target.itertext())
        for unit in root.iter()
        for target in unit
        if local(target) == "target"
    }
    assert found["3"] == "]]> & < \" ' </target> Ein Hund"
    assert found["10"] == "]] > & < \" ' </target> Ein <b>Hund</b> & ich"


def test_other_files_are_refused() -> None:
    for text, message in (
        ("<html/>", "is not XLIFF of version"),
        ('<xliff version="3.0"/>', "is not XLIFF of version"),
        (OLD[:-20], "not well-formed"),
        ('<!DOCTYPE xliff [<!ENTITY a "b">]><xliff version="1.2">&a;</xliff>', "entities"),
    ):
        with pytest.raises(DamagedFile, match=message):
            read(text.encode())
    assert texts('<xliff version="1.2"/>') == []
    nested = "{a, plural, other {" * 30 + "Hund" + "}}" * 30
    for source in (nested, "{a, plural, one {Hund}", "{a, plural, one Hund}"):
        assert texts(f'<xliff version="1.2"><trans-unit><source>{source}</source></trans-unit></xliff>') == []

"""XLIFF, against lxml."""

from __future__ import annotations

import re
from typing import Any

import pytest
from lxml import etree

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
  <trans-unit id="16"><source>&lt;i&gt;Tom&lt;/i&gt; &amp;amp; &amp;Anna<ph id="1">Code</ph></source></trans-unit>
  <trans-unit id="15"><source>Ein <x id="START_LINK_1"/>Link<x id="CLOSE_LINK"/></source></trans-unit>
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
        "Der <x1>große</x1> Hund<x5/> &amp; ich", "Ein <x1>Hund</x1><x4/>bellt", "Ein Hund", "Ja,",
        "<x0>Eins.</x0> <x4>Zwei <x6>b</x6>.</x4>", "Ein &lt;b&gt;Hund&lt;/b&gt; &amp; ich", "kein Hund", "ein Hund",
        "Hunde", "Erste Zeile.", "Zweite Zeile.", "&lt;i&gt;Tom&lt;/i&gt; <x1/> <x3/>Anna", "Ein <x1>Link</x1>",
    ]  # fmt: skip
    assert texts(NEW) == ["Der <x1>große</x1> <x5>Hund</x5>.", "Er <x1/> b<x3/>ellt.", "Noch ein Hund"]
    assert [block.place for block in read(OLD.encode()).blocks][:2] == ["line 5", "line 9"]


def units(text: str) -> list[Any]:
    return list(etree.fromstring(text.encode()).iter("{*}trans-unit", "{*}segment"))


def seen(element: Any) -> str:
    return " ".join("".join(element.itertext()).upper().split())


@pytest.mark.parametrize("text", [OLD, NEW])
def test_targets_are_sources_in_another_language(text: str) -> None:
    assert unchanged(read(text.encode())) == text.encode()
    out = capitals(read(text.encode()))
    changed = 0
    for old, new in zip(units(text), units(out), strict=True):
        targets = [unit.find("{*}target") for unit in (old, new)]
        if etree.tostring(old) == etree.tostring(new):
            continue
        changed += 1
        source = new.find("{*}source") if new.find("{*}seg-source") is None else new.find("{*}seg-source")
        assert [(each.tag, each.attrib) for each in targets[1].iterdescendants()] == [
            (each.tag, each.attrib) for each in source.iterdescendants()
        ]
        if new.get("id") != "2":  # which has code
            assert seen(targets[1]) == seen(source)
        if text == OLD:
            assert targets[1].attrib.items()[-2:] == [
                ("state", "needs-review-translation"), ("state-qualifier", "leveraged-mt"),
            ]  # fmt: skip
        else:
            assert (new.get("state"), new.get("subState")) == ("translated", None)
        # everything else is as it was
        new.remove(targets[1])
        if targets[0] is not None:
            old.remove(targets[0])
        for unit in (old, new):
            unit.attrib.pop("state", None)
            unit.attrib.pop("subState", None)
        assert re.sub(r">\s+<", "><", etree.tostring(old).decode()) == re.sub(
            r">\s+<", "><", etree.tostring(new).decode()
        )
    assert changed == (10 if text == OLD else 3)


def test_targets_as_they_are_written() -> None:
    out = capitals(read(OLD.encode()))
    state = 'state="needs-review-translation" state-qualifier="leveraged-mt"'
    for part in (
        (
            f'</source>\n    <target {state}>DER <g id="1">GROSSE</g> HUND<x id="2" equiv-text="{{{{a}}}}"/>'
            " &amp; ICH</target>\n    <note>"
        ),
        f"<target equiv-trans='no' {state}>EIN <bpt",
        f"<target {state}>EIN &lt;B&gt;HUND&lt;/B&gt; &amp; ICH</target>",
        '=0 {KEIN HUND} =1 {EIN HUND} other {<x id="I" equiv-text="{{n}}"/> HUNDE}}</target>',
        ">ERSTE ZEILE.\n  ZWEITE ZEILE.</target>",
        '><g id="1"><mrk mtype="seg" mid="0">EINS.</mrk> <mrk mtype="seg" mid="1">ZWEI <bx',
    ):
        assert part in out
    prefixed = re.sub(r"<(/?)(?=\w)(?!\?)", r"<\1y:", NEW).replace("xmlns=", "xmlns:y=")
    assert '<y:segment id="a" state="translated"><y:source>' in capitals(read(prefixed.encode()))
    assert "</y:source><y:target>DER " in capitals(read(prefixed.encode()))


def test_what_a_translation_says_is_text() -> None:
    document = read(OLD.encode())
    out = document.write([f"]]> & < \" ' </target> {block.text}" for block in document.blocks]).decode()
    found = {unit.get("id"): seen(unit.find("{*}target")) for unit in units(out) if unit.find("{*}target") is not None}
    assert found["3"] == "]]> & < \" ' </TARGET> EIN HUND"
    assert found["10"] == "]]> & < \" ' </TARGET> EIN <B>HUND</B> & ICH"


def test_other_files_are_refused() -> None:
    unit = "<trans-unit><source>x</source>{}</trans-unit>"
    for text, message in (
        ("<html/>", "is not XLIFF of version"),
        ('<xliff version="3.0"/>', "is not XLIFF of version"),
        (OLD[:-20], "not well-formed"),
        (f"<xliff version='1.2'>{unit.format(unit.format(''))}</xliff>", "a unit inside another one"),
        ('<!DOCTYPE xliff [<!ENTITY a "b">]><xliff version="1.2">&a;</xliff>', "entities"),
    ):
        with pytest.raises(DamagedFile, match=message):
            read(text.encode())
    assert texts('<xliff version="1.2"/>') == []
    for source in ("{a, plural, one {Hund}", "{a, plural, one Hund}", "a}} {a, plural, one {Hund}}"):
        assert texts(f'<xliff version="1.2"><trans-unit><source>{source}</source></trans-unit></xliff>') == []

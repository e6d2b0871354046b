from __future__ import annotations

import pytest

from nmt.extras.documents.files.bilingual import BilingualDocument, TranslationUnit, message_spans
from nmt.extras.documents.files.document import TextDocument
from nmt.extras.documents.files.inline import Fragment
from tests.extras.documents.files.changes import upper

LONG = "Ein langer Satz, der in diesem Text über mehrere kurze"


def message(text: str, has_lines: bool = True) -> TextDocument:
    return TextDocument(text, message_spans(text, [Fragment("text", 0, len(text))], "", has_lines))


@pytest.mark.parametrize(
    ("text", "texts", "capitals"),
    [
        ("_Datei", ["Datei"], "_DATEI"),
        ("Datei &öffnen {0, number} {name}",
         ["Datei &amp;öffnen <x1/> {name}"], "DATEI &amp;ÖFFNEN {0, number} {name}"),
        ("  -n, --name=X   a <b>c</b>\td", ["a <x1>c</x1><x4/>d"], "  -n, --name=X   A <b>C</b>\tD"),
        ("Rest: %sB, 0x%lx oder %1$sx %s; 50%ige", ["Rest: <x1./>B, 0x<x3./> oder <x5/>x %s; 50%ige"],
         "REST: %sB, 0X%lx ODER %1$sX %s; 50%ige"),
        ("Eins.\n\n  Zwei:\nDrei", ["Eins.", "Zwei:", "Drei"], "EINS.\n\n  ZWEI:\nDREI"),
        ("Eins und\n  zwei", ["Eins und zwei"], "EINS UND\n  ZWEI"),
        (f"{LONG}\n  Zeilen geht.\nNeu", [f"{LONG} Zeilen geht.", "Neu"], f"{LONG.upper()}\n  ZEILEN GEHT.\nNEU"),
        ("{n, plural, =0{nichts} other{{k, select, a{# Hunde}}}}", ["nichts", "Hunde"],
         "{n, plural, =0{NICHTS} other{{k, select, a{# HUNDE}}}}"),
        ("Es {n, plural, one {ist '{'# Hund'}'} other {sind # {x}\n}} da",
         ["Es <x1/> da", "ist <x1/><x2/> Hund", "sind <x1/> {x}"],
         "ES {n, plural, one {IST '{'# HUND'}'} other {SIND # {x}\n}} DA"),
        ("{n, plural, one{ein}", [], "{n, plural, one{ein}"),
    ],
)  # fmt: skip
def test_a_message_is_divided(text: str, texts: list[str], capitals: str) -> None:
    source = message(text)
    assert [block.text for block in source.blocks] == texts
    assert source.text(texts) == text
    assert source.text([upper(each) for each in texts]) == capitals


def test_a_text_without_lines_is_one_block() -> None:
    assert [block.text for block in message("Eins.\n  Zwei.", has_lines=False).blocks] == ["Eins. Zwei."]


def test_an_apostrophe_does_not_quote_in_icu() -> None:
    text = "{n, plural, other {der # Hund}}"
    assert message(text).text(["<x1/> l'ami'"]) == "{n, plural, other {# l'ami’}}"


def test_a_unit_stays_if_nothing_is_translated() -> None:
    units = [TranslationUnit(1, 1, message(text), lambda text: f"={text}") for text in ("Hund %s", "Katze")]
    units[1] = TranslationUnit(2, 3, units[1].source, units[1].spell)
    document = BilingualDocument("[-.]", units, "ascii")
    assert [block.text for block in document.blocks] == ["Hund %s", "Katze"]
    assert document.write(["Hund %s", "Katze"]) == b"[-.]"
    assert document.write(["%s dog", "Katze"]) == b"[=%s dog-.]"
    assert document.write(["Hund %s", "cät"]) == b"[-=c&#228;t]"

"""PO files, against the package polib."""

from __future__ import annotations

import html

import polib
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt.extras.documents.files.document import DamagedFile
from nmt.extras.documents.files.po import read
from tests.extras.documents.files.changes import capitals, unchanged

HEADER = 'msgid ""\nmsgstr ""\n"Language: en\\n"\n"Content-Type: text/plain; charset=utf-8\\n"\n'
SLAVIC = (
    '"Plural-Forms: nplurals=3; plural=(n%10==1 && n%100!=11 ? 0 : n%10>=2 && n%10<=4 '
    '&& (n%100<10 || n%100>=20) ? 1 : 2);\\n"\n'
)

PO = (
    HEADER
    + """
# Notiz
#. Frage
#: a.c:1
#, c-format
#| msgid "früher"
msgctxt "Menü"
msgid "_Datei %s & <b>fett</b>\\n"
msgstr ""

msgid "Fertig"
msgstr "Done"

#, fuzzy
msgid "unklar"
msgstr "Unclear"

#, fuzzy
msgid ""
"unklar 2 \\"x\\" "
"C:\\\\neu"
msgstr ""

msgid "%d"
msgid_plural "%d Hunde"
msgstr[0] ""
msgstr[1] ""

#~ msgid "alt"
#~ msgstr ""
"""
)


def message(text: str, strings: str, header: str = "") -> str:
    """Translates a message to capitals."""
    document = read(f"{HEADER}{header}\nmsgid {text}\n{strings}".encode())
    return capitals(document).partition("\n\n")[2].partition("\n")[2]


def test_only_empty_translations_are_filled() -> None:
    document = read(PO.encode())
    assert [block.text for block in document.blocks] == [
        "Datei %s &amp; <x1>fett</x1>", 'unklar 2 "x" C:\\neu', "%d", "%d Hunde",
    ]  # fmt: skip
    assert [block.place for block in document.blocks] == ["line 12", "line 23", "line 28", "line 28"]
    assert all(block.is_apart for block in document.blocks)
    for text in (PO, PO.replace("\n", "\r\n"), "\ufeff" + PO):
        assert unchanged(read(text.encode())) == text.encode()
        out = capitals(read(text.encode()))
        assert out.replace("\r", "").lstrip("\ufeff") == PO.replace(
            'fett</b>\\n"\nmsgstr ""', 'fett</b>\\n"\nmsgstr "_DATEI %s & <b>FETT</b>\\n"'
        ).replace('neu"\nmsgstr ""', 'neu"\nmsgstr "UNKLAR 2 \\"X\\" C:\\\\NEU"').replace(
            'msgstr[0] ""\nmsgstr[1] ""', 'msgstr[0] "%d"\nmsgstr[1] "%d HUNDE"'
        )
        assert out.count("\r") == text.count("\r")


@pytest.mark.parametrize(
    ("single", "several", "header", "forms"),
    [
        ("%d Hund", "%d Hunde", "", ["%d HUND", "%d HUNDE"]),
        ("ein Hund", "%d Hunde", "", ["EIN HUND", "%d HUNDE"]),
        ("%d Hund", "%d Hunde", SLAVIC, ["%d HUND", "%d HUNDE", "%d HUNDE"]),
        # this form is for 21, too
        ("ein Hund", "%d Hunde", SLAVIC, ["%d HUNDE", "%d HUNDE", "%d HUNDE"]),
        ("%d Hund", "%d Hunde", '"Plural-Forms: nplurals=1; plural=0;\\n"\n', ["%d HUNDE"]),
        ("ein Hund", "%d Hunde", '"Plural-Forms: nplurals=2; plural=n == 1;\\n"\n', ["%d HUNDE", "EIN HUND"]),
        # these say nothing
        ("ein Hund", "%d Hunde", '"Plural-Forms: nplurals=INTEGER; plural=EXPRESSION;\\n"\n', ["EIN HUND", "%d HUNDE"]),
        ("ein Hund", "%d Hunde", '"Plural-Forms: nplurals=2; plural=n / 0;\\n"\n', ["EIN HUND", "%d HUNDE"]),
        ("ein Hund", "%d Hunde", f'"Plural-Forms: nplurals=2; plural={"(" * 400};\\n"\n', ["EIN HUND", "%d HUNDE"]),
    ],
)
def test_the_header_says_how_many_forms_there_are(single: str, several: str, header: str, forms: list[str]) -> None:
    strings = f'msgid_plural "{several}"\nmsgstr[0] ""\nmsgstr[1] ""\n'
    expected = "".join(f'msgstr[{form}] "{text}"\n' for form, text in enumerate(forms))
    assert message(f'"{single}"', strings, header) == strings.partition("\n")[0] + "\n" + expected
    out = HEADER + header + f'\nmsgid "{single}"\n' + message(f'"{single}"', strings, header)
    (entry,) = polib.pofile(out)
    assert list(entry.msgstr_plural.values()) == forms


def test_characters_are_written_as_escapes() -> None:
    document = read(HEADER.encode() + rb'msgid "\033[1mHund\x41\tx\\\"y\a"' + b'\nmsgstr ""\n')
    assert [block.text for block in document.blocks] == ['\x1b[1mHundA<x1/>x\\"y\a']
    (entry,) = polib.pofile(document.write(['\x1b[1mdog<x1/>\\"\a é']).decode())
    assert entry.msgstr == '\\033[1mdog\t\\"\\007 é'  # which polib, unlike gettext, does not read


def test_the_encoding_stays_as_long_as_it_can() -> None:
    data = PO.replace("utf-8", "latin-1").encode("latin-1")
    document = read(data)
    assert unchanged(document) == data
    assert document.write(["é %s <x1>a</x1>", "é", "%d", "%d"]).decode("latin-1").count("é") == 2
    out = document.write(["€ %s <x1>a</x1>", "é", "%d", "%d"]).decode()
    assert "charset=UTF-8" in out
    assert [entry.msgstr for entry in polib.pofile(out)][:2] == ["_€ %s <b>a</b>\n", "Done"]
    template = PO.replace("utf-8", "CHARSET").replace("ü", "u").encode()
    assert unchanged(read(template)) == template
    assert b"charset=UTF-8" in read(template).write(["é %s <x1>a</x1>", "é", "%d", "%d"])


_texts = st.lists(
    st.sampled_from(
        ["Hund", "%s", "{x}", "<b>", "</b>", "\n", '"', "\\", "\t", " ", "&", "&amp;", "<", "é", "\n\n", "#", "'"]
    ),
    min_size=1,
    max_size=8,
).map("".join)


@given(st.lists(st.tuples(_texts, _texts, st.booleans()), max_size=5), st.sampled_from([0, 20, 78]))
def test_only_translations_change(entries: list[tuple[str, str, bool]], width: int) -> None:
    file = polib.POFile(wrapwidth=width)
    file.metadata = {"Content-Type": "text/plain; charset=utf-8"}
    for number, (single, several, has_plural) in enumerate(entries):
        plural = {"msgid_plural": several, "msgstr_plural": {0: "", 1: ""}} if has_plural else {}
        file.append(polib.POEntry(msgctxt=str(number), msgid=single, comment="Notiz", flags=["c-format"], **plural))
    text = str(file)
    document = read(text.encode())
    assert unchanged(document) == text.encode()
    assert len(document.blocks) >= sum("Hund" in single and not has_plural for single, _, has_plural in entries)
    out = polib.pofile(capitals(document))
    for before, after in zip(file, out, strict=True):
        for name in ("msgid", "msgid_plural", "msgctxt", "comment", "flags"):
            assert getattr(before, name) == getattr(after, name)
        for source, translation in (
            (before.msgid, after.msgstr),
            *((before.msgid_plural, each) for each in list(after.msgstr_plural.values())[1:]),
        ):
            if translation:
                words = ["".join(html.unescape(each).upper().split()) for each in (translation, source)]
                assert words[0].replace("&AMP;", "&") == words[1].replace("&AMP;", "&")
                assert translation[:1].isspace() == source[:1].isspace()
                assert translation[-1:].isspace() == source[-1:].isspace()


def test_other_files_are_refused() -> None:
    for data, message in (
        (b"Hund\n", "is not a PO file, line 1: 'Hund'"),
        (b'# \nmsgid "a"\nmsgstr "b\n', "is not a PO file, line 2"),
        (b'"a"\n', "is not a PO file, line 1"),
        (b'msgid "a"\n', "is not a PO file, line 1"),
        (b'msgid "a"\nmsgstr[0] ""\n# x\nmsgstr[1] ""\n', "is not a PO file, line 4"),
        (rb'msgid "\u12" msgstr ""', "is not a PO file, line 1"),
        (HEADER.replace("utf-8", "klingon").encode(), "not known, klingon"),
        (HEADER.replace("utf-8", "hex").encode(), "not known, hex"),
        (HEADER.encode() + b"# \xff", "is not text in utf-8"),
    ):
        with pytest.raises(DamagedFile, match=message):
            read(data)
    for data in (b"", b"# nichts\n", HEADER.encode()):
        assert unchanged(read(data)) == data

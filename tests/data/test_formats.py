"""Files of pairs as people have them, each written by another program than ours reads it with, or by hand."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import json
import sqlite3
import sys
import tracemalloc
import xml.etree.ElementTree as ET
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest

from nmt.core.errors import InputError
from nmt.data.config import CorpusConfig
from nmt.data.corpus import open_text, read_blocks
from tests.data.conftest import Pairs, refusal

PAIRS = [
    ("Der Hund schläft.", "The dog sleeps."),
    ('Er sagte: "Ja; gern, danke."', 'He said: "Yes; gladly, thanks."'),
    ("Zwei\nZeilen und\tein TAB", "Two\nlines and a\ttab"),
    ("5 < 7 & 7 > 5", "5 < 7 & 7 > 5 — always"),
] * 5
LINES = [tuple(side.replace("\n", " ").replace("\t", " ") for side in pair) for pair in PAIRS]


ZSTD = "compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd"


def read(path: Path, languages: tuple[str, str] | None = None) -> Pairs:
    blocks = list(read_blocks(CorpusConfig(pairs=path, languages=languages), size=7))
    rows = [pair for block in blocks for pair in zip(block.sources, block.targets, strict=True)]
    faulty = {block.first_line - 1 + index for block in blocks for index in block.faulty}
    return [row for number, row in enumerate(rows) if number not in faulty]


def failure(path: Path, languages: tuple[str, str] | None = None) -> str:
    return refusal(read, path, languages)


def table(rows: list[tuple[str, ...]], delimiter: str) -> str:
    text = io.StringIO()
    csv.writer(text, delimiter=delimiter).writerows(rows)  # ends lines in CR LF, as Excel does
    return text.getvalue()


File: TypeAlias = Callable[[str, str | bytes], Path]


@pytest.fixture
def file(tmp_path: Path) -> File:
    """Writes a file."""

    def write(name: str, content: str | bytes) -> Path:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


def tmx(pairs: Pairs, tags: tuple[str, str] = ("de-DE", "en-US"), attribute: str = "xml:lang") -> bytes:
    root = ET.Element("tmx", version="1.4")
    ET.SubElement(root, "header", srclang=tags[0])
    body = ET.SubElement(root, "body")
    for pair in pairs:
        unit = ET.SubElement(body, "tu")
        ET.SubElement(unit, "note").text = "not this"
        for tag, text in zip(tags, pair, strict=True):
            ET.SubElement(ET.SubElement(unit, "tuv", {attribute: tag}), "seg").text = text
    return ET.tostring(root, encoding="utf-8", xml_declaration=True)


def json_lines(form: Callable[[str, str], object]) -> str:
    return "".join(json.dumps(form(*pair)) + "\n" for pair in PAIRS)


def zipped(files: dict[str, bytes]) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return data.getvalue()


HEADED = [("source", "target"), *PAIRS]
TSV = "".join(f"{source}\t{target}\n" for source, target in LINES).encode()
FORMS: list[tuple[str, str | bytes]] = [
    *(("pairs.csv", f"\ufeff{table(rows, delimiter)}") for rows in (PAIRS, HEADED) for delimiter in ";,"),
    *(("pairs.txt", ("\ufeff" + table(PAIRS, "\t")).encode(codec)) for codec in ("utf-16-le", "utf-16-be")),
    ("pairs", json_lines(lambda s, t: {"source": s, "target": t})),
    ("pairs", json_lines(lambda s, t: {"id": 7, "translation": {"de": s, "en": t}})),
    ("pairs", json_lines(lambda s, t: {"de": s, "en": t, "score": 0.5})),
    ("pairs", json_lines(lambda s, t: [s, t])),
    *(("memory.tmx", tmx(PAIRS, attribute=attribute)) for attribute in ("xml:lang", "lang")),
    ("memory.tmx", tmx(PAIRS).decode().replace("utf-8", "utf-16").encode("utf-16")),
    ("x.zip", zipped({"folder/memory.tmx": tmx(PAIRS)})),
    ("a", bz2.compress(TSV)),
    ("pairs.tsv", table(PAIRS, "\t")),  # with the quotation marks of CSV
    ("pairs.json", json.dumps([{"de": s, "en": t} for s, t in PAIRS])),
    ("pairs.json", json.dumps([{"translation": {"de": s, "en": t}} for s, t in PAIRS], indent=2)),
    ("pairs.json", json.dumps(PAIRS, indent=1)),
]


@pytest.mark.parametrize(("name", "content"), FORMS)
def test_pairs_are_the_same_in_every_form(name: str, content: str | bytes, file: File) -> None:
    assert read(file(name, content)) == LINES


def test_quotation_marks_are_text_in_tsv(file: File) -> None:
    path = file("pairs.tsv", '"Ja", sagte er.\t"Yes", he said.\n"\t"\n')
    assert read(path) == [('"Ja", sagte er.', '"Yes", he said.'), ('"', '"')]


@pytest.mark.parametrize("half", ['{"de": "ha \\ud83d", "en": "b"}', '{"de": "a", "en": "\\udcff"}'])
@pytest.mark.parametrize("form", ["%s\n", "[%s]"])
def test_half_a_character_of_json_is_a_fault(file: File, half: str, form: str) -> None:
    rows = [*['{"de": "a \\ud83d\\ude00", "en": "b"}'] * 2, half]
    message = failure(file("pairs.json", form % (",\n" if form == "[%s]" else "\n").join(rows)))
    assert "1 of 3 rows are no pairs: 1 with half a character (a lone surrogate) (line 3); mend them" in message


@pytest.mark.parametrize("first", ['{"de": "Ja.", "en": null}', '{"de": "Ja."}', '{"de": "", "en": "Yes."}', "", " "])
def test_json_without_a_side_is_left_out(file: File, first: str, capsys: pytest.CaptureFixture[str]) -> None:
    row = '{"de": "Geh.", "en": "Go."}\n\n'
    assert read(file("pairs.json", f"\n{first}\n{row * 9}")) == [("Geh.", "Go.")] * 9
    is_named = "1 of 10 rows are no pairs: 1 without a translation; left out" in capsys.readouterr().err
    assert is_named is bool(first.strip())
    assert "1 no JSON object with two texts (line 5)" in failure(file("bad.json", f"\n{first}\n{row}[]\n"))


def test_a_text_called_translation_is_no_object(file: File) -> None:
    assert read(file("pairs.json", json_lines(lambda s, t: {"sentence": s, "translation": t}))) == LINES


def test_many_units_without_a_translation_are_no_fault(file: File) -> None:
    assert read(file("pairs.json", '{"de": "Geh.", "en": null}\n' * 200 + '{"de": "a", "en": "b"}')) == [("a", "b")]


def test_text_in_brackets_is_no_json(file: File) -> None:
    assert read(file("pairs.tsv", "[[Musik]]\t[[Music]]\n" * 2)) == [("[[Musik]]", "[[Music]]")] * 2


def test_lines_that_end_in_cr_alone_are_named(file: File) -> None:
    assert "pairs.tsv: is text whose lines end in CR alone" in failure(file("pairs.tsv", "a\tb\r" * 20))


def test_a_quotation_mark_that_is_never_closed_loses_no_row_silently(file: File) -> None:
    message = failure(file("pairs.csv", "a;b\n" * 100 + '"c;d\n' + "e;f\n" * 99))
    assert "100 of 200 rows are no pairs: 100 with a quotation mark amiss (lines 101, 102," in message


@pytest.mark.parametrize(
    ("begin", "end"), [('"A;B', 'C";D'), ('A;"B', 'C;D"'), ('"A;B', 'C;D"'), ('"A;B', 'C";D"'), ('A;"B', 'C";D')]
)
def test_a_stray_quotation_mark_of_csv_swallows_no_lines(file: File, begin: str, end: str) -> None:
    lines = ["a;b"] * 30 + [begin, *["c;d"] * 4, end] + ["e;f"] * 30 + ['"two\nlines";g']
    content = "\n".join(lines)
    assert read(file("pairs.csv", content)) == [*[tuple(line.split(";")) for line in lines[:-1]], ("two lines", "g")]
    message = failure(file("a.csv", content.replace(";", ",") + "\nx"))
    assert (
        "7 of 68 rows are no pairs: 6 with a quotation mark amiss, 1 without exactly one ',' (lines 31, 32" in message
    )
    assert "36, 69)" in message  # the number of the line, not of the row


def test_a_row_of_csv_has_line_ends_and_delimiters_in_its_cells(file: File) -> None:
    assert read(file("a.csv", 'a,b\n"Hello, Tom,\nbye","Hallo,\nTom"\n"Hello, John\nbye","Tschüss"\n')) == [
        ("a", "b"), ("Hello, Tom, bye", "Hallo, Tom"), ("Hello, John bye", "Tschüss"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("row", "pair"),
    [
        ("Geh.\tGo.\tCC-BY 2.0 (France) #{n}\n", ("Geh.", "Go.")),  # Anki
        ("{n}\tGeh.\t77\tGo.\n", ("Geh.", "Go.")),  # Tatoeba
        ("0.9{n}\tGeh.\tGo.\n", ("Geh.", "Go.")),  # a score in front
        ("Geh.\tGo.\t\n", ("Geh.", "Go.")),
        ("{n}\t{n}\n", ("1", "1")),  # numbers alone
    ],
)
def test_more_columns_than_two_are_read_over(file: File, row: str, pair: tuple[str, str]) -> None:
    found = read(file("pairs.tsv", "".join(row.format(n=n) for n in range(1, 101))))
    assert (len(found), found[0]) == (100, pair)


def test_columns_go_by_a_header_that_names_the_languages(file: File) -> None:
    text = "id;en;de\n" + "x1;Go.;Geh.\n" * 30
    assert read(file("pairs.csv", text), ("de", "en")) == read(file("my.de-en.csv", text)) == [("Geh.", "Go.")] * 30


@pytest.mark.parametrize("header", ["German,English", "id,Deutsch,Englisch", "de,en", "Notes,DE,EN"])
def test_a_header_of_two_languages_is_no_pair(file: File, header: str) -> None:
    text = "x{n},Geh.,Go {n}.\n" if header.count(",") > 1 else "Geh.,Go {n}.\n"
    found = read(file("pairs.csv", f"{header}\n" + "".join(text.format(n=n) for n in range(30))))
    assert found == [("Geh.", f"Go {n}.") for n in range(30)]


@pytest.mark.parametrize(
    ("header", "names"),
    [
        ("Source text,Target text", "source Source text, target Target text"),
        ("target_text,source_text", "source source_text, target target_text"),
        ("key,de-DE,en_US", "source de-DE, target en_US"),
        ("answer,question", "source question, target answer"),
        ("path,sentence,translation", "source sentence, target translation"),
        ("output,input", "source input, target output"),
        ("source_lang,target_lang,source,target", "source source, target target"),
    ],
)
def test_names_of_columns_and_keys_are_known_and_said(
    file: File, header: str, names: str, capsys: pytest.CaptureFixture[str]
) -> None:
    columns = header.split(",")
    order = names.removeprefix("source ").split(", target ")
    rows = [
        {name: f"{name} {n}" if name in order else "de" if "lang" in name else f"a_{n}.mp3" for name in columns}
        for n in range(30)
    ]
    expected = [(row[order[0]], row[order[1]]) for row in rows]
    table = "".join(f"{','.join(row.values())}\n" for row in rows)
    assert read(file("pairs.csv", f"{header}\n{table}")) == expected
    assert read(file("pairs.jsonl", "".join(f"{json.dumps(row)}\n" for row in rows))) == expected
    assert capsys.readouterr().err.count(f": {names}\n") == 2


@pytest.mark.parametrize(
    "cell",
    ["s-{n:05}", "http://www.x.de/{n}", "common_voice_{n}.mp3", "00:{n:02}:01 --> 00:{n:02}:03", "de", "msg.{n}"],
)
def test_columns_of_ids_times_and_languages_are_no_text(
    file: File, cell: str, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "".join(f"{cell.format(n=n)}\t{cell.format(n=n // 2)}\tGeh {n}.\tGo {n}.\n" for n in range(50))
    assert read(file("pairs.tsv", text.replace("de\tde", "de\ten"))) == [(f"Geh {n}.", f"Go {n}.") for n in range(50)]
    assert "pairs.tsv: source column 3, target column 4\n" in capsys.readouterr().err


def test_the_first_line_of_excel_names_the_delimiter(file: File) -> None:
    rows = "Ja, gern.;Yes, gladly.\n" * 3
    assert read(file("a.csv", f"sep=;\nDeutsch;Englisch\n{rows}")) == [("Ja, gern.", "Yes, gladly.")] * 3


def test_a_header_of_three_languages_is_a_question(file: File) -> None:
    path = file("pairs.tsv", "German\tSpanish\tEnglish\n" + "Geh.\tVete.\tGo.\n" * 30)
    with pytest.raises(InputError, match=r"pairs\.tsv.*de.*es.*en"):
        read(path)
    assert read(path, ("en", "es")) == [("Go.", "Vete.")] * 30


def test_the_sides_of_tmx_go_by_the_languages(file: File) -> None:
    assert read(file("memory.tmx", tmx(PAIRS)), ("en", "de")) == [(target, source) for source, target in LINES]


def test_inline_codes_of_tmx_are_no_text_and_what_they_mark_is(file: File) -> None:
    path = file(
        "memory.tmx",
        '<?xml version="1.0"?>\n<!DOCTYPE tmx SYSTEM "tmx14.dtd">\n<tmx version="1.4"><header srclang="*all*"/><body>'
        '<tu><tuv xml:lang="EN-GB"><seg>Save&#160;<bpt i="1">&lt;b&gt;</bpt>all<ept i="1">&lt;/b&gt;</ept> '
        '<ph x="2">{0}<sub>not this</sub></ph> <hi>files</hi></seg></tuv>'
        '<tuv xml:lang="de"><seg>Alles sichern</seg></tuv></tu>'
        '<tu><tuv xml:lang="en-us"><seg>Color</seg></tuv><tuv xml:lang="de"><seg>Farbe</seg></tuv></tu>'
        '<tu><tuv xml:lang="de"><seg>allein</seg></tuv></tu></body></tmx>',
    )
    assert read(path) == [("Save\u00a0all files", "Alles sichern"), ("Color", "Farbe")]


def test_more_than_two_languages_have_to_be_named(file: File) -> None:
    sides = "".join(f'<tuv xml:lang="{tag}"><seg>{tag}!</seg></tuv>' for tag in ("de", "en", "fr"))
    path, named = (file(name, f"<tmx><body><tu>{sides}</tu></body></tmx>") for name in ("memory.tmx", "my.en-fr.tmx"))
    message = failure(path)
    assert "has de, en, fr; name two of these, source first" in message
    assert "my.de-en.tmx" in message
    assert read(path, ("fr", "de")) == [("fr!", "de!")]
    assert failure(path, ("es", "de")).startswith(f"{path}: has de, en, fr; name two of these")
    assert read(named) == [("en!", "fr!")]


def test_xliff_1(file: File) -> None:
    path = file(
        "file.xlf",
        '<xliff xmlns="urn:oasis:names:tc:xliff:document:1.2" version="1.2">'
        '<file source-language="de" target-language="en-US" original="a" datatype="html"><body>'
        '<trans-unit id="1"><source>Ein <g id="1">Hund</g> <x id="2"/>da</source>'
        '<target>A <g id="1">dog</g> there</target>'
        "<alt-trans><source>not</source><target>this</target></alt-trans></trans-unit>"
        '<trans-unit id="2"><source>offen</source></trans-unit>'
        '<trans-unit id="3"><source>offen</source><target state="needs-translation">offen</target></trans-unit>'
        "</body></file></xliff>",
    )
    assert read(path) == [("Ein Hund da", "A dog there")]
    assert read(path, ("en", "de")) == [("A dog there", "Ein Hund da")]


def test_xliff_2(file: File) -> None:
    path = file(
        "file.xlf",
        '<x:xliff xmlns:x="urn:oasis:names:tc:xliff:document:2.0" version="2.0" srcLang="de" trgLang="en">'
        '<x:file id="f"><x:unit id="1">'
        '<x:segment><x:source>Ein <x:pc id="1">Hund</x:pc><x:ph id="2"/></x:source>'
        "<x:target>A dog</x:target></x:segment>"
        "<x:ignorable><x:source> </x:source></x:ignorable>"
        '<x:segment state="initial"><x:source>offen</x:source><x:target>offen</x:target></x:segment>'
        "</x:unit></x:file></x:xliff>",
    )
    assert read(path) == [("Ein Hund", "A dog")]


def test_entities_that_a_document_declares_are_refused(file: File) -> None:
    entity = file("a.tmx", '<!DOCTYPE tmx [<!ENTITY a "aaaa">]><tmx><body><tu>&a;</tu></body></tmx>')
    assert "declares entities" in failure(entity)
    message = "not well-formed XML: no element found: line 12, column 178; export the file again"
    assert message in failure(file("b.tmx", tmx(PAIRS)[:-30]))


@pytest.mark.parametrize("encoding", ["Shift_JIS", "GBK", "foo-8"])
def test_an_encoding_that_xml_parsers_do_not_know_is_named(file: File, encoding: str) -> None:
    message = failure(file("a.tmx", f'<?xml version="1.0" encoding="{encoding}"?>\n<tmx/>'))
    assert f"a.tmx: names an encoding that is not read in XML, {encoding}; " in message
    assert f"iconv -f {encoding} -t UTF-8" in message


def test_memory_does_not_grow_with_a_tmx(file: File) -> None:
    head = tmx(PAIRS)
    begin, end = head.index(b"<tu>"), head.index(b"</body>")
    path = file("memory.tmx", head[:begin] + head[begin:end] * 200 + head[end:])
    list(read_blocks(CorpusConfig(pairs=path), size=500))  # the first time also loads modules
    tracemalloc.start()
    try:
        count = sum(len(block.sources) for block in read_blocks(CorpusConfig(pairs=path), size=500))
        assert tracemalloc.get_traced_memory()[1] < 2 << 20
    finally:
        tracemalloc.stop()
    assert count == 4_000


@pytest.mark.parametrize("packed", [False, True])
def test_zip_of_opus(file: File, packed: bool) -> None:
    names = ("README", "LICENSE", "Tatoeba.de-en.ids", "__MACOSX/._x")
    files = dict.fromkeys(names, b"not this\n")
    for language, side in (("en", 1), ("de", 0)):
        text = "".join(f"{pair[side]}\n" for pair in LINES).encode()
        files[f"Tatoeba.de-en.{language}{'.gz' * packed}"] = gzip.compress(text) if packed else text
    assert read(file("corpus.zip", zipped(files))) == LINES
    turned = file("en-de.zip", zipped(files))
    assert read(turned) == [(target, source) for source, target in LINES]
    assert read(turned, ("de", "en")) == LINES


def test_zip_of_other_files(file: File) -> None:
    several = zipped(dict.fromkeys(("train.de", "train.en", "valid.de", "valid.en"), b"x\n"))
    assert "and not two text files with the same name but for the languages" in failure(file("x.zip", several))
    cut = file("x.zip", several[:-40])
    assert failure(cut) == f"{cut}: the compressed file is damaged or cut short; fetch it again"


def test_zstandard(file: File) -> None:
    zstd = pytest.importorskip(ZSTD, reason="the extra zstd is not installed")
    assert read(file("b", zstd.compress(TSV[:40]) + zstd.compress(TSV[40:]))) == LINES
    whole = zstd.compress(TSV)
    for damaged in (whole[:-9], whole[:30] + bytes(9) + whole[39:]):
        assert failure(file("b", damaged)).endswith("the compressed file is damaged or cut short; fetch it again")


def test_zstandard_that_is_not_installed_is_named(file: File, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, ZSTD, None)
    message = failure(file("a", b"\x28\xb5\x2f\xfd"))
    assert "backports.zstd, which reads and writes .zst, is not installed: pip install" in message


def documents() -> dict[str, bytes]:
    """Files that hold no lines, by what they are."""
    with sqlite3.connect(":memory:") as database:
        database.execute("create table pairs (source, target)")
    return {
        "a PDF file": b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n",
        "a PO file": b'# German\n#, fuzzy\nmsgid ""\nmsgstr ""\n"Language: de\\n"\n\nmsgid "dog"\nmsgstr "Hund"\n',
        "an HTML page": b"\xef\xbb\xbf<!doctype html>\n<html lang=de><p>Ein Hund\n",
        "an XML file": b"<?xml version='1.0'?>\n<!-- x --><resources><string name='a'/></resources>",
        "an SQLite database": database.serialize(),
        "an old Word or Excel file": b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(100),
        "text in UTF-16 without a byte order mark": "Hund\tdog\n".encode("utf-16-be"),
        "a Word document (DOCX)": zipped({"[Content_Types].xml": b"<Types/>", "word/document.xml": b"<x/>"}),
        "an Excel workbook (XLSX)": zipped({"[Content_Types].xml": b"<Types/>", "xl/workbook.xml": b"<x/>"}),
    }


def test_what_holds_no_pairs_is_named_by_its_first_bytes(file: File) -> None:
    for kind, content in documents().items():
        path = file("0.txt", content)
        assert failure(path).startswith(f"{path}: is {kind}, and not one of the files of pairs")
        assert "lines of plain text are needed" in refusal(open_text, path)

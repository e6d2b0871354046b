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
from pathlib import Path

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


@pytest.mark.parametrize("delimiter", [";", ","])
@pytest.mark.parametrize("header", [[], [("source", "target")]])
def test_csv_of_excel(tmp_path: Path, delimiter: str, header: Pairs) -> None:
    path = tmp_path / "pairs.csv"
    path.write_text(table([*header, *PAIRS], delimiter), encoding="utf-8-sig", newline="")
    assert read(path) == LINES


@pytest.mark.parametrize("codec", ["utf-16-le", "utf-16-be"])
def test_unicode_text_of_excel(tmp_path: Path, codec: str) -> None:
    path = tmp_path / "pairs.txt"
    path.write_bytes(("\ufeff" + table(PAIRS, "\t")).encode(codec))
    assert read(path) == LINES


def test_quotation_marks_are_text_in_tsv(tmp_path: Path) -> None:
    path = tmp_path / "pairs.tsv"
    path.write_text('"Ja", sagte er.\t"Yes", he said.\n"\t"\n')
    assert read(path) == [('"Ja", sagte er.', '"Yes", he said.'), ('"', '"')]


def test_a_quotation_mark_that_is_never_closed_loses_no_row_silently(tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"
    path.write_text("a;b\n" * 100 + '"c;d\n' + "e;f\n" * 99)
    assert "100 of 200 rows are no pairs: 100 with a quotation mark amiss (lines 101, 102," in failure(path)


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
def test_more_columns_than_two_are_read_over(tmp_path: Path, row: str, pair: tuple[str, str]) -> None:
    path = tmp_path / "pairs.tsv"
    path.write_text("".join(row.format(n=n) for n in range(1, 101)))
    found = read(path)
    assert (len(found), found[0]) == (100, pair)


def test_columns_go_by_a_header_that_names_the_languages(tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"
    path.write_text("id;en;de\n" + "x1;Go.;Geh.\n" * 30)
    assert read(path, ("de", "en")) == [("Geh.", "Go.")] * 30
    path.rename(tmp_path / "my.de-en.csv")
    assert read(tmp_path / "my.de-en.csv") == [("Geh.", "Go.")] * 30


@pytest.mark.parametrize(
    "form",
    [
        lambda s, t: {"source": s, "target": t},
        lambda s, t: {"id": 7, "translation": {"de": s, "en": t}},
        lambda s, t: {"de": s, "en": t, "score": 0.5},
        lambda s, t: [s, t],
    ],
)
def test_json_lines(tmp_path: Path, form: object) -> None:
    path = tmp_path / "pairs"
    path.write_text("".join(json.dumps(form(*pair)) + "\n" for pair in PAIRS))  # type: ignore[operator]
    assert read(path) == LINES


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


@pytest.mark.parametrize("attribute", ["xml:lang", "lang"])
def test_tmx(tmp_path: Path, attribute: str) -> None:
    path = tmp_path / "memory.tmx"
    path.write_bytes(tmx(PAIRS, attribute=attribute))
    assert read(path) == LINES
    assert read(path, ("en", "de")) == [(target, source) for source, target in LINES]
    path.write_bytes(tmx(PAIRS, attribute=attribute).decode().replace("utf-8", "utf-16").encode("utf-16"))
    assert read(path) == LINES


def test_inline_codes_of_tmx_are_no_text_and_what_they_mark_is(tmp_path: Path) -> None:
    path = tmp_path / "memory.tmx"
    path.write_text(
        '<?xml version="1.0"?>\n<!DOCTYPE tmx SYSTEM "tmx14.dtd">\n<tmx version="1.4"><header srclang="*all*"/><body>'
        '<tu><tuv xml:lang="EN-GB"><seg>Save&#160;<bpt i="1">&lt;b&gt;</bpt>all<ept i="1">&lt;/b&gt;</ept> '
        '<ph x="2">{0}<sub>not this</sub></ph> <hi>files</hi></seg></tuv>'
        '<tuv xml:lang="de"><seg>Alles sichern</seg></tuv></tu>'
        '<tu><tuv xml:lang="en-us"><seg>Color</seg></tuv><tuv xml:lang="de"><seg>Farbe</seg></tuv></tu>'
        '<tu><tuv xml:lang="de"><seg>allein</seg></tuv></tu></body></tmx>'
    )
    assert read(path) == [("Save\u00a0all files", "Alles sichern"), ("Color", "Farbe")]


def test_more_than_two_languages_have_to_be_named(tmp_path: Path) -> None:
    path = tmp_path / "memory.tmx"
    sides = "".join(f'<tuv xml:lang="{tag}"><seg>{tag}!</seg></tuv>' for tag in ("de", "en", "fr"))
    path.write_text(f"<tmx><body><tu>{sides}</tu></body></tmx>")
    message = failure(path)
    assert "has de, en, fr; name two of these, source first" in message
    assert "my.de-en.tmx" in message
    assert read(path, ("fr", "de")) == [("fr!", "de!")]
    assert failure(path, ("es", "de")).startswith(f"{path}: has de, en, fr; name two of these")
    path.rename(tmp_path / "my.en-fr.tmx")
    assert read(tmp_path / "my.en-fr.tmx") == [("en!", "fr!")]


def test_xliff_1(tmp_path: Path) -> None:
    path = tmp_path / "file.xlf"
    path.write_text(
        '<xliff xmlns="urn:oasis:names:tc:xliff:document:1.2" version="1.2">'
        '<file source-language="de" target-language="en-US" original="a" datatype="html"><body>'
        '<trans-unit id="1"><source>Ein <g id="1">Hund</g> <x id="2"/>da</source>'
        '<target>A <g id="1">dog</g> there</target>'
        "<alt-trans><source>not</source><target>this</target></alt-trans></trans-unit>"
        '<trans-unit id="2"><source>offen</source></trans-unit>'
        '<trans-unit id="3"><source>offen</source><target state="needs-translation">offen</target></trans-unit>'
        "</body></file></xliff>"
    )
    assert read(path) == [("Ein Hund da", "A dog there")]
    assert read(path, ("en", "de")) == [("A dog there", "Ein Hund da")]


def test_xliff_2(tmp_path: Path) -> None:
    path = tmp_path / "file.xlf"
    path.write_text(
        '<x:xliff xmlns:x="urn:oasis:names:tc:xliff:document:2.0" version="2.0" srcLang="de" trgLang="en">'
        '<x:file id="f"><x:unit id="1">'
        '<x:segment><x:source>Ein <x:pc id="1">Hund</x:pc><x:ph id="2"/></x:source>'
        "<x:target>A dog</x:target></x:segment>"
        "<x:ignorable><x:source> </x:source></x:ignorable>"
        '<x:segment state="initial"><x:source>offen</x:source><x:target>offen</x:target></x:segment>'
        "</x:unit></x:file></x:xliff>"
    )
    assert read(path) == [("Ein Hund", "A dog")]


def test_entities_that_a_document_declares_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "memory.tmx"
    path.write_text('<!DOCTYPE tmx [<!ENTITY a "aaaa">]><tmx><body><tu>&a;</tu></body></tmx>')
    assert "declares entities" in failure(path)
    path.write_bytes(tmx(PAIRS)[:-30])
    assert "not well-formed XML: no element found: line 12, column 178; export the file again" in failure(path)


def test_memory_does_not_grow_with_a_tmx(tmp_path: Path) -> None:
    path, head = tmp_path / "memory.tmx", tmx(PAIRS)
    begin, end = head.index(b"<tu>"), head.index(b"</body>")
    path.write_bytes(head[:begin] + head[begin:end] * 200 + head[end:])
    tracemalloc.start()
    try:
        count = sum(len(block.sources) for block in read_blocks(CorpusConfig(pairs=path), size=500))
        assert tracemalloc.get_traced_memory()[1] < 2 << 20
    finally:
        tracemalloc.stop()
    assert count == 4_000


def opus(path: Path, *, stem: str = "Tatoeba.de-en", packed: bool = False) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in ("README", "LICENSE", f"{stem}.ids", "__MACOSX/._x"):
            archive.writestr(name, "not this\n")
        for language, side in (("en", 1), ("de", 0)):
            text = "".join(f"{pair[side]}\n" for pair in LINES).encode()
            archive.writestr(f"{stem}.{language}{'.gz' * packed}", gzip.compress(text) if packed else text)


@pytest.mark.parametrize("packed", [False, True])
def test_zip_of_opus(tmp_path: Path, packed: bool) -> None:
    opus(tmp_path / "corpus.zip", packed=packed)
    assert read(tmp_path / "corpus.zip") == LINES
    opus(tmp_path / "en-de.zip")
    assert read(tmp_path / "en-de.zip") == [(target, source) for source, target in LINES]
    assert read(tmp_path / "en-de.zip", ("de", "en")) == LINES


def test_zip_of_one_file_of_pairs_and_of_others(tmp_path: Path) -> None:
    path = tmp_path / "x.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("folder/memory.tmx", tmx(PAIRS))
    assert read(path) == LINES
    with zipfile.ZipFile(path, "w") as archive:
        for name in ("train.de", "train.en", "valid.de", "valid.en"):
            archive.writestr(name, "x\n")
    assert "and not two text files with the same name but for the languages" in failure(path)
    path.write_bytes(path.read_bytes()[:-40])
    assert failure(path) == f"{path}: the compressed file is damaged or cut short; fetch it again"


def test_bzip2_and_zstandard(tmp_path: Path) -> None:
    text = "".join(f"{source}\t{target}\n" for source, target in LINES).encode()
    (tmp_path / "a").write_bytes(bz2.compress(text))
    assert read(tmp_path / "a") == LINES
    zstd = pytest.importorskip(ZSTD, reason="the extra zstd is not installed")
    (tmp_path / "b").write_bytes(zstd.compress(text[:40]) + zstd.compress(text[40:]))
    assert read(tmp_path / "b") == LINES
    whole = zstd.compress(text)
    for damaged in (whole[:-9], whole[:30] + bytes(9) + whole[39:]):
        (tmp_path / "b").write_bytes(damaged)
        assert failure(tmp_path / "b").endswith("the compressed file is damaged or cut short; fetch it again")


def test_zstandard_that_is_not_installed_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").write_bytes(b"\x28\xb5\x2f\xfd")
    monkeypatch.setitem(sys.modules, ZSTD, None)
    assert "backports.zstd, which reads .zst, is not installed: pip install" in failure(tmp_path / "a")


def documents(folder: Path) -> dict[str, Path]:
    """Files that hold no lines, by what they are."""
    database = sqlite3.connect(folder / "memory.db")
    database.execute("create table pairs (source, target)")
    database.commit()
    database.close()
    files = {
        "a PDF file": b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n",
        "a PO file": b'# German\n#, fuzzy\nmsgid ""\nmsgstr ""\n"Language: de\\n"\n\nmsgid "dog"\nmsgstr "Hund"\n',
        "an HTML page": b"\xef\xbb\xbf<!doctype html>\n<html lang=de><p>Ein Hund\n",
        "an XML file": b"<?xml version='1.0'?>\n<!-- x --><resources><string name='a'/></resources>",
        "an SQLite database": (folder / "memory.db").read_bytes(),
        "an old Word or Excel file": b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(100),
        "text in UTF-16 without a byte order mark": "Hund\tdog\n".encode("utf-16-be"),
    }
    archives = {"a Word document (DOCX)": "word/document.xml", "an Excel workbook (XLSX)": "xl/workbook.xml"}
    for kind, name in archives.items():
        data = io.BytesIO()
        with zipfile.ZipFile(data, "w") as archive:
            archive.writestr("[Content_Types].xml", "<Types/>")
            archive.writestr(name, "<x/>")
        files[kind] = data.getvalue()
    for number, (kind, content) in enumerate(files.items()):
        (folder / f"{number}.txt").write_bytes(content)
        files[kind] = folder / f"{number}.txt"  # type: ignore[assignment]
    return files  # type: ignore[return-value]


def test_what_holds_no_pairs_is_named_by_its_first_bytes(tmp_path: Path) -> None:
    for kind, path in documents(tmp_path).items():
        assert failure(path).startswith(f"{path}: is {kind}, and not one of the files of pairs")
        with pytest.raises(InputError, match="lines of plain text are needed"):
            open_text(path)

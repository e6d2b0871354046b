"""Translations of one shard of each kind, and of the records in it."""

from __future__ import annotations

import gzip
import io
import json
import lzma
from pathlib import Path

import pytest

import nmt as package
from nmt.core.errors import InputError
from nmt.core.lines import Line, LineReader
from nmt.extras.cluster.records import WARNINGS, ShardOptions, Tally, object_text, translate_shard, with_value
from nmt.extras.cluster.shards import find_shards
from nmt.translator.translator import Translator
from nmt.translator.windows import OutputFormat, OutputOptions
from tests.workflows.runs import sentences


def test_an_object_keeps_its_bytes_and_gets_one_field_more() -> None:
    text = '{"id": 12345678901234567890123, "x": 1.10, "text": "a\\u2028\\ud83d\\ude00\\nb", "y": {"text": 3} } '
    assert object_text(Line(1, text), "text", "translation") == "a\u2028😀\nb"
    made = with_value(text, "translation", 'say "ü"\u2028')
    assert made.startswith(text.rstrip()[:-1])
    assert "\n" not in made
    assert "\u2028" not in made
    assert json.loads(made) == {**json.loads(text), "translation": 'say "ü"\u2028'}
    assert (object_text(Line(1, " "), "text", "translation"), with_value(" ", "translation", "")) == ("", " ")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"text": "a"', "line 7: is not a JSON: "),
        ("[1]", "line 7: is not a JSON object, but a list"),
        ('{"body": "a"}', "line 7: has no field 'text'; say with --field where the text is"),
        ('{"text": null}', "line 7: field 'text' is not a text, but null"),
        ('{"text": 3}', "line 7: field 'text' is not a text, but of type int"),
        ('{"text": "a", "translation": "b"}', "line 7: has a field 'translation' already; rename it"),
        ("[" * 100_000, "line 7: is not a JSON: "),
    ],
    ids=["cut", "list", "other-field", "null", "number", "taken", "deep"],
)
def test_what_is_no_record_is_told_with_its_line(text: str, message: str) -> None:
    with pytest.raises(InputError, match=f"^{message}"):
        object_text(Line(7, text), "text", "translation")


def test_an_object_that_was_cut_is_told_as_such() -> None:
    _, line = LineReader(io.BytesIO(b'{"text": "a"}\n{"text": "' + b"a" * 90 + b'"}\n'), limit_bytes=50)
    with pytest.raises(InputError, match="^line 2: 102 bytes long; cut to the first 50: is not a JSON: "):
        object_text(line, "text", "translation")


@pytest.fixture(scope="module")
def translator(trained: Path) -> Translator:
    return package.load(trained / "run", device="cpu", precision="float32")


def translated(translator: Translator, source: Path, target: Path, format: OutputFormat = "text") -> Tally:
    (shard,) = find_shards(source)
    return translate_shard(translator, ShardOptions(OutputOptions(format), "text"), shard, target)


TEXTS = [source for source, _ in sentences(5, seed=3)]


def test_compressed_text_comes_back_compressed(tmp_path: Path, translator: Translator) -> None:
    text = "".join(f"{text}\r\n" for text in TEXTS).encode() + b"\n\xff"
    expected = "".join(f"{each.text}\n" for each in translator.translate([*TEXTS, "", "\ufffd"])).encode()
    zstd = pytest.importorskip("backports.zstd")
    (tmp_path / "a.txt.gz").write_bytes(gzip.compress(text))
    (tmp_path / "b.txt.xz").write_bytes(lzma.compress(text))
    (tmp_path / "c.txt.zst").write_bytes(zstd.compress(text))
    unpacked = (("a.txt.gz", gzip.decompress), ("b.txt.xz", lzma.decompress), ("c.txt.zst", zstd.decompress))
    for name, unpack in unpacked:
        tally = translated(translator, tmp_path / name, tmp_path / "out")
        assert unpack((tmp_path / "out").read_bytes()) == expected
        assert (tally.lines, tally.warnings) == (7, ["line 7: not UTF-8 (byte 0xff at position 1); replaced by U+FFFD"])
    (tmp_path / "c.gz").write_bytes(gzip.compress(text)[:-9])
    with pytest.raises(InputError, match="^the compressed file is damaged or cut short"):
        translated(translator, tmp_path / "c.gz", tmp_path / "none")
    assert not (tmp_path / "none").exists()


def test_records_get_their_translations(tmp_path: Path, translator: Translator) -> None:
    lines = [json.dumps({"n": number, "text": text}) for number, text in enumerate(TEXTS)]
    lines[2:2] = ["", json.dumps({"text": "Hund\nKatze \ud800"})]
    (tmp_path / "a.jsonl").write_text("\n".join(lines))
    texts = [*TEXTS[:2], "Hund\nKatze \ufffd", *TEXTS[2:]]
    translated(translator, tmp_path / "a.jsonl", tmp_path / "out")
    made = (tmp_path / "out").read_text().split("\n")
    assert (made[2], made[-1], len(made)) == ("", "", 8)
    expected = [each.text for each in translator.translate(texts)]
    assert [json.loads(line)["translation"] for line in made if line] == expected
    assert [json.loads(line).get("n") for line in made if line] == [0, 1, None, 2, 3, 4]
    translated(translator, tmp_path / "a.jsonl", tmp_path / "out", "jsonl")
    found = [json.loads(line)["translations"] for line in (tmp_path / "out").read_text().split("\n") if line]
    assert [best["text"] for best, *_ in found] == expected
    assert set(found[0][0]) == {"text", "score", "log_prob", "tokens"}


def test_columns_get_their_translations(tmp_path: Path, translator: Translator) -> None:
    pa = pytest.importorskip("pyarrow", reason="PyArrow is not installed: pip install '.[ray]'")
    pq = pytest.importorskip("pyarrow.parquet")
    table = pa.table({"n": pa.array(range(5), pa.int16()), "text": TEXTS, "list": [[1], [], None, [2, 3], []]})
    table = table.replace_schema_metadata({"made by": "hand"})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=2)
    translated(translator, tmp_path / "a.parquet", tmp_path / "out.parquet")
    made = pq.read_table(tmp_path / "out.parquet")
    given = pq.read_table(tmp_path / "a.parquet")
    assert made.drop_columns(["translation"]).equals(given, check_metadata=True)
    assert made.schema.metadata[b"made by"] == b"hand"
    assert made["translation"].to_pylist() == [each.text for each in translator.translate(TEXTS)]
    assert pq.ParquetFile(tmp_path / "out.parquet").num_row_groups == 3
    for columns, message in (
        ({"body": TEXTS}, "has no column 'text', but body; say with --field where the text is"),
        ({"text": TEXTS, "translation": TEXTS}, "has a column 'translation' already; rename it"),
        ({"text": ["a", None]}, "row 2: column 'text' is not a text, but null"),
        ({"text": [1]}, "row 1: column 'text' is not a text, but of type int"),
    ):
        pq.write_table(pa.table(columns), tmp_path / "b.parquet")
        with pytest.raises(InputError, match=f"^{message}"):
            translated(translator, tmp_path / "b.parquet", tmp_path / "none")
    (tmp_path / "b.parquet").write_text("no parquet at all")
    with pytest.raises(InputError, match="^is damaged, or no Parquet: "):
        translated(translator, tmp_path / "b.parquet", tmp_path / "none")
    assert not (tmp_path / "none").exists()


def test_of_many_warnings_the_first_are_told() -> None:
    tally = Tally()
    for first in range(0, 50, 10):
        tally.add(10, [str(number) for number in range(first, first + 10)])
    assert tally.warnings == [str(number) for number in range(WARNINGS)]
    assert (tally.lines, tally.unsaid) == (50, 50 - WARNINGS)

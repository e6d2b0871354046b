"""The parts of a translation of many files that do not need a cluster: the choice of files, their outputs, and the
manifest."""

from __future__ import annotations

import gzip
import io
import json
import lzma
from pathlib import Path
from typing import Any

import pytest

import nmt as package
from nmt.core.errors import InputError
from nmt.core.files import whole_file
from nmt.core.lines import Line, LineReader
from nmt.extras.cluster import cluster
from nmt.extras.cluster.manifest import FILE, ShardManifest, remove_leftovers
from nmt.extras.cluster.records import WARNINGS, ShardOptions, Tally, object_text, translate_shard, with_value
from nmt.extras.cluster.shards import Shard, check_output, check_wanted, find_shards
from nmt.extras.cluster.translate_shards import place_of
from nmt.translator.translator import Translator
from nmt.translator.windows import OutputFormat, OutputOptions
from tests.workflows.runs import nmt, sentences
from tests.workflows.test_commands import error


def write(folder: Path, *names: str) -> list[Path]:
    folder.mkdir(exist_ok=True, parents=True)
    for name in names:
        (folder / name).write_text(f"{name}\n")
    return [folder / name for name in names]


def names(shards: list[Shard]) -> list[str]:
    return [shard.name for shard in shards]


def test_a_file_a_folder_and_a_pattern_are_shards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "in", "b.txt", "a.txt", ".hidden", "c.jsonl")
    (tmp_path / "in" / "folder").mkdir()
    write(tmp_path / "in" / "deep", "d.txt")
    assert names(find_shards(tmp_path / "in")) == ["a.txt", "b.txt", "c.jsonl"]
    assert names(find_shards(tmp_path / "in" / "*.txt")) == ["a.txt", "b.txt"]
    assert names(find_shards(tmp_path / "in" / "**" / "*.txt")) == ["a.txt", "b.txt", "d.txt"]
    monkeypatch.chdir(tmp_path)
    (found,) = find_shards(Path("in/a.txt"))
    assert (found.path, found.size) == (tmp_path / "in" / "a.txt", 6)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("a.txt", "text"), ("a", "text"), ("a.de.gz", "text"), ("a.jsonl", "jsonl"), ("a.NDJSON", "jsonl"),
        ("a.jsonl.xz", "jsonl"), ("part.0.parquet", "parquet"), ("parquet", "text"),
    ],
)  # fmt: skip
def test_the_ending_tells_the_kind(name: str, kind: str) -> None:
    assert Shard(Path(name), 0, 0).kind == kind


def test_what_cannot_be_shards_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="none/\\*: is neither a file nor a folder, and no file matches it"):
        find_shards(tmp_path / "none" / "*")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="empty: the folder has no file in it"):
        find_shards(tmp_path / "empty")
    (one,) = write(tmp_path / "a", "x.txt")
    (other,) = write(tmp_path / "b", "x.txt")
    with pytest.raises(InputError, match=f"{one} and {other} have one name, and so would their translations"):
        find_shards(tmp_path / "*" / "*")
    for name, message in (("x.zst", ".zst is not read; unpack it"), ("x.parquet.gz", "Parquet is compressed inside")):
        (path,) = write(tmp_path, name)
        with pytest.raises(InputError, match=message):
            find_shards(path)


def test_where_translations_cannot_go(tmp_path: Path) -> None:
    (path,) = write(tmp_path / "in", "x.txt")
    (tmp_path / "link").symlink_to("in")
    for output, message in (
        (path, "is a file"),
        (path.parent, "the folder of the input"),
        (tmp_path / "link", "input"),
    ):
        with pytest.raises(InputError, match=f"^--output {output}: .*{message}"):
            check_output(find_shards(path), output)
    check_output(find_shards(path), tmp_path / "new")


@pytest.mark.parametrize(
    ("name", "format", "field", "message"),
    [
        ("a.txt", "text", "body", "--field: is for JSONL and Parquet, and the input is text"),
        ("a.jsonl", "tsv", None, "--format tsv: is for text, and a.jsonl holds records; use text or jsonl"),
        ("a.parquet", "jsonl", None, "--format jsonl: a.parquet gets a column of text; use --format text"),
    ],
)
def test_what_goes_not_together_is_refused(name: str, format: OutputFormat, field: str | None, message: str) -> None:
    with pytest.raises(InputError, match=f"^{message}"):
        check_wanted([Shard(Path(name), 0, 0)], format, field)


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


def test_a_manifest_knows_what_differs(tmp_path: Path) -> None:
    made_with: dict[str, Any] = {"model": ["12ab"], "search": {"beam": 5, "sampling": None}, "lengths": [3, 4]}
    assert ShardManifest.load(tmp_path) is None
    a, b, c = (Shard(path, 6, 1) for path in write(tmp_path / "in", "a.txt", "b.txt", "c.txt"))
    ShardManifest().begin(made_with, [a, b]).save(tmp_path)
    found = ShardManifest.load(tmp_path)
    assert found is not None
    found.check(made_with, tmp_path)
    for change, message in (
        ({"search": {"beam": 4, "sampling": None}}, "with search.beam 5, not 4"),
        ({"search": {"beam": 5, "sampling": {"seed": 1}}}, "with search.sampling.seed unset, not 1"),
        ({"model": ["34cd"]}, "with another model"),
        ({"lengths": [3, 5]}, r"with lengths \[3, 4\], not \[3, 5\]"),
    ):
        with pytest.raises(InputError, match=f"^--output {tmp_path}: was begun {message}; keep its settings"):
            found.check({**made_with, **change}, tmp_path)
    assert found.remaining([a, b, c], tmp_path) == [a, b, c]
    assert not found.has_any(tmp_path)
    write(tmp_path, "a.txt")
    assert found.remaining([a, b, c], tmp_path) == [b, c]
    assert found.has_any(tmp_path)
    with pytest.raises(InputError, match="a.txt: has changed since .* was written; delete that file"):
        found.remaining([Shard(a.path, 7, 1), b], tmp_path)
    write(tmp_path, "c.txt")
    with pytest.raises(InputError, match="c.txt: is there, and no translation of ours"):
        found.remaining([a, b, c], tmp_path)
    (tmp_path / FILE).write_text("{}")
    with pytest.raises(InputError, match=f"{FILE}: is damaged"):
        ShardManifest.load(tmp_path)


def test_a_file_is_whole_or_not_there(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    with pytest.raises(NotADirectoryError), whole_file(path) as partial:
        (partial / "no folder").write_text("half")
    assert list(tmp_path.iterdir()) == []
    with whole_file(path) as partial:
        partial.write_text("whole")
        assert not path.exists()
    assert path.read_text() == "whole"
    assert path.stat().st_mode & 0o777 == write(tmp_path, "b.txt")[0].stat().st_mode & 0o777
    left = write(tmp_path, ".a.txt.partial-12-x", ".b.txt.other")
    remove_leftovers(tmp_path, find_shards(path))
    assert [each.exists() for each in left] == [False, True]


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
    (tmp_path / "a.txt.gz").write_bytes(gzip.compress(text))
    (tmp_path / "b.txt.xz").write_bytes(lzma.compress(text))
    for name, unpack in (("a.txt.gz", gzip.decompress), ("b.txt.xz", lzma.decompress)):
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
        tally.add(10, 7, [str(number) for number in range(first, first + 10)])
    assert tally.warnings == [str(number) for number in range(WARNINGS)]
    assert (tally.lines, tally.subwords, tally.unsaid) == (50, 35, 50 - WARNINGS)


def test_ray_is_an_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"^--ray: Ray is not installed: pip install .*\[ray\]'$"):
        cluster.check_installed()


def test_the_gpu_that_is_given_is_one_of_those_in_sight() -> None:
    assert place_of("1", None) == 1
    assert place_of("5", "3,5") == 1
    assert place_of("GPU-b", "GPU-a,GPU-b") == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--prefix", "p"], "--prefix: cannot be had together with --ray; leave it out"),
        (["--constraints", "p"], "--constraints: cannot be had together with --ray; leave it out"),
        (["--workers", "2"], "--workers: cannot be had together with --ray; leave it out"),
        ([], "--ray: needs --input: shards are read from files and written to a folder"),
        (["--input", "train.de"], "--ray: needs --output: shards are read from files and written to a folder"),
    ],
)
def test_options_that_need_one_process_are_refused(trained: Path, arguments: list[str], message: str) -> None:
    assert error(nmt("translate", "run", "--ray", "auto", *arguments, folder=trained)) == message


def test_fields_are_for_shards(trained: Path) -> None:
    assert error(nmt("translate", "run", "--field", "body", folder=trained)) == (
        "--field: is for the JSONL and Parquet that --ray reads; without it the input is text"
    )

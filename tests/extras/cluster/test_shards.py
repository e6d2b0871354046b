"""The choice of the files that are translated, and of the folder of their translations."""

from __future__ import annotations

from pathlib import Path

import pytest

from nmt.core.errors import InputError
from nmt.extras.cluster.shards import Shard, check_output, check_wanted, find_shards
from nmt.translator.windows import OutputFormat


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
    for name, message in (
        ("x.7z", ".7z is not read; unpack it, or use .gz, .xz"),
        ("x.docx", "is a document; translate it by itself"),
        ("x.parquet.gz", "Parquet is compressed inside"),
    ):
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

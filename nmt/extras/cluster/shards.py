"""Shards: files that are translated one by one, each to a file of the same name in another folder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from glob import glob
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from nmt.core.errors import InputError
from nmt.core.installation import missing
from nmt.data.packed import PACKED
from nmt.extras.documents.files.formats import is_document
from nmt.translator.windows import OutputFormat

Kind = Literal["text", "jsonl", "parquet"]

_KINDS: dict[str, Kind] = {".jsonl": "jsonl", ".ndjson": "jsonl", ".parquet": "parquet"}

_FOREIGN = (".zip", ".7z")


@dataclass(frozen=True)
class Shard:
    """A file to translate, with its properties when it was found."""

    path: Path
    """Absolute path."""
    size: int
    """Size in bytes."""
    mtime_ns: int

    @property
    def name(self) -> str:
        """Name of the file, and also of its translation."""
        return self.path.name

    @property
    def kind(self) -> Kind:
        """Kind of the file by its ending, which is text for any unknown ending."""
        return _KINDS.get(_plain(self.path).suffix.lower(), "text")

    @classmethod
    def of(cls, path: Path) -> Shard:
        """Returns the shard with its current properties. Raises OSError."""
        about = path.stat()
        return cls(path.absolute(), about.st_size, about.st_mtime_ns)


def find_shards(pattern: Path) -> list[Shard]:
    """Finds the shards of a file, a folder or a pattern, by name, without hidden files. Raises InputError if there are
    none, if two have the same name, and for files that cannot be read in the format of their ending."""
    pattern = pattern.expanduser()
    if pattern.is_dir():
        paths = [path for path in pattern.iterdir() if path.is_file() and not path.name.startswith(".")]
        if not paths:
            raise InputError(f"--input {pattern}: the folder has no file in it")
    elif pattern.is_file():
        paths = [pattern]
    else:
        paths = [Path(name) for name in glob(str(pattern), recursive=True) if Path(name).is_file()]
        if not paths:
            raise InputError(f"--input {pattern}: is neither a file nor a folder, and no file matches it")
    found: dict[str, Path] = {}
    for path in sorted(paths):
        _refuse_foreign(path)
        if (other := found.setdefault(path.name, path)) is not path:
            raise InputError(f"--input: {other} and {path} have one name, and so would their translations; rename one")
    try:
        return [Shard.of(found[name]) for name in sorted(found)]
    except OSError as error:
        raise InputError(f"--input {error.filename}: cannot be read: {error.strerror}") from None


def check_wanted(shards: Sequence[Shard], format: OutputFormat, field: str | None) -> None:
    """Raises InputError for a format that shards of their kind do not have, and for a field if they have no fields."""
    records = [shard for shard in shards if shard.kind != "text"]
    if field is not None and not records:
        raise InputError("--field: is for JSONL and Parquet, and the input is text; leave it out")
    for shard in records:
        if format == "tsv":
            raise InputError(f"--format tsv: is for text, and {shard.path} holds records; use text or jsonl")
        if format == "jsonl" and shard.kind == "parquet":
            raise InputError(f"--format jsonl: {shard.path} gets a column of text; use --format text")
        if shard.kind == "parquet" and find_spec("pyarrow") is None:
            raise missing(f"--input {shard.path}: PyArrow is", "ray")


def check_output(shards: Sequence[Shard], output: Path) -> None:
    """Raises InputError if translations would be among the shards, or cannot be written into a folder."""
    if output.exists() and not output.is_dir():
        raise InputError(f"--output {output}: is a file, and must be a folder, with a file for each shard")
    for folder in {shard.path.parent for shard in shards}:
        if output.exists() and output.samefile(folder):
            raise InputError(f"--output {output}: is the folder of the input; name another one")


def _plain(path: Path) -> Path:
    """Returns the name without the ending of a compressed file."""
    return path.with_suffix("") if path.suffix.lower() in PACKED else path


def _refuse_foreign(path: Path) -> None:
    ending = path.suffix.lower()
    if ending in _FOREIGN:
        raise InputError(f"--input {path}: {ending} is not read; unpack it, or use {', '.join(PACKED)}")
    if is_document(path):
        raise InputError(f"--input {path}: is a document; translate it by itself, without --ray and --shard")
    if ending in PACKED and _plain(path).suffix.lower() == ".parquet":
        raise InputError(f"--input {path}: Parquet is compressed inside; unpack it")

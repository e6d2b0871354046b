"""Translation of one shard, of any kind, to another file."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from nmt.alignment.formats import json_line
from nmt.core.errors import InputError
from nmt.core.files import whole_file
from nmt.core.lines import Line, LineReader, windows
from nmt.core.memory import malloc_trim
from nmt.data.context import DocumentContext
from nmt.data.corpus import open_bytes, unpacking
from nmt.extras.cluster.shards import Shard
from nmt.translator.translator import Translator
from nmt.translator.windows import OutputOptions, Window, json_results, warnings_and_subwords
from nmt.workflows.output_files import packed
from nmt.workflows.translate import LIMIT_BYTES, WINDOW_LINES, in_document

OBJECT_BYTES = 64 << 20
"""Maximum length of a line of JSON."""

WARNINGS = 20
"""Maximum number of lines of a shard that are named in warnings; further ones are only counted."""

_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass
class Tally:
    """Counts and warnings of a shard."""

    lines: int = 0
    warnings: list[str] = field(default_factory=list)
    """The first warnings."""
    unsaid: int = 0
    """Number of further warnings."""

    def add(self, lines: int, warnings: Sequence[str]) -> None:
        """Counts the lines and the warnings of a window."""
        self.lines += lines
        self.unsaid += max(len(self.warnings) + len(warnings) - WARNINGS, 0)
        self.warnings = [*self.warnings, *warnings][:WARNINGS]


def translate_records(translator: Translator, lines: Sequence[Line], options: OutputOptions, tally: Tally) -> list[Any]:
    """Translates the texts of records, and counts them. Returns the value for each record: its translation, or in the
    format ``jsonl`` a list of objects, one for each translation."""
    malloc_trim()
    sources, is_json = [line.text for line in lines], options.format == "jsonl"
    candidates = translator.candidates(sources, first_line=lines[0].number, scored=is_json)
    warnings, _ = warnings_and_subwords(translator, lines, candidates)
    tally.add(len(lines), warnings)
    if is_json:
        objects = json_results(translator, sources, candidates, alignment=options.alignment)
        return [result["translations"] for result in objects]
    return [best.text for best, *_ in candidates]


@dataclass(frozen=True)
class ShardOptions:
    """Settings of the translation of a shard."""

    output: OutputOptions
    field: str
    document: DocumentContext | None = None
    """Reader of the lines with those before them; None means that each line is read separately."""


def translate_shard(translator: Translator, options: ShardOptions, shard: Shard, target: Path) -> Tally:
    """Writes the translation of a shard atomically. Raises InputError, which names the line and not the shard, and
    OSError if it cannot be written."""
    tally = Tally()
    with whole_file(target) as partial:
        _BY_KIND[shard.kind](translator, options, shard.path, partial, tally)
        if Shard.of(shard.path) != shard:
            raise InputError("has changed while it was translated; run it again")
    return tally


def _text(translator: Translator, options: ShardOptions, source: Path, target: Path, tally: Tally) -> None:
    with _reading(source) as stream, target.open("wb") as file, packed(file, source.suffix) as sink:
        for window in windows(LineReader(stream, limit_bytes=LIMIT_BYTES), WINDOW_LINES):
            answer = options.output.translate(translator, Window(in_document(window, options.document)))
            sink.write(answer.text.encode())
            tally.add(len(window), answer.warnings)


def _jsonl(translator: Translator, options: ShardOptions, source: Path, target: Path, tally: Tally) -> None:
    name, field = result_name(options.output), options.field
    with _reading(source) as stream, target.open("wb") as file, packed(file, source.suffix) as sink:
        for window in windows(LineReader(stream, limit_bytes=OBJECT_BYTES), WINDOW_LINES):
            texts = [_bounded(object_text(line, field, name), line, field) for line in window]
            values = translate_records(translator, in_document(texts, options.document), options.output, tally)
            for line, value in zip(window, values, strict=True):
                sink.write(f"{with_value(line.text, name, value)}\n".encode())


def _parquet(translator: Translator, options: ShardOptions, source: Path, target: Path, tally: Tally) -> None:
    """Translates row group by row group, so that only one is in memory."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    name, field = result_name(options.output), options.field
    try:
        with pq.ParquetFile(source) as file:
            schema = file.schema_arrow
            if field not in schema.names:
                columns = ", ".join(schema.names)
                raise InputError(f"has no column {field!r}, but {columns}; say with --field where the text is")
            if name in schema.names:
                raise InputError(f"has a column {name!r} already; rename it")
            added = schema.append(pa.field(name, pa.string()))
            with pq.ParquetWriter(target, added) as writer:
                for number in range(file.num_row_groups):
                    table = file.read_row_group(number)
                    texts = _column(table, field, tally.lines)
                    values: list[str] = []
                    for first in range(0, len(texts), WINDOW_LINES):
                        lines = in_document(texts[first : first + WINDOW_LINES], options.document)
                        values += translate_records(translator, lines, options.output, tally)
                    writer.write_table(table.append_column(added.field(name), pa.array(values, pa.string())))
    except pa.ArrowException as error:
        raise InputError(f"is damaged, or no Parquet: {' '.join(str(error).split())}") from None


_BY_KIND = {"text": _text, "jsonl": _jsonl, "parquet": _parquet}


def result_name(wanted: OutputOptions) -> str:
    """Chooses the name of a record's translation."""
    return "translations" if wanted.format == "jsonl" else "translation"


def object_text(line: Line, field: str, name: str) -> str:
    """Reads the text of a line of JSON; a blank line has none. Raises InputError for a line that is not an object, has
    no text in ``field``, or has ``name`` already."""
    if not line.text.strip():
        return ""
    try:
        record = json.loads(line.text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{line.warning or f'line {line.number}'}: is not a JSON: {error}") from None
    if not isinstance(record, dict):
        raise InputError(f"line {line.number}: is not a JSON object, but {_kind_of(record)}")
    if field not in record:
        raise InputError(f"line {line.number}: has no field {field!r}; say with --field where the text is")
    if not isinstance(text := record[field], str):
        raise InputError(f"line {line.number}: field {field!r} is not a text, but {_kind_of(text)}")
    if name in record:
        raise InputError(f"line {line.number}: has a field {name!r} already; rename it")
    return text


def with_value(text: str, name: str, value: Any) -> str:
    """Adds a field to a line of JSON, with the rest unchanged; a blank line is returned unchanged."""
    return f"{text.rstrip()[:-1]}, {json_line(name)}: {json_line(value)}}}" if text.strip() else text


def _bounded(text: str, line: Line, field: str) -> Line:
    """Converts a text to a valid line of input: without invalid characters, and not longer than the limit of a line."""
    text = _SURROGATE.sub("\ufffd", text)
    warnings = [] if line.warning is None else [line.warning]
    if len(data := text.encode()) > LIMIT_BYTES:
        text = data[:LIMIT_BYTES].decode(errors="ignore")
        warnings.append(f"line {line.number}: field {field!r} is {len(data):,} bytes long; cut to {LIMIT_BYTES:,}")
    return Line(line.number, text, "; ".join(warnings) or None)


def _column(table: Any, field: str, before: int) -> list[Line]:
    """Reads a column of text as lines; ``before`` is the number of rows of the file before those of the table."""
    lines = []
    for row, text in enumerate(table.column(field).to_pylist(), before + 1):
        if not isinstance(text, str):
            raise InputError(f"row {row}: column {field!r} is not a text, but {_kind_of(text)}")
        lines.append(_bounded(text, Line(row, text), field))
    return lines


def _kind_of(value: object) -> str:
    return "null" if value is None else "a list" if isinstance(value, list) else f"of type {type(value).__name__}"


@contextmanager
def _reading(path: Path) -> Iterator[BinaryIO]:
    try:
        with open_bytes(path) as stream, unpacking(path):
            yield stream
    except InputError as error:  # who reads it knows the file
        raise InputError(str(error).removeprefix(f"{path}: ")) from None

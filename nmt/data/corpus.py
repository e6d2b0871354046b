"""Reading parallel text, line by line in constant memory.

A line ends only at LF or CRLF: a form feed, a lone CR, U+0085 or U+2028 are characters of the line. So line n is the
same as in `sed`, `wc` and editors. A byte order mark before the first line does not belong to it.

A corpus of one file is a table, JSON lines, TMX, XLIFF (`nmt.data.formats`) or a ZIP archive with one of these or with
two text files. All files may be compressed with gzip, bzip2, xz or Zstandard, and text may be in UTF-16.
"""

from __future__ import annotations

import bz2
import codecs
import gzip
import html
import io
import lzma
import re
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import chain, islice, zip_longest
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, TypeAlias, TypeVar, cast

from nmt.core import log
from nmt.core.errors import InputError
from nmt.core.files import reading
from nmt.data import file_kinds
from nmt.data.config import CorpusConfig, TrainingCorpusConfig
from nmt.data.file_kinds import LEFT_OUT, NO_UTF8, NOT_UTF8, Fault, Languages, Row, once
from nmt.data.misalignment import locate_misalignment, shifted_windows
from nmt.data.packed import PACKED, zstandard

if TYPE_CHECKING:
    from typing_extensions import Buffer

T = TypeVar("T")
AnyPath: TypeAlias = Path | zipfile.Path
"""A file, or a member of a ZIP archive."""

BLOCK_PAIRS = 8192
MOST_FAULTY = 0.05
"""Share of the rows of a corpus that may be invalid: if there are more, the whole file is considered faulty."""
LONGEST = 1 << 16
"""Maximum number of characters of a line to score or align, which takes time and memory with the square of the length.
When a corpus is prepared, the filters drop long lines."""
_READ_BYTES = 1 << 20
_MAX_LINE_BYTES = 16 << 20
_XZ_BYTES = 256 << 20  # `xz -9` needs 65 MiB
_BOM = b"\xef\xbb\xbf"
_INVALID = re.compile("[\udc80-\udcff]")  # what surrogateescape makes of bytes that are not UTF-8


@dataclass(frozen=True)
class PairBlock:
    """Consecutive pairs of one corpus.

    Attributes:
        first_line: Line number of the first pair, from 1; in a file that does not consist of lines, the number of the
            row or unit.
        sources, targets: The sides, of equal count, without line ends.
        links: The line of links of each pair, if they are requested and exist.
        faulty: Indices of rows that are not pairs. Their sides are blank.
    """

    first_line: int
    sources: list[str]
    targets: list[str]
    links: list[str] | None = None
    faulty: Sequence[int] = ()


Faulty: TypeAlias = Literal["drop", "refuse"]


def read_blocks(corpus: CorpusConfig, size: int = BLOCK_PAIRS, *, faulty: Faulty = "drop") -> Iterator[PairBlock]:
    """Streams a corpus in blocks of `size` pairs; the last may be smaller.

    A row without a pair (without exactly one TAB, not UTF-8, ...) has blank sides, and is reported at the end. Raises
    InputError for a file that cannot be read, is damaged, empty or of an unknown kind; for two files with different
    line counts (at the end, with the line where they probably start to differ); and at the end if more than
    `MOST_FAULTY` of the rows are not pairs, or any if `faulty` is "refuse", or if more than that are shifted.
    """
    first_line, wrong = 1, 0
    reasons: Counter[str] = Counter()
    places: list[int] = []
    shifted: list[tuple[int, int, int]] = []  # first line, number of lines, shift
    files = corpus.files
    groups = _one_file(files[0], corpus.languages) if len(files) == 1 else _two_files(*files)
    for rows in _regrouped(groups, size):
        no_pairs = {
            index: row if isinstance(row, Fault) else Fault(row, first_line + index)
            for index, row in enumerate(rows)
            if isinstance(row, (str, Fault))
        }
        reasons.update(fault.reason for fault in no_pairs.values())
        lines = [fault.line for fault in no_pairs.values() if fault.reason not in LEFT_OUT]
        wrong, places = wrong + len(lines), [*places, *lines][:10]
        for index in no_pairs:
            rows[index] = ("", "")
        sources, targets = map(list, zip(*cast(list[tuple[str, str]], rows), strict=True))
        if corpus.unescape:
            from nmt.data import formats

            sources, targets = ([formats.one_line(html.unescape(text)) for text in side] for side in (sources, targets))
        shifted += [(first_line + begin, end - begin, by) for begin, end, by in shifted_windows(sources, targets)]
        yield PairBlock(first_line, sources, targets, faulty=list(no_pairs))
        first_line += len(rows)
        if reasons.total() == first_line - 1 and wrong > 100:
            break  # the file has no pairs
    count = first_line - 1
    if count == 0:
        raise InputError(f"{corpus.name}: empty; a corpus needs at least one pair")
    listed = ", ".join(f"{each:,} {reason}" for reason, each in reasons.most_common())
    listed += f" (line{'s' * (wrong > 1)} {', '.join(map(str, places))}{', …' * (wrong > 10)})" if wrong else ""
    text = f"{corpus.name}: {reasons.total():,} of {count:,} rows are no pairs: {listed}"
    if wrong > (MOST_FAULTY * count if faulty == "drop" else 0) or reasons.total() == count:
        limit = f"up to {MOST_FAULTY:.0%} are left out" if faulty == "drop" else "data.faulty: drop leaves them out"
        remedy = f"mend them, in UTF-8 ({limit})"
        if reasons.total() == count and corpus.pairs is not None:
            remedy = "give lines of source, TAB, target in UTF-8, or a file of lines for each side"
        raise InputError(f"{text}; {remedy}")
    if reasons:
        once(f"{text}; left out", log.warning if wrong else log.info)
    if shifted:
        line, _, by = shifted[0]
        number = sum(number for _, number, _ in shifted)
        where = f"{abs(by)} line{'s' * (abs(by) > 1)} {'later' if by > 0 else 'earlier'} than its translation"
        text = f"{corpus.name}: by their lengths, {number:,} of {count:,} pairs are shifted"
        text += f"; from about line {line:,} on, each source stands {where}: mend the files there"
        text += ", or shuffle the pairs if they are right"  # in another order, nothing is found
        if number > MOST_FAULTY * count:
            raise InputError(text)
        once(text, log.warning)


def numbered_pairs(corpus: CorpusConfig) -> Iterator[tuple[int, str, str]]:
    """Reads the pairs of a corpus with their line numbers, without rows that are not pairs; see `read_blocks`."""
    for block in read_blocks(corpus):
        rows = zip(range(block.first_line, 1 << 62), block.sources, block.targets, strict=False)
        yield from (row for index, row in enumerate(rows) if index not in block.faulty) if block.faulty else rows


def read_linked_blocks(
    corpus: TrainingCorpusConfig, size: int = BLOCK_PAIRS, *, faulty: Faulty = "drop"
) -> Iterator[PairBlock]:
    """Reads blocks as `read_blocks` does, with the lines of `corpus.links` if there is such a file. Also raises
    InputError if it has more or fewer lines than the corpus has pairs (at the end)."""
    blocks = read_blocks(corpus, size, faulty=faulty)
    if corpus.links is None:
        yield from blocks
        return
    for block, links in zip_longest(blocks, _regrouped(_line_groups(corpus.links), size)):
        if block is None or links is None or len(links) != len(block.sources):
            count = sum(map(len, _line_groups(corpus.links)))
            pairs = sum(len(block.sources) for block in read_blocks(corpus))
            raise InputError(
                f"{corpus.links}: {count} lines for the {pairs} pairs of {corpus.name}: give one line for each pair, "
                "an empty one for a pair without links"
            )
        yield replace(block, links=links)


def read_lines(path: Path, *, longest: int | None = LONGEST) -> Iterator[str]:
    """Streams the lines of a plain or compressed file, without their ends.

    Raises InputError as `read_blocks` does, for JSON lines, and for a line of more than `longest` characters.
    """
    refuse_records(path)
    for number, line in enumerate(chain.from_iterable(_line_groups(path)), 1):
        if longest is not None and len(line) > longest:
            raise InputError(f"{path}:{number}: {len(line):,} characters are more than {longest:,}; split the line")
        yield line


def refuse_records(path: AnyPath) -> None:
    """Raises InputError for a file whose name says that it holds JSON lines, where lines of text are read."""
    if not {".jsonl", ".ndjson"}.isdisjoint(PurePath(path.name).suffixes):  # file.jsonl.gz, too
        remedy = "name it where pairs are read (--tsv, data.train.pairs), or translate it with --shard 1/1 and --output"
        raise InputError(f"{path}: holds JSON lines, not lines of text; {remedy}")


def open_bytes(path: AnyPath) -> BinaryIO:
    """Opens a file, plain or compressed, to read its uncompressed content. The compression is determined by its first
    bytes, not its name.

    Raises InputError if the file is missing or not a regular file.
    """
    with reading(path):
        if path.exists() and not path.is_file():
            what = "a folder" if path.is_dir() else "a device or a pipe, and corpora are read more than once"
            raise InputError(f"{path}: is {what}; name a file")
        with _open(path) as file:
            magic = file.read(6)
        unpacked = (unpacked for beginning, unpacked in _UNPACKED.items() if magic.startswith(beginning))
        return cast(BinaryIO, next(unpacked, _open)(path))


def _open(path: AnyPath) -> BinaryIO:
    return cast(BinaryIO, path.open("rb"))


def _zstandard(path: AnyPath) -> Any:
    zstd = zstandard()
    _DAMAGES.add(zstd.ZstdError)
    return zstd.ZstdFile(_open(path))


_UNPACKED: Mapping[bytes, Callable[[AnyPath], object]] = {
    b"\x1f\x8b": lambda path: gzip.GzipFile(fileobj=_open(path)),
    b"BZh": lambda path: bz2.BZ2File(_open(path)),
    b"\xfd7zXZ\x00": lambda path: io.BufferedReader(_Xz(path), _READ_BYTES),
    b"\x28\xb5\x2f\xfd": _zstandard,
}


def open_text(path: AnyPath) -> BinaryIO:
    """Opens a file as `open_bytes` does, as text in UTF-8; text in UTF-16 is converted.

    Also raises InputError if the first bytes are those of a document, such as TMX or PDF.
    """
    file = open_bytes(path)
    head, names = _beginning(file, path)
    if kind := file_kinds.kind_of(head, names):
        raise InputError(f"{path}: is {kind}, and lines of plain text are needed: {file_kinds.advice(kind)}")
    # bytes that are not UTF-16 become U+FFFD
    return cast(BinaryIO, codecs.EncodedFile(file, "utf-8", "utf-16", "replace")) if file_kinds.is_utf16(head) else file


def _beginning(file: BinaryIO, path: AnyPath) -> tuple[bytes, list[str]]:
    """Returns the first bytes of a file without consuming them and, for a ZIP archive, the names in it."""
    with unpacking(path):
        head = cast(io.BufferedReader, file).peek(4096)[:4096]
        if not (head.startswith(b"PK\x03\x04") and isinstance(path, Path)):
            return head, []
        with suppress(NotImplementedError), zipfile.ZipFile(path) as archive:
            members = [info for info in archive.infolist() if not info.is_dir()]
            if all(info.compress_type in _METHODS and not info.flag_bits & _ENCRYPTED for info in members):
                return head, [info.filename for info in members]
    raise InputError(f"{path}: the ZIP archive is encrypted, or packed by a rare method: unpack it")


_ENCRYPTED = 0x61  # or patched
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)


_DAMAGES = {lzma.LZMAError, EOFError, OSError, zlib.error, zipfile.BadZipFile}


@contextmanager
def unpacking(path: PurePath | zipfile.Path) -> Iterator[None]:
    """Raises InputError if a compressed file that is read in the body of the context is damaged, or takes too much
    memory."""
    try:
        yield
    except tuple(_DAMAGES) as error:
        if getattr(error, "errno", None) is not None:  # an error of the system; errors of gzip and bzip2 have no number
            raise
        if "Memory usage limit" in str(error):  # the message of liblzma
            raise InputError(f"{path}: takes more than {_XZ_BYTES >> 20} MiB of memory to unpack; use xz -9") from None
        raise InputError(f"{path}: the compressed file is damaged or cut short; fetch it again") from None


class _Xz(io.RawIOBase):
    """Reader of the uncompressed content of an xz file. Unlike lzma.open it takes bounded memory: a file of a few bytes
    can demand gigabytes for unpacking."""

    def __init__(self, path: AnyPath) -> None:
        super().__init__()
        self._file = _open(path)
        self._packed = b""
        self._decompressor: lzma.LZMADecompressor | None = None

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Buffer) -> int:
        """Raises LZMAError if the file is damaged or demands too much memory, EOFError if it is cut short."""
        view = memoryview(buffer).cast("B")
        while True:
            if self._decompressor is None or self._decompressor.needs_input:
                self._packed += self._file.read(_READ_BYTES)
            if self._decompressor is None:
                self._packed = self._packed.lstrip(b"\0")  # padding between streams
                if not self._packed:
                    return 0
                self._decompressor = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_XZ_BYTES)
            elif not self._packed and self._decompressor.needs_input:
                raise EOFError("cut short")
            data = self._decompressor.decompress(self._packed, len(view))
            self._packed = b""
            if self._decompressor.eof:
                self._packed, self._decompressor = self._decompressor.unused_data, None
            if data:
                view[: len(data)] = data
                return len(data)

    def close(self) -> None:
        self._file.close()
        super().close()


_PAIRED = ("tmx", "xlf", "xliff", "tsv", "csv", "jsonl", "ndjson")
_NO_TEXT = re.compile(r"(?:.*/)?(?:[._]|(?:readme|licen[cs]e|info)\b).*|.*\.(?:ids|scores|xml)", re.IGNORECASE)
"""Names of files without sentences in archives of OPUS or of macOS."""


def _one_file(path: AnyPath, languages: Languages | None) -> Iterator[Sequence[Row]]:
    """Yields the rows of a file that holds both sides. Its format is determined by its first bytes; for CSV the name
    counts, too."""
    from nmt.data import formats

    place = str(path)
    hints = formats.languages_in(place)[::-1]  # the name of the file counts before those of its folders
    with open_bytes(path) as file, unpacking(path):
        head, names = _beginning(file, path)
        kind = file_kinds.kind_of(head, names)
        if kind in (file_kinds.TMX, file_kinds.XLIFF):
            yield from formats.unit_rows(iter(lambda: file.read(1 << 16), b""), place, languages, hints)
        elif kind == file_kinds.ZIP and names:
            yield from _archive(Path(place), names, languages, hints)
        elif kind:
            raise InputError(
                f"{path}: is {kind}, and not one of the files of pairs that nmt reads (TSV, CSV, JSON lines, TMX, "
                f"XLIFF, or a ZIP archive of two text files): {file_kinds.advice(kind)}"
            )
        else:
            ends = [end.lower() for end in PurePath(place).suffixes if end not in PACKED]
            groups, is_csv = _line_groups(path, lenient=True), ends[-1:] == [".csv"]
            yield from formats.text_rows(
                groups, place, languages, hints, is_csv=is_csv, is_utf16=file_kinds.is_utf16(head)
            )


def _archive(
    path: Path, names: Sequence[str], languages: Languages | None, hints: Sequence[Languages]
) -> Iterator[Sequence[Row]]:
    """Yields the rows of a ZIP archive of two text files whose names end in languages, or of one file of pairs."""
    from nmt.data import formats

    names = [name for name in names if not _NO_TEXT.fullmatch(name)]
    ends = [[end[1:].lower() for end in PurePath(name).suffixes if end not in (*PACKED, ".txt")] for name in names]
    sides = {each[-1]: zipfile.Path(path, name) for each, name in zip(ends, names, strict=True) if each}
    if len(names) == 1 and {*sides}.intersection(_PAIRED):
        yield from _one_file(zipfile.Path(path, names[0]), languages)
        return
    if not 2 <= len(sides) == len(names) or {*sides}.intersection(_PAIRED):
        raise InputError(
            f"{path}: holds {', '.join(names[:5]) or 'no text'}{', …' * (len(names) > 5)}, and not two text files with "
            "the same name but for the languages, such as corpus.de and corpus.en: unpack it, and name files"
        )
    hints = [*hints, *(hint for name in names for hint in formats.languages_in(name))]
    source, target = (sides[name] for name in formats.choose(list(sides), str(path), languages, hints))
    once(f"{path}: source {source.name}, target {target.name}")
    yield from _two_files(source, target)


def _two_files(source: AnyPath, target: AnyPath) -> Iterator[Sequence[Row]]:
    refuse_records(source)
    refuse_records(target)
    blocks = (_regrouped(_line_groups(path, lenient=True), BLOCK_PAIRS) for path in (source, target))
    for sources, targets in zip_longest(*blocks, fillvalue=[]):
        if len(sources) != len(targets):
            counts = [sum(map(len, _line_groups(path, lenient=True))) for path in (source, target)]
            both = (chain.from_iterable(_line_groups(path, lenient=True)) for path in (source, target))
            raise InputError(
                f"{source} has {counts[0]} lines but {target} has {counts[1]}; "
                f"their lengths stop correlating at about line {locate_misalignment(*both)}: mend the files there"
            )
        yield [NO_UTF8 if NOT_UTF8 in row else row for row in zip(sources, targets, strict=True)]


def _regrouped(groups: Iterator[Sequence[T]], size: int) -> Iterator[list[T]]:
    """Yields the same lines in groups of exactly `size`, except for the last group."""
    lines = chain.from_iterable(groups)
    return iter(lambda: list(islice(lines, size)), [])


def _line_groups(path: AnyPath, *, lenient: bool = False) -> Iterator[list[str]]:
    """Yields the lines of a file in groups of about a megabyte. If ``lenient``, ``NOT_UTF8`` replaces a line that is
    not UTF-8."""
    number = 1
    for data in whole_lines(path):
        try:
            lines = data.decode("utf-8").split("\n")
        except UnicodeDecodeError as error:
            if not lenient:
                line = number + data.count(b"\n", 0, error.start)
                column = error.start - data.rfind(b"\n", 0, error.start)
                raise InputError(
                    f"{path}:{line}: not UTF-8: byte 0x{data[error.start]:02x} at byte {column} of the line; "
                    "convert the file to UTF-8"
                ) from None
            lines = data.decode("utf-8", "surrogateescape").split("\n")
            lines = [NOT_UTF8 if _INVALID.search(line) else line for line in lines]
        last = lines.pop()
        if b"\r" in data:
            lines = [line.removesuffix("\r") for line in lines]
        if last:  # without LF, so its CR does not end a line
            lines.append(last)
        number += len(lines)
        yield lines


def whole_lines(path: AnyPath) -> Iterator[bytes]:
    """Yields the bytes of a text file in parts that end after line ends."""
    with open_text(path) as file, reading(path), unpacking(path):
        rest = b""
        for number, data in enumerate(iter(lambda: file.read(_READ_BYTES), b"")):
            ended, newline, begun = (data if number else data.removeprefix(_BOM)).rpartition(b"\n")
            if newline:
                yield rest + ended + newline
                rest = begun
            else:
                rest += begun
                if len(rest) > _MAX_LINE_BYTES:
                    raise InputError(f"{path}: a line of more than {_MAX_LINE_BYTES >> 20} MiB; is this a text file?")
        if rest:
            yield rest

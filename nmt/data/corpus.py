"""Reading parallel text, line by line in constant memory.

A line ends at LF or CRLF and nowhere else: a form feed, a lone CR, U+0085 or U+2028 are characters of the line. So line
n here is line n of `sed`, `wc` and the editor. A byte order mark before the first line does not belong to it.
"""

from __future__ import annotations

import gzip
import io
import lzma
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, cast

from nmt.core.errors import InputError
from nmt.data.config import CorpusConfig, TrainingCorpusConfig
from nmt.data.misalignment import locate_misalignment

if TYPE_CHECKING:
    from typing_extensions import Buffer

BLOCK_PAIRS = 8192
LONGEST = 1 << 16
"""Maximum number of characters of a line to score or align, which takes time and memory with the square of the length.
Of a corpus to prepare, the filters drop long lines."""
_READ_BYTES = 1 << 20
_MAX_LINE_BYTES = 16 << 20
_XZ_BYTES = 256 << 20  # `xz -9` needs 65 MiB
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class PairBlock:
    """Consecutive pairs of one corpus.

    Attributes:
        first_line: Line number of the first pair, from 1.
        sources, targets: The sides, of equal count, without line ends.
        links: The line of links of each pair, where they are asked for and there are any.
    """

    first_line: int
    sources: list[str]
    targets: list[str]
    links: list[str] | None = None


def read_blocks(corpus: CorpusConfig, size: int = BLOCK_PAIRS) -> Iterator[PairBlock]:
    """Stream a corpus in blocks of `size` pairs; the last may be smaller.

    Raises InputError for a file that cannot be read, is damaged, empty or no UTF-8, for a line of pairs without exactly
    one TAB, and for two files of different line counts (found at the end; it says where they probably part).
    """
    files = corpus.files
    blocks = _tab_separated(files[0], size) if len(files) == 1 else _two_files(files[0], files[1], size)
    first_line = 1
    for sources, targets in blocks:
        yield PairBlock(first_line, sources, targets)
        first_line += len(sources)
    if first_line == 1:
        raise InputError(f"{corpus.name}: empty; a corpus needs at least one pair")


def read_linked_blocks(corpus: TrainingCorpusConfig, size: int = BLOCK_PAIRS) -> Iterator[PairBlock]:
    """Reads blocks as `read_blocks` does, with the lines of `corpus.links` if there is such a file. Raises InputError
    also where it has more or fewer lines than the corpus has pairs (found at the end)."""
    if corpus.links is None:
        yield from read_blocks(corpus, size)
        return
    lines = _regrouped(_line_groups(corpus.links), size)
    for block in read_blocks(corpus, size):
        links = next(lines, [])
        if len(links) != len(block.sources):
            raise _other_count(corpus, corpus.links)
        yield replace(block, links=links)
    if next(lines, []):
        raise _other_count(corpus, corpus.links)


def _other_count(corpus: CorpusConfig, links: Path) -> InputError:
    count, pairs = sum(map(len, _line_groups(links))), sum(len(block.sources) for block in read_blocks(corpus))
    return InputError(
        f"{links}: {count} lines for the {pairs} pairs of {corpus.name}: give one line for each pair, an empty one for "
        "a pair without links"
    )


def read_lines(path: Path, *, longest: int | None = LONGEST) -> Iterator[str]:
    """Stream the lines of a plain, gzip or xz file, without their ends.

    Raises InputError as `read_blocks` does, and for a line of more than `longest` characters.
    """
    for number, line in enumerate(chain.from_iterable(_line_groups(path)), 1):
        if longest is not None and len(line) > longest:
            raise InputError(f"{path}:{number}: {len(line):,} characters are more than {longest:,}; split the line")
        yield line


def open_bytes(path: Path) -> BinaryIO:
    """Open a plain, gzip or xz file to read what it holds. Its first bytes tell which it is, not its name.

    Raises InputError where the file is missing or not a regular file.
    """
    try:
        if path.exists() and not path.is_file():
            what = "a folder" if path.is_dir() else "a device or a pipe, and corpora are read more than once"
            raise InputError(f"{path}: is {what}; name a file")
        with path.open("rb") as file:
            magic = file.read(6)
        if magic.startswith(b"\x1f\x8b"):
            return cast(BinaryIO, gzip.open(path, "rb"))
        if magic == b"\xfd7zXZ\x00":
            return cast(BinaryIO, io.BufferedReader(_Xz(path), _READ_BYTES))
        return path.open("rb")
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None


@contextmanager
def unpacking(path: Path) -> Iterator[None]:
    """Raises InputError where the compressed file that is read within is damaged, or takes too much memory."""
    try:
        yield
    except (lzma.LZMAError, EOFError, zlib.error, gzip.BadGzipFile) as error:
        if "Memory usage limit" in str(error):  # liblzma's
            raise InputError(f"{path}: takes more than {_XZ_BYTES >> 20} MiB of memory to unpack; use xz -9") from None
        raise InputError(f"{path}: the compressed file is damaged or cut short; fetch it again") from None


class _Xz(io.RawIOBase):
    """An xz file as what it holds. Unlike lzma.open it takes bounded memory: a file of a few bytes can ask for
    gigabytes to be unpacked with."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._file = path.open("rb")
        self._packed = b""
        self._decompressor: lzma.LZMADecompressor | None = None

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Buffer) -> int:
        """Raises LZMAError where the file is damaged or wants too much memory, EOFError where it is cut short."""
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


def _tab_separated(path: Path, size: int) -> Iterator[tuple[list[str], list[str]]]:
    number = 0
    for lines in _regrouped(_line_groups(path), size):
        sources: list[str] = []
        targets: list[str] = []
        for line in lines:
            number += 1
            sides = line.split("\t")
            if len(sides) != 2:
                raise InputError(
                    f"{path}:{number}: {len(sides) - 1} TABs; a line of pairs is source, one TAB, target: mend the line"
                )
            sources.append(sides[0])
            targets.append(sides[1])
        yield sources, targets


def _two_files(source: Path, target: Path, size: int) -> Iterator[tuple[list[str], list[str]]]:
    source_groups = _regrouped(_line_groups(source), size)
    target_groups = _regrouped(_line_groups(target), size)
    lines = 0
    while True:
        sources, targets = next(source_groups, []), next(target_groups, [])
        if len(sources) != len(targets):
            counts = (
                lines + len(sources) + sum(len(group) for group in source_groups),
                lines + len(targets) + sum(len(group) for group in target_groups),
            )
            at = locate_misalignment(*(chain.from_iterable(_line_groups(path)) for path in (source, target)))
            raise InputError(
                f"{source} has {counts[0]} lines but {target} has {counts[1]}; "
                f"their lengths stop correlating at about line {at}: mend the files there"
            )
        if not sources:
            return
        lines += len(sources)
        yield sources, targets


def _regrouped(groups: Iterator[list[str]], size: int) -> Iterator[list[str]]:
    """The same lines in groups of exactly `size`, but for the last."""
    pending: list[str] = []
    for group in groups:
        pending += group
        whole = len(pending) - len(pending) % size
        for start in range(0, whole, size):
            yield pending[start : start + size]
        del pending[:whole]
    if pending:
        yield pending


def _line_groups(path: Path) -> Iterator[list[str]]:
    """The lines of a file in groups of about a megabyte."""
    number = 1
    for data in whole_lines(path):
        try:
            lines = data.decode("utf-8").split("\n")
        except UnicodeDecodeError as error:
            line = number + data.count(b"\n", 0, error.start)
            column = error.start - data.rfind(b"\n", 0, error.start)
            raise InputError(
                f"{path}:{line}: not UTF-8: byte 0x{data[error.start]:02x} at byte {column} of the line; "
                "convert the file to UTF-8"
            ) from None
        ended = not lines[-1]  # the piece after the last LF is a line only where it holds something
        if ended:
            lines.pop()
        if b"\r" in data:
            last = None if ended else lines.pop()  # without LF, its CR does not end a line
            lines = [line[:-1] if line.endswith("\r") else line for line in lines]
            if last is not None:
                lines.append(last)
        number += len(lines)
        yield lines


def whole_lines(path: Path) -> Iterator[bytes]:
    """The bytes of a file, cut after line ends."""
    with open_bytes(path) as file:
        rest = b""
        first = True
        while True:
            try:
                with unpacking(path):
                    data = file.read(_READ_BYTES)
            except OSError as error:
                raise InputError(f"{path}: cannot be read: {error.strerror}") from None
            if first:
                data = data.removeprefix(_BOM)
                first = False
            cut = data.rfind(b"\n") + 1
            if cut:
                yield rest + data[:cut]
                rest = data[cut:]
            elif data:
                rest += data
                if len(rest) > _MAX_LINE_BYTES:
                    raise InputError(f"{path}: a line of more than {_MAX_LINE_BYTES >> 20} MiB; is this a text file?")
            else:
                break
        if rest:
            yield rest

"""Text in as lines, whatever comes: every line of the input is one `Line`, and none is lost, split or joined.

A line ends at LF, and a CR before it belongs to the ending. U+2028, U+0085, a lone CR and the like are text. So
`printf 'a\\nb' | nmt translate` is two lines, and an empty input is none.
"""

from __future__ import annotations

import codecs
import io
import os
import select
import stat
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

CHUNK_BYTES = 1 << 16

PATIENCE_S = 0.05
"""How long `windows` waits for one more line before it hands over what it has."""

GATHER_S = 0.5
"""How long `windows` gathers lines that come one by one, each within `PATIENCE_S`."""


@dataclass(frozen=True)
class Line:
    """One line of input, without its ending.

    Attributes:
        number: Its place in the input, from 1.
        text: Its characters; U+FFFD stands for each byte sequence that is not UTF-8.
        warning: What had to be changed to make it text of a bearable length, naming the line; None for nothing.
        ending: LF or CR LF; at the end of the input also CR or nothing.
    """

    number: int
    text: str
    warning: str | None = None
    ending: str = "\n"


class LineReader(Iterator[Line]):
    """The lines of a byte stream, and whether the next one is there already.

    Reads what is available and no further, so a program that writes a line and waits for the answer gets it. Memory is
    bounded by `limit_bytes` and the chunk size, however long a line is.
    """

    def __init__(self, stream: BinaryIO, *, limit_bytes: int) -> None:
        if limit_bytes < 1:
            raise ValueError(f"limit_bytes must be at least 1, not {limit_bytes}")
        self._stream = stream
        self._descriptor = _pollable(stream)
        self._limit_bytes = limit_bytes
        self._number = 0
        self._whole: deque[Line] = deque()  # lines that have been read but not handed out
        self._begun = bytearray()  # the line whose end is not in sight: its first limit_bytes + 1 bytes
        self._begun_bytes = 0  # and how many bytes there were
        self._ended = False

    def __iter__(self) -> LineReader:
        return self

    def __next__(self) -> Line:
        while not self._whole:
            if self._ended:
                raise StopIteration
            self._read()
        return self._whole.popleft()

    def ready(self, wait_s: float) -> bool:
        """Whether `next` would answer without waiting for input; gives the input up to `wait_s` seconds to arrive."""
        deadline = time.monotonic() + wait_s
        while not self._whole and not self._ended:
            if not self._readable(max(0.0, deadline - time.monotonic())):
                return False
            self._read()
        return True

    def _readable(self, wait_s: float | None) -> bool:
        if self._descriptor is None:
            return True
        return bool(select.select([self._descriptor], [], [], wait_s)[0])

    def _read(self) -> None:
        """Take in one chunk."""
        if self._descriptor is not None and not os.get_blocking(self._descriptor):
            self._readable(None)  # such a descriptor would answer that there is nothing, as at the end of the input
        chunk = _read_available(self._stream)
        if not chunk:
            self._ended = True
            only_a_mark = self._number == 0 and self._begun == codecs.BOM_UTF8
            if self._begun_bytes and not only_a_mark:
                self._finish("")
            return
        *endings, rest = chunk.split(b"\n")
        for piece in endings:
            self._append(piece)
            self._finish("\n")
        self._append(rest)

    def _append(self, piece: bytes) -> None:
        # One byte above the limit, for the CR of an ending that may follow.
        self._begun += piece[: self._limit_bytes + 1 - len(self._begun)]
        self._begun_bytes += len(piece)

    def _finish(self, ending: str) -> None:
        self._number += 1
        data = bytes(self._begun)
        length = self._begun_bytes
        self._begun.clear()
        self._begun_bytes = 0
        if length == len(data) and data.endswith(b"\r"):
            data = data[:-1]
            length -= 1
            ending = "\r" + ending
        warnings = []
        if cut := length > self._limit_bytes:
            data = data[: self._limit_bytes]
            warnings.append(f"{length:,} bytes long; cut to the first {self._limit_bytes:,}")
        if self._number == 1:
            data = data.removeprefix(codecs.BOM_UTF8)
        try:
            text = _decode(data, "strict", whole=not cut)
        except UnicodeDecodeError as error:
            text = _decode(data, "replace", whole=not cut)
            byte = f"byte 0x{data[error.start]:02x} at position {error.start + 1}"
            warnings.append(f"not UTF-8 ({byte}); replaced by U+FFFD")
        warning = f"line {self._number}: {', and '.join(warnings)}" if warnings else None
        self._whole.append(Line(self._number, text, warning, ending))


def read_lines(stream: BinaryIO, *, limit_bytes: int) -> LineReader:
    """The lines of a byte stream.

    An invalid byte becomes U+FFFD; a line of more than `limit_bytes` bytes is cut there, at a character boundary; both
    with a warning on the line. A byte order mark at the start is dropped.
    """
    return LineReader(stream, limit_bytes=limit_bytes)


def windows(lines: LineReader, size_lines: int, *, interactive: bool) -> Iterator[list[Line]]:
    """The lines in groups of at most `size_lines`, for work that is faster on many.

    A group is handed over early where the input pauses: whoever writes a line and waits for its answer shall not wait
    for the lines that they will write next. With `interactive`, for a person at a terminal, each line is its own group.
    """
    if size_lines < 1:
        raise ValueError(f"size_lines must be at least 1, not {size_lines}")
    if interactive:
        size_lines = 1
    window: list[Line] = []
    begun = 0.0
    for line in lines:
        if not window:
            begun = time.monotonic()
        window.append(line)
        gathering_s = max(0.0, begun + GATHER_S - time.monotonic())
        if len(window) == size_lines or not lines.ready(min(PATIENCE_S, gathering_s)):
            yield window
            window = []
    if window:
        yield window


def _read_available(stream: BinaryIO) -> bytes:
    """Some bytes; none at the end of the input."""
    if isinstance(stream, io.BufferedReader):
        # One system call at most, past the buffer where that is empty, so `select` on the descriptor tells the truth.
        return stream.read1(CHUNK_BYTES)
    return stream.read(CHUNK_BYTES)


def _pollable(stream: BinaryIO) -> int | None:
    """The descriptor to wait on; None where reading never waits (a file, memory) or the system cannot tell."""
    try:
        descriptor = stream.fileno()
    except (OSError, AttributeError):
        return None
    if os.name == "nt" or stat.S_ISREG(os.fstat(descriptor).st_mode):
        return None
    return descriptor


def _decode(data: bytes, errors: str, *, whole: bool) -> str:
    """UTF-8 to text; where the data is not whole, a character cut in half at its end is left out."""
    return codecs.getincrementaldecoder("utf-8")(errors).decode(data, final=whole)

"""Lines of a byte stream, for interactive use and in bounded memory; no line is lost, split or joined.

A line ends at LF, and a CR before it belongs to the ending. U+2028, U+0085, a lone CR and the like are text. So
`printf 'a\\nb' | nmt translate` has two lines, and an empty input has none.
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
"""Maximum time that `windows` waits for one more line."""

GATHER_S = 0.5
"""Maximum time that `windows` gathers lines that come one by one, each within `PATIENCE_S`."""


@dataclass(frozen=True)
class Line:
    """One line of input, without its ending.

    Attributes:
        number: Number of the line in the input, from 1.
        text: Text of the line, with U+FFFD for each byte sequence that is not UTF-8.
        warning: Message with the line number if bytes were replaced or cut; else None.
        ending: LF or CR LF; at the end of the input also CR or nothing.
    """

    number: int
    text: str
    warning: str | None = None
    ending: str = "\n"


class LineReader(Iterator[Line]):
    """Iterator over the lines of a byte stream.

    It reads only available bytes, so a program that writes a line and waits for the answer gets it. Memory is bounded
    by `limit_bytes` and the chunk size. An invalid byte becomes U+FFFD, and a line of more than `limit_bytes` bytes is
    cut there, at a character boundary, both with a warning. A byte order mark at the start is dropped.
    """

    def __init__(self, stream: BinaryIO, *, limit_bytes: int) -> None:
        self._stream = stream
        self._descriptor = _pollable(stream)
        self._limit_bytes = limit_bytes
        self._number = 0
        self._complete: deque[Line] = deque()  # lines that have been read but not returned
        self._partial = bytearray()  # the first limit_bytes + 1 bytes of the current line
        self._partial_bytes = 0  # the length of the current line so far
        self._ended = False

    def __next__(self) -> Line:
        while not self._complete:
            if self._ended:
                raise StopIteration
            self._read()
        return self._complete.popleft()

    def ready(self, wait_s: float) -> bool:
        """Returns True if the next line, or the end of the input, arrives within `wait_s` seconds."""
        deadline = time.monotonic() + wait_s
        while not self._complete and not self._ended:
            if not self._readable(max(0.0, deadline - time.monotonic())):
                return False
            self._read()
        return True

    def _readable(self, wait_s: float | None) -> bool:
        if self._descriptor is None:
            return True
        return bool(select.select([self._descriptor], [], [], wait_s)[0])

    def _read(self) -> None:
        """Read one chunk."""
        if self._descriptor is not None and not os.get_blocking(self._descriptor):
            self._readable(None)  # a read would return nothing, as at the end of the input
        stream = self._stream
        # read1 leaves the buffer empty, so that `select` on the descriptor is right
        chunk = stream.read1(CHUNK_BYTES) if isinstance(stream, io.BufferedReader) else stream.read(CHUNK_BYTES)
        if not chunk:
            self._ended = True
            if self._partial_bytes and not (self._number == 0 and self._partial == codecs.BOM_UTF8):
                self._finish("")
            return
        *endings, rest = chunk.split(b"\n")
        for piece in endings:
            self._append(piece)
            self._finish("\n")
        self._append(rest)

    def _append(self, piece: bytes) -> None:
        # one byte more than the limit, for the CR of an ending
        self._partial += piece[: self._limit_bytes + 1 - len(self._partial)]
        self._partial_bytes += len(piece)

    def _finish(self, ending: str) -> None:
        self._number += 1
        data, length = bytes(self._partial), self._partial_bytes
        self._partial.clear()
        self._partial_bytes = 0
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
        self._complete.append(Line(self._number, text, warning, ending))


def windows(lines: LineReader, size_lines: int, *, pauses: bool = False) -> Iterator[list[Line]]:
    """Yields the lines in groups of at most `size_lines`, for batched computation.

    A pause of the input ends a group, so that a program that writes a line and waits for the answer gets it. With
    `pauses`, one after a full group is an empty group.
    """
    window: list[Line] = []
    deadline = 0.0
    for line in lines:
        if not window:
            deadline = time.monotonic() + GATHER_S
        window.append(line)
        remaining_s = max(0.0, deadline - time.monotonic())
        is_full = len(window) == size_lines
        if is_full or not lines.ready(min(PATIENCE_S, remaining_s)):
            yield window
            window = []
            if pauses and is_full and not lines.ready(PATIENCE_S):
                yield window
    if window:
        yield window


def _pollable(stream: BinaryIO) -> int | None:
    """Returns the descriptor for `select`; None if a read never waits (a file, memory)."""
    try:
        descriptor = stream.fileno()
    except (OSError, AttributeError):
        return None
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return None
    return descriptor


def _decode(data: bytes, errors: str, *, whole: bool) -> str:
    """Decode UTF-8; a cut line loses an incomplete character at its end."""
    return codecs.getincrementaldecoder("utf-8")(errors).decode(data, final=whole)

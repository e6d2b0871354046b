"""Lines from byte streams: none lost, split or joined; bounded memory; nobody waits for an answer in vain."""

from __future__ import annotations

import io
import os
import pty
import subprocess
import sys
import threading
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt.core.lines import CHUNK_BYTES, Line, LineReader, windows


def read(data: bytes, limit_bytes: int = 1000) -> list[Line]:
    return list(LineReader(io.BytesIO(data), limit_bytes=limit_bytes))


class Trickle(io.RawIOBase):
    """A stream that hands out its data in pieces of the given sizes."""

    def __init__(self, data: bytes, sizes: list[int]) -> None:
        self.rest, self.sizes = data, sizes

    def read(self, size: int = -1, /) -> bytes:
        count = self.sizes.pop() if self.sizes else CHUNK_BYTES
        piece, self.rest = self.rest[:count], self.rest[count:]
        return piece


def naive(data: bytes) -> list[str]:
    """The lines, by a naive splitter."""
    pieces = data.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    if pieces[-1] == b"":
        pieces.pop()
    return [piece.removesuffix(b"\r").decode("utf-8", errors="replace") for piece in pieces]


def is_utf8(data: bytes) -> bool:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


PIECES = st.sampled_from(
    [
        b"\n",
        b"\r",
        b"\r\n",
        b"\x00",
        b"\xff",
        b"\xe2\x82",
        b"\xef\xbb\xbf",
        *(c.encode() for c in "aé€😀\x85\u2028\x0b\x0c\x1c"),
    ]
)


@given(st.lists(PIECES).map(b"".join), st.lists(st.integers(1, 4)))
def test_agrees_with_a_naive_splitter_however_the_bytes_arrive(data: bytes, sizes: list[int]) -> None:
    found = list(LineReader(cast(BinaryIO, Trickle(data, sizes)), limit_bytes=1000))
    assert [line.text for line in found] == naive(data)
    assert [line.number for line in found] == list(range(1, len(found) + 1))
    assert all(line.warning is None for line in found) == is_utf8(data)
    if is_utf8(data):
        whole = "".join(line.text + line.ending for line in found)
        assert whole.encode() == data.removeprefix(b"\xef\xbb\xbf")


@given(st.text(st.sampled_from("aé€😀"), max_size=30), st.integers(1, 20), st.lists(st.integers(1, 4)), st.booleans())
def test_a_long_line_is_cut_at_a_character(text: str, limit: int, sizes: list[int], crlf: bool) -> None:
    data = text.encode() + (b"\r\n" if crlf else b"\n") + b"ab"[:limit]
    first, second = LineReader(cast(BinaryIO, Trickle(data, sizes)), limit_bytes=limit)
    assert second == Line(2, "ab"[:limit], ending="")
    if len(text.encode()) <= limit:
        assert first == Line(1, text, ending="\r\n" if crlf else "\n")
        return
    expected = max((text[:n] for n in range(len(text)) if len(text[:n].encode()) <= limit), key=len)
    assert first.text == expected
    assert first.warning is not None
    assert f"cut to the first {limit}" in first.warning


@pytest.mark.parametrize(
    ("data", "lines"),
    [
        (b"", []),
        (b"\n", [Line(1, "")]),
        (b"a", [Line(1, "a", ending="")]),
        (b"a\n\n \t\nb", [Line(1, "a"), Line(2, ""), Line(3, " \t"), Line(4, "b", ending="")]),
        (b"a\r\r\nb\rc\n", [Line(1, "a\r", ending="\r\n"), Line(2, "b\rc")]),
        ("a\u2028b\x85c\x0bd\n".encode(), [Line(1, "a\u2028b\x85c\x0bd")]),
        (b"\xef\xbb\xbfa\n\xef\xbb\xbfb", [Line(1, "a"), Line(2, "\ufeffb", ending="")]),
        (b"a\x00b\n", [Line(1, "a\x00b")]),
        ("😀\n".encode(), [Line(1, "😀")]),
        (
            b"ok\na\xffb\n",
            [Line(1, "ok"), Line(2, "a\ufffdb", "line 2: not UTF-8 (byte 0xff at position 2); replaced by U+FFFD")],
        ),
        (b"0123456789x\n", [Line(1, "0123456789", "line 1: 11 bytes long; cut to the first 10")]),
        (b"0123456789\r\n", [Line(1, "0123456789", ending="\r\n")]),
        (
            b"\xff" * 11 + b"\n",
            [
                Line(
                    1,
                    "\ufffd" * 10,
                    "line 1: 11 bytes long; cut to the first 10, and not UTF-8 (byte 0xff at position 1); "
                    "replaced by U+FFFD",
                )
            ],
        ),
    ],
)
def test_lines(data: bytes, lines: list[Line]) -> None:
    assert read(data, limit_bytes=10) == lines


class Endless(io.RawIOBase):
    """`chunks` chunks made on the fly, so that they are never all in memory."""

    def __init__(self, chunk: bytes, chunks: int) -> None:
        self.chunk, self.chunks = chunk, chunks

    def read(self, size: int = -1, /) -> bytes:
        self.chunks -= 1
        return self.chunk if self.chunks >= 0 else b""


@pytest.mark.parametrize(
    "chunk", [b"%s\n" % (b"a line of text" * 20) * 50, b"x" * 15_000], ids=["many lines", "one line"]
)
def test_memory_is_bounded(chunk: bytes) -> None:
    """A long input goes through the reader and its windows in little memory."""
    tracemalloc.start()
    lines = LineReader(cast(BinaryIO, Endless(chunk, 400)), limit_bytes=10_000)
    count = sum(len(window) for window in windows(lines, 100))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert count == max(1, chunk.count(b"\n") * 400)
    assert peak < 1_000_000, f"{peak:,} bytes"


def test_windows_of_a_file_are_full(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_text("".join(f"{n}\n" for n in range(10)))
    with path.open("rb") as stream:
        groups = [[line.text for line in group] for group in windows(LineReader(stream, limit_bytes=99), 4)]
    assert groups == [["0", "1", "2", "3"], ["4", "5", "6", "7"], ["8", "9"]]


def write_slowly(descriptor: int, pieces: list[tuple[float, bytes]]) -> threading.Thread:
    def run() -> None:
        for pause_s, data in pieces:
            time.sleep(pause_s)
            os.write(descriptor, data)
        os.close(descriptor)

    thread = threading.Thread(target=run)
    thread.start()
    return thread


def test_a_pause_ends_a_window_but_not_a_line() -> None:
    reader, writer = os.pipe()
    thread = write_slowly(writer, [(0, b"a\nb\nhalf "), (0.5, b"line\nc\n")])
    with os.fdopen(reader, "rb") as stream:
        groups = [[line.text for line in group] for group in windows(LineReader(stream, limit_bytes=99), 9)]
    thread.join()
    assert groups == [["a", "b"], ["half line", "c"]]


def test_a_window_does_not_gather_slow_lines_for_ever() -> None:
    reader, writer = os.pipe()
    thread = write_slowly(writer, [(0.01, b"line\n")] * 100)
    with os.fdopen(reader, "rb") as stream:
        groups = [len(group) for group in windows(LineReader(stream, limit_bytes=99), 1000)]
    thread.join()
    assert sum(groups) == 100
    assert len(groups) >= 2


def test_a_non_blocking_pipe_is_waited_for() -> None:
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    thread = write_slowly(writer, [(0.2, b"a\n"), (0.2, b"b")])
    with os.fdopen(reader, "rb") as stream:
        assert [line.text for line in LineReader(stream, limit_bytes=99)] == ["a", "b"]
    thread.join()


def test_a_terminal_gets_each_line_and_ends_by_control_d() -> None:
    leader, follower = pty.openpty()
    os.write(leader, b"a\nb\n\x04")
    with os.fdopen(follower, "rb") as stream:
        groups = [[line.text for line in group] for group in windows(LineReader(stream, limit_bytes=99), 1)]
    os.close(leader)
    assert groups == [["a"], ["b"]]


ECHO = """
import sys
from nmt.core.lines import LineReader, windows
for window in windows(LineReader(sys.stdin.buffer, limit_bytes=99), 1000):
    for line in window:
        print(line.text.upper())
    sys.stdout.flush()
"""


@pytest.fixture
def echo() -> Iterator[subprocess.Popen[bytes]]:
    root = Path(__file__).resolve().parents[2]
    command = [sys.executable, "-c", ECHO]
    with subprocess.Popen(command, cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as process:
        yield process
        process.kill()


def test_a_program_that_waits_for_each_answer_gets_it(echo: subprocess.Popen[bytes]) -> None:
    assert echo.stdin is not None
    assert echo.stdout is not None
    for word in (b"one", b"two", b"three"):
        echo.stdin.write(word + b"\n")
        assert echo.stdout.readline() == word.upper() + b"\n"  # without an early window this would wait for ever
    echo.stdin.close()
    assert echo.stdout.read() == b""
    assert echo.wait(10) == 0

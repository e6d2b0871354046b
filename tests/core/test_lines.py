"""Lines from byte streams: none lost, split or joined; bounded memory; nobody waits for an answer in vain."""

from __future__ import annotations

import io
import os
import pty
import queue
import threading
import time
import tracemalloc
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import repeat
from pathlib import Path
from typing import BinaryIO, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt.core.lines import Line, LineReader, windows


class Pieces(io.RawIOBase):
    """A stream that hands out pieces, which need not be in memory together."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self.pieces = iter(pieces)

    def read(self, size: int = -1, /) -> bytes:
        return next(self.pieces, b"")


def read(pieces: Iterable[bytes], limit_bytes: int = 1000) -> LineReader:
    return LineReader(cast(BinaryIO, Pieces(pieces)), limit_bytes=limit_bytes)


def grouped(stream: BinaryIO, most: int) -> list[list[str]]:
    return [[line.text for line in group] for group in windows(LineReader(stream, limit_bytes=99), most)]


def trickled(data: bytes, sizes: list[int]) -> Iterator[bytes]:
    """Pieces of the given sizes, the last first, and then the rest."""
    for size in reversed(sizes):
        if data:
            yield data[:size]
        data = data[size:]
    if data:
        yield data


def naive(data: bytes) -> list[str]:
    """The lines, by a naive splitter."""
    pieces = data.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    if pieces[-1] == b"":
        pieces.pop()
    return [piece.removesuffix(b"\r").decode("utf-8", errors="replace") for piece in pieces]


def is_utf8(data: bytes) -> bool:
    return data.decode("utf-8", errors="ignore").encode() == data


ODD = [b"\n", b"\r", b"\r\n", b"\x00", b"\xff", b"\xe2\x82", b"\xef\xbb\xbf"]
PIECES = st.sampled_from([*ODD, *(character.encode() for character in "aé€😀\x85\u2028\x0b\x0c\x1c")])


@given(st.lists(PIECES).map(b"".join), st.lists(st.integers(1, 4)))
def test_agrees_with_a_naive_splitter_however_the_bytes_arrive(data: bytes, sizes: list[int]) -> None:
    found = list(read(trickled(data, sizes)))
    assert [line.text for line in found] == naive(data)
    assert [line.number for line in found] == list(range(1, len(found) + 1))
    assert all(line.warning is None for line in found) == is_utf8(data)
    if is_utf8(data):
        whole = "".join(line.text + line.ending for line in found)
        assert whole.encode() == data.removeprefix(b"\xef\xbb\xbf")


@given(st.text(st.sampled_from("aé€😀"), max_size=30), st.integers(1, 20), st.lists(st.integers(1, 4)), st.booleans())
def test_a_long_line_is_cut_at_a_character(text: str, limit: int, sizes: list[int], crlf: bool) -> None:
    data = text.encode() + (b"\r\n" if crlf else b"\n") + b"ab"[:limit]
    first, second = read(trickled(data, sizes), limit)
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
    ],
)
def test_lines(data: bytes, lines: list[Line]) -> None:
    assert list(read([data] if data else [], 10)) == lines


def test_a_line_may_have_two_faults() -> None:
    (line,) = read([b"\xff" * 11 + b"\n"], 10)
    faults = "11 bytes long; cut to the first 10, and not UTF-8 (byte 0xff at position 1); replaced by U+FFFD"
    assert line == Line(1, "\ufffd" * 10, f"line 1: {faults}")


@pytest.mark.parametrize(
    "chunk", [b"%s\n" % (b"a line of text" * 20) * 50, b"x" * 15_000], ids=["many lines", "one line"]
)
def test_memory_is_bounded(chunk: bytes) -> None:
    """A long input goes through the reader and its windows in little memory."""
    tracemalloc.start()
    count = sum(len(window) for window in windows(read(repeat(chunk, 400), 10_000), 100))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert count == max(1, chunk.count(b"\n") * 400)
    assert peak < 1_000_000, f"{peak:,} bytes"


def test_windows_of_a_file_are_full(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_text("".join(f"{n}\n" for n in range(10)))
    with path.open("rb") as stream:
        assert grouped(stream, 4) == [["0", "1", "2", "3"], ["4", "5", "6", "7"], ["8", "9"]]


@contextmanager
def slow_pipe(pieces: list[tuple[float, bytes]], *, blocks: bool = True) -> Iterator[BinaryIO]:
    """A pipe that gets each piece after a pause."""
    reader, writer = os.pipe()
    os.set_blocking(reader, blocks)

    def write() -> None:
        for pause_s, data in pieces:
            time.sleep(pause_s)
            os.write(writer, data)
        os.close(writer)

    thread = threading.Thread(target=write)
    thread.start()
    with os.fdopen(reader, "rb") as stream:
        yield stream
    thread.join()


def test_a_pause_ends_a_window_but_not_a_line() -> None:
    with slow_pipe([(0, b"a\nb\nhalf "), (0.5, b"line\nc\n")]) as stream:
        assert grouped(stream, 9) == [["a", "b"], ["half line", "c"]]


def test_a_pause_after_a_full_window_is_an_empty_one() -> None:
    """So whoever translates several windows at once knows that someone may wait for their answers."""
    with slow_pipe([(0, b"a\nb\nc\nd\n"), (0.5, b"e\nf\n"), (0.5, b"g\n")]) as stream:
        found = windows(LineReader(stream, limit_bytes=99), 2, pauses=True)
        assert [[line.text for line in each] for each in found] == [["a", "b"], ["c", "d"], [], ["e", "f"], [], ["g"]]


def test_a_window_does_not_gather_slow_lines_for_ever() -> None:
    with slow_pipe([(0.01, b"line\n")] * 100) as stream:
        groups = list(map(len, grouped(stream, 1000)))
    assert sum(groups) == 100
    assert len(groups) >= 2


def test_a_non_blocking_pipe_is_waited_for() -> None:
    with slow_pipe([(0.2, b"a\n"), (0.2, b"b")], blocks=False) as stream:
        assert [line.text for line in LineReader(stream, limit_bytes=99)] == ["a", "b"]


def test_a_terminal_gets_each_line_and_ends_by_control_d() -> None:
    leader, follower = pty.openpty()
    os.write(leader, b"a\nb\n\x04")
    with os.fdopen(follower, "rb") as stream:
        assert grouped(stream, 1) == [["a"], ["b"]]
    os.close(leader)


def test_a_program_that_waits_for_each_answer_gets_it() -> None:
    (reader, writer), answers = os.pipe(), queue.Queue[str]()

    def answer() -> None:
        with os.fdopen(reader, "rb") as stream:
            for window in windows(LineReader(stream, limit_bytes=99), 1000):
                for line in window:
                    answers.put(line.text)

    thread = threading.Thread(target=answer, daemon=True)
    thread.start()
    for word in ("one", "two", "three"):
        os.write(writer, word.encode() + b"\n")
        assert answers.get(timeout=10) == word  # without an early window this would wait for ever
    os.close(writer)
    thread.join(10)
    assert (thread.is_alive(), answers.empty()) == (False, True)

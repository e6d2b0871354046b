"""Valid examples, damaged: bits, cuts, splices, length fields, numbers and words that mean trouble."""

from __future__ import annotations

import random
import re
import struct
from collections.abc import Callable, Sequence

Mutation = Callable[[bytes, random.Random], bytes]

NUMBERS = [
    b"0", b"-0", b"-1", b"1", b"255", b"256", b"65535", b"65536", b"2147483647", b"2147483648", b"-2147483649",
    b"4294967296", b"9223372036854775807", b"9223372036854775808", b"18446744073709551616", b"-9223372036854775809",
    b"1000000000", b"1" + b"0" * 30, b"9" * 5000, b"1e9", b"1e308", b"1e400", b"-1e400", b"1e-400", b"NaN", b"Infinity",
    b"-Infinity", b".nan", b".inf", b"0.5", b"true", b"null", b'"1"', b"1_0", "١".encode(), b"0x10",
]  # fmt: skip
WORDS = [
    b"\x00", b"\xff", b"\xed\xa0\x80", b"\xef\xbb\xbf", b"\xe2\x80\xa8", b"\xc2\x85", b"\r", b"\n", b"\r\n", b"\t",
    b"\\ud800", b"\\u0000", b"../", b"/dev/zero", b"/etc/passwd", b"!!python/object/apply:os.system [ls]", b"&a ",
    b"*a", b"<<: *a", b"[" * 300, b'{"a":' * 300, b"[" * 20000, b"{}", b"[]", b'""', b"null", b"- " * 300, b"{", b"}",
    b"[", b"]", b'"', b"'", b":", b": ", b",", b"#", b"---\n", b"%", b"-", b"p", b" ", b"|O", b"<f8", b"<U9", b">i8",
    b"I64", b"BF16", b"F8_E4M3", b"BOOL", b"__metadata__",
]  # fmt: skip
EXTREMES = [0, 1, 2, 127, 128, 255, 256, 32767, 65535, 1 << 20, (1 << 31) - 1, 1 << 31, (1 << 32) - 1, 1 << 40,
            (1 << 63) - 1, (1 << 64) - 1]  # fmt: skip


def mutated(seeds: Sequence[bytes], draw: random.Random) -> bytes:
    """One of the seeds with one to four faults."""
    data = draw.choice(seeds)
    for _ in range(draw.choice((1, 1, 1, 2, 2, 4))):
        data = draw.choice(_MUTATIONS)(data, draw)
        if draw.random() < 0.15:
            data = _spliced(data, draw.choice(seeds), draw)
    return data


def _place(data: bytes, draw: random.Random) -> int:
    """Anywhere, but as often near the beginning, where headers are."""
    end = len(data)
    return draw.randrange(min(end, 64) + 1) if draw.random() < 0.4 else draw.randrange(end + 1)


def _flip(data: bytes, draw: random.Random) -> bytes:
    if not data:
        return data
    found = bytearray(data)
    for _ in range(draw.choice((1, 1, 2, 8))):
        found[min(_place(data, draw), len(data) - 1)] ^= 1 << draw.randrange(8)
    return bytes(found)


def _byte(data: bytes, draw: random.Random) -> bytes:
    at = _place(data, draw)
    return data[:at] + bytes([draw.randrange(256)]) + data[at + 1 :]


def _truncated(data: bytes, draw: random.Random) -> bytes:
    return data[: _place(data, draw)]


def _deleted(data: bytes, draw: random.Random) -> bytes:
    at = _place(data, draw)
    return data[:at] + data[at + draw.choice((1, 1, 2, 4, 8, 64)) :]


def _doubled(data: bytes, draw: random.Random) -> bytes:
    at, size = _place(data, draw), draw.choice((1, 2, 8, 64, 1000))
    return data[: at + size] * draw.choice((1, 1, 3)) + data[at:]


def _spliced(data: bytes, other: bytes, draw: random.Random) -> bytes:
    return data[: _place(data, draw)] + other[_place(other, draw) :]


def _word(data: bytes, draw: random.Random) -> bytes:
    at = _place(data, draw)
    return data[:at] + draw.choice(WORDS) + data[at + draw.choice((0, 0, 1, 4)) :]


def _number(data: bytes, draw: random.Random) -> bytes:
    """A number that is written in digits becomes another."""
    found = list(re.finditer(rb"-?\d+(\.\d+)?", data[:100_000]))
    if not found:
        return _word(data, draw)
    match = draw.choice(found)
    return data[: match.start()] + draw.choice(NUMBERS) + data[match.end() :]


def _field(data: bytes, draw: random.Random) -> bytes:
    """Bytes become a number in binary."""
    form, bits = draw.choice((("<H", 16), ("<I", 32), ("<Q", 64), (">I", 32), (">H", 16)))
    value = struct.pack(form, draw.choice(EXTREMES) & ((1 << bits) - 1))
    at = _place(data, draw)
    return data[:at] + value + data[at + len(value) :]


def varint(value: int) -> bytes:
    """A number as protobuf writes it."""
    written = bytearray()
    while value >> 7:
        written.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(written) + bytes([value])


def _varint(data: bytes, draw: random.Random) -> bytes:
    """A byte becomes a number as protobuf writes it."""
    written, at = varint(draw.choice(EXTREMES)), _place(data, draw)
    return data[:at] + written + data[at + 1 :]


_MUTATIONS: tuple[Mutation, ...] = (
    _flip, _flip, _byte, _truncated, _deleted, _doubled, _word, _word, _number, _number, _field, _varint,
)  # fmt: skip

"""Clients of ``nmt serve`` that leave it no rest, and one in ten that is broken.

A good client sends one to three sentences, waits for their answer and sends the next. A broken one draws each time one
of ``FAULTS``: it sends slowly, or stops in the middle, goes away before its answer has come or while it comes, sends
too much, or what is not a JSON, no request or no HTTP.
"""

from __future__ import annotations

import http.client
import json
import random
import socket
import struct
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

BUSY = (429, 503)
"""Statuses with which an overloaded server may answer."""

PATIENCE_S = 120
"""Maximum seconds to wait, longer than the server may take for anything."""

Expected: TypeAlias = Mapping[str, str]
"""The translation of each sentence."""


@dataclass
class Tally:
    """The results of clients."""

    latencies_s: list[float] = field(default_factory=list)
    """Latencies of the answered requests of good clients."""
    sentences: int = 0
    """Number of translations that were compared with the expected ones."""
    statuses: Counter[tuple[str, int]] = field(default_factory=Counter)
    """Number of requests by kind and status; status 0 means no answer, because one side closed the connection."""
    wrong: list[str] = field(default_factory=list)
    """Descriptions of wrong answers."""

    def add(self, other: Tally) -> None:
        """Adds the results of other clients."""
        self.latencies_s += other.latencies_s
        self.sentences += other.sentences
        self.statuses += other.statuses
        self.wrong += other.wrong

    def percentile_ms(self, percent: int) -> float:
        """Returns the latency that this percentage of requests does not exceed."""
        ordered = sorted(self.latencies_s) or [float("nan")]
        return 1000 * ordered[min(len(ordered) * percent // 100, len(ordered) - 1)]

    def check(self, kind: str, status: int, allowed: Sequence[int]) -> None:
        """Counts an answer, and notes it as wrong if its status is not allowed for such a request."""
        self.statuses[kind, status] += 1
        if status not in allowed:
            self.wrong.append(f"{kind}: status {status}, not one of {', '.join(map(str, allowed))}")

    def compare(self, expected: Expected, texts: Sequence[str], body: bytes) -> None:
        """Notes translations that differ from the expected ones."""
        results = json.loads(body)["results"]
        found = [(each["line"], each["source"], each["translations"][0]["text"]) for each in results]
        self.sentences += len(found)
        wanted = [(number, text, expected[text]) for number, text in enumerate(texts, 1)]
        if found != wanted:
            self.wrong.append(f"expected {wanted}, found {found}")


def at_once(port: int, expected: Expected, *, clients: int, until: float) -> Tally:
    """Runs this many clients at once until a time of ``time.monotonic``; every tenth of them is broken."""
    whole, tallies = Tally(), [Tally() for _ in range(clients)]

    def talk(number: int) -> None:
        client = broken if number % 10 == 9 else good
        try:
            client(port, expected, until, random.Random(number), tallies[number])
        except Exception:
            tallies[number].wrong.append(traceback.format_exc())

    threads = [threading.Thread(target=talk, args=(number,)) for number in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for each in tallies:
        whole.add(each)
    return whole


def good(port: int, expected: Expected, until: float, draw: random.Random, tally: Tally) -> None:
    """Runs a client that behaves correctly."""
    lines = list(expected)
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
    while (began := time.monotonic()) < until:
        texts = draw.choices(lines, k=draw.randint(1, 3))
        connection.request("POST", "/translate", json.dumps({"text": texts}), {"Content-Type": "application/json"})
        response = connection.getresponse()
        body = response.read()
        tally.check("good", response.status, (200, *BUSY))
        if response.status == 200:
            tally.latencies_s.append(time.monotonic() - began)
            tally.compare(expected, texts, body)
        elif response.status in BUSY:
            time.sleep(float(response.headers["Retry-After"]))
    connection.close()


def broken(port: int, expected: Expected, until: float, draw: random.Random, tally: Tally) -> None:
    """Runs a client that draws its faults."""
    while time.monotonic() < until:
        fault = draw.choice(FAULTS)
        with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S) as connection:
            fault(_Wire(connection), expected, draw, tally)


class _Wire:
    """A connection that sends bytes unchanged."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection

    def send(self, data: bytes) -> None:
        self._connection.sendall(data)

    def reset(self) -> None:
        """Makes the close discard unsent bytes and reset the connection."""
        self._connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    def receive(self, most: int) -> bytes:
        return self._connection.recv(most)

    def answer(self) -> tuple[int, bytes]:
        """Returns the status and the body of the answer; 0 and nothing if the server has closed the connection."""
        response = http.client.HTTPResponse(self._connection)
        try:
            response.begin()
            return response.status, response.read()
        except (http.client.BadStatusLine, ConnectionError):
            return 0, b""


def _request(body: bytes, length: int | None = None) -> bytes:
    head = f"Content-Type: application/json\r\nContent-Length: {len(body) if length is None else length}"
    return f"POST /translate HTTP/1.1\r\nHost: localhost\r\n{head}\r\n\r\n".encode() + body


def _body(texts: Sequence[str], **more: Any) -> bytes:
    return json.dumps({"text": texts, **more}).encode()


def _slow(wire: _Wire, expected: Expected, draw: random.Random, tally: Tally) -> None:
    """Sends its request bit by bit, and waits for its answer."""
    texts = draw.choices(list(expected), k=2)
    request = _request(_body(texts))
    cuts = sorted(draw.sample(range(1, len(request)), 6))
    for start, end in zip([0, *cuts], [*cuts, len(request)], strict=True):
        wire.send(request[start:end])
        time.sleep(draw.random() / 2)
    status, body = wire.answer()
    tally.check("slow", status, (200, *BUSY))
    if status == 200:
        tally.compare(expected, texts, body)


def _stalled(wire: _Wire, expected: Expected, draw: random.Random, tally: Tally) -> None:
    """Never sends the rest of its body."""
    wire.send(_request(b'{"text": "', 1000))
    tally.check("stalled", wire.answer()[0], (408,))


def _half_sent(wire: _Wire, expected: Expected, draw: random.Random, tally: Tally) -> None:
    """Closes the connection in the middle of its request, head or body."""
    request = _request(_body(draw.choices(list(expected), k=20)))
    wire.send(request[: draw.randrange(1, len(request))])
    time.sleep(draw.random() / 5)
    if draw.random() < 0.5:
        wire.reset()
    tally.check("half sent", 0, (0,))


def _unheard(wire: _Wire, expected: Expected, draw: random.Random, tally: Tally) -> None:
    """Closes the connection before its answer has arrived."""
    wire.send(_request(_body(draw.choices(list(expected), k=20), alignment=True)))
    time.sleep(draw.random() / 2)
    if draw.random() < 0.5:
        wire.reset()
    tally.check("unheard", 0, (0,))


def _half_heard(wire: _Wire, expected: Expected, draw: random.Random, tally: Tally) -> None:
    """Closes the connection while its answer arrives."""
    wire.send(_request(_body(draw.choices(list(expected), k=20), alignment=True)))
    wire.receive(draw.randrange(1, 400))
    wire.reset()
    tally.check("half heard", 0, (0,))


def _large(wire: _Wire, expected: Expected, draw: random.Random, tally: Tally) -> None:
    """Sends more than the server accepts, which may close the connection before all is sent."""
    kind, body = draw.choice(
        [("large body", b" " * (2 << 20)), ("many texts", _body(["Ja."] * 257)), ("long text", _body(["x" * 2001]))]
    )
    try:
        wire.send(_request(body))
    except ConnectionError:
        tally.check(kind, 0, (0,))
        return
    tally.check(kind, wire.answer()[0], (413, 0) if kind == "large body" else (413,))


def _no_json(wire: _Wire, expected: Expected, draw: random.Random, tally: Tally) -> None:
    """Sends a body that is not JSON, or not a valid request."""
    body, status = draw.choice(
        [
            (b"", 400),
            (b'{"text": ', 400),
            (b'{"text": "\xff"}', 400),
            (b'{"text": "\\ud800"}', 400),
            (b'{"text": NaN}', 400),
            (b"[" * 100_000, 400),
            (draw.randbytes(50), 400),
            (b"null", 422),
            (b'{"text": 1}', 422),
            (b'{"txt": ""}', 422),
            (b'{"text": "", "beam": 1000000}', 422),
        ]
    )
    wire.send(_request(body))
    tally.check("no JSON", wire.answer()[0], (status,))


def _no_http(wire: _Wire, expected: Expected, draw: random.Random, tally: Tally) -> None:
    """Sends bytes that are not HTTP."""
    try:
        wire.send(draw.choice([b"\x16\x03\x01", b"POST /translate\r\n", draw.randbytes(200)]) + b"\r\n\r\n")
    except ConnectionError:
        tally.check("no HTTP", 0, (0,))
        return
    tally.check("no HTTP", wire.answer()[0], (400, 0))


FAULTS: tuple[Callable[[_Wire, Expected, random.Random, Tally], None], ...] = (
    _slow, _stalled, _half_sent, _unheard, _half_heard, _large, _no_json, _no_http,
)  # fmt: skip
"""Faults of broken clients."""

"""Good, bad, slow and broken clients, many and at once, against a process of its own."""

from __future__ import annotations

import http.client
import json
import random
import socket
import struct
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.extras.service.process import Server, answer, request, serving, translation

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="/proc")

CLIENTS = 8

BAD = [
    (400, request("POST", "/translate", b'{"text": ')),
    (400, request("POST", "/translate", b'{"text": "\xff"}')),
    (400, request("POST", "/translate", b"0\r\n\r\n", "Transfer-Encoding: chunked")),
    (400, b"\x16\x03\x01\r\n\r\n"),
    (401, request("POST", "/translate", b'{"text": "a"}')),
    (404, request("GET", "/../etc/passwd")),
    (405, request("GET", "/translate")),
    (421, request("GET", "/health").replace(b"localhost", b"evil.example")),
    (413, translation("x" * 3000)),
    (422, request("POST", "/translate", b'{"txt": "a"}')),
]
"""Requests by the status of their answer."""

KEY = "Authorization: Bearer k"


class Client:
    """Draws what it does; notes what should not be."""

    def __init__(self, server: Server, seed: int, requests: int) -> None:
        self._server, self._draw, self._requests = server, random.Random(seed), requests
        self.wrong: list[str] = []
        self.answered = 0
        self._kept = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)

    def run(self) -> None:
        kinds = (self.kept, self.kept, self.kept, self.closed, self.closed, self.bad, self.aborted, self.pipelined)
        for number in range(self._requests):
            try:
                (self.slow if number % 200 == 77 else self._draw.choice(kinds))()
            except Exception as error:
                self.wrong.append(repr(error))
        self._kept.close()

    def text(self) -> str:
        return " ".join(
            self._draw.choices(["ein", "hund", "läuft", "über", "die", "straße"], k=self._draw.randint(0, 40))
        )

    def compare(self, text: str, status: int, body: bytes) -> None:
        self.answered += 1
        if status != 200 or json.loads(body)["results"][0]["translations"][0]["text"] != text.upper():
            self.wrong.append(f"{text!r}: {status} {body!r}")

    def kept(self) -> None:
        """A request on the connection of those before."""
        text = self.text()
        headers = {"Content-Type": "application/json", **dict([KEY.split(": ")])}
        self._kept.request("POST", "/translate", json.dumps({"text": text}), headers)
        response = self._kept.getresponse()
        self.compare(text, response.status, response.read())

    def closed(self) -> None:
        """A request on a connection of its own."""
        text = self.text()
        with self._server.connect() as connection:
            connection.sendall(translation(text, KEY, "Connection: close"))
            self.compare(text, *answer(connection))

    def pipelined(self) -> None:
        """Two requests at once."""
        texts = [self.text(), self.text()]
        with self._server.connect() as connection:
            connection.sendall(b"".join(translation(text, KEY) for text in texts))
            reader = connection.makefile("rb")
            for text in texts:
                status = int(reader.readline().split()[1])
                head = dict(line.lower().split(b": ") for line in iter(reader.readline, b"\r\n"))
                self.compare(text, status, reader.read(int(head[b"content-length"])))

    def slow(self) -> None:
        """A request in parts."""
        text = self.text()
        data = translation(text, KEY)
        quarter = 1 + len(data) // 4
        with self._server.connect() as connection:
            for start in range(0, len(data), quarter):
                connection.sendall(data[start : start + quarter])
                time.sleep(0.1)
            self.compare(text, *answer(connection))

    def bad(self) -> None:
        status, data = self._draw.choice(BAD)
        if status not in (401, 421):
            data = data.replace(b"\r\n", f"\r\n{KEY}\r\n".encode(), 1)
        with self._server.connect() as connection:
            connection.sendall(data)
            found, body = answer(connection)
        if (found, list(json.loads(body or b"null") or ())) != (status, ["error"]):
            self.wrong.append(f"{data!r}: {found} {body!r}")

    def aborted(self) -> None:
        """A request that is not finished, or whose answer nobody awaits."""
        data = translation(self.text(), KEY)
        with self._server.connect() as connection:
            connection.sendall(data[: self._draw.choice([self._draw.randrange(len(data)), len(data)])])
            if self._draw.random() < 0.5:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # as a crash does


def ask(server: Server, requests: int, seed: int) -> int:
    """Sends so many requests; returns the number of those that were translated."""
    clients = [Client(server, seed + number, requests // CLIENTS) for number in range(CLIENTS)]
    with ThreadPoolExecutor(CLIENTS) as threads:
        list(threads.map(Client.run, clients))
    assert [wrong for client in clients for wrong in client.wrong] == []
    return sum(client.answered for client in clients)


@pytest.mark.parametrize(
    ("warm_up", "requests", "growth_mib"), [(200, 400, 16.0), pytest.param(4000, 10_000, 6.0, marks=pytest.mark.slow)]
)
def test_all_have_their_answers_and_nothing_is_left_of_them(
    warm_up: int, requests: int, growth_mib: float, tmp_path: Path
) -> None:
    with serving(tmp_path, limits='Limits(key=b"k")') as server:
        descriptors = server.descriptors()
        ask(server, warm_up, 1)
        memory_mib = server.memory_mib()
        assert ask(server, requests, 100) > requests / 2
        server.until_closed(descriptors)
        assert server.memory_mib() < memory_mib + growth_mib
        assert server.get("/health")[0] == 200
        assert len(server.stderr.read_text().splitlines()) == 1

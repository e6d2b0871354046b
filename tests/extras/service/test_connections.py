"""Connections that keep a server waiting, against a process of its own."""

from __future__ import annotations

import json
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.extras.service.process import Server, answer, request, serving, translation

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="/proc, and addresses beside 127.0.0.1")


KEY = "Authorization: Bearer s3cret"
PATHS = ["/", "/translate", "/health", "/metrics", "/docs", "/openapi.json", "/page.js", "/nothing"]


@pytest.fixture(scope="module")
def impatient(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that waits for three seconds, and needs a key."""
    limits = "Limits(body=8 << 20, characters=4 << 20, timeout_s=3.0, idle_s=3, key=b's3cret')"
    with serving(tmp_path_factory.mktemp("impatient"), limits) as server:
        assert server.get("/health")[0] == 200
        yield server


def ask(server: Server, data: bytes) -> tuple[int, bytes]:
    """Sends this on a connection of its own."""
    with server.connect() as connection:
        connection.sendall(data)
        return answer(connection)


def error(answered: tuple[int, bytes]) -> tuple[int, str]:
    return answered[0], json.loads(answered[1])["error"]


def test_idle_connections_do_not_stop_a_server_with_few_descriptors(tmp_path: Path) -> None:
    with serving(tmp_path, "Limits(1000, 1, 10, 60.0, 3, *with_files(200))") as server:
        held = [server.connect() for _ in range(250)]
        for connection in held[::2]:
            with suppress(ConnectionError):  # refused
                connection.sendall(b"GET /health HTTP/1.1\r\nHo")
        for _ in range(200):
            if server.get("/health")[0] == 200:
                break
            time.sleep(0.1)
        with server.connect() as good:
            good.sendall(translation("a"))
            status, body = answer(good)
        assert (status, json.loads(body)["results"][0]["translations"][0]["text"]) == (200, "A")
        for connection in held:
            assert answer(connection)[0] in (0, 408, 503)
            connection.close()
        said = server.stderr.read_text().splitlines()[1:]
    assert "Traceback" not in "".join(said)
    assert 1 <= len(said) <= 3  # one a minute
    flags = "--max-connections, --max-client-connections and ulimit -n"
    assert set(said) == {f"warning: connections are refused; see {flags}"}


def test_what_does_not_come_is_not_waited_for(impatient: Server) -> None:
    with impatient.connect() as silent, impatient.connect() as half:
        half.sendall(b"GET /health HTTP/1.1\r\nHost: loc")
        assert silent.recv(100) == b""
        assert error(answer(half)) == (408, "the head of the request did not come within 3 s")
    with impatient.connect() as kept:
        kept.sendall(request("GET", "/health"))
        assert answer(kept)[0] == 200
        assert kept.recv(100) == b""


@pytest.mark.parametrize(
    "start",
    [b"GET /health HTTP/1.1\r\nX: ", request("GET", "/health") + b"GET /health HTTP/1.1\r\nX: ",
     request("POST", "/health", b"", "Content-Length: 1000000")],
    ids=["a head", "a second head", "a body that nobody reads"],
)  # fmt: skip
def test_what_trickles_is_not_waited_for(impatient: Server, start: bytes) -> None:
    def trickle() -> None:
        for _ in range(100):
            slow.sendall(b"x")
            time.sleep(0.2)

    with impatient.connect() as slow:
        slow.sendall(start)
        with pytest.raises(ConnectionError):
            trickle()


def test_a_client_that_asks_again_and_again_keeps_its_connection(impatient: Server) -> None:
    with impatient.connect() as kept:
        began = last = time.monotonic()
        while last < began + 6:
            kept.sendall(translation("a", KEY))
            status, last, before = answer(kept)[0], time.monotonic(), last
            if last > before + 2:
                break  # this machine stands still
            assert status == 200
            time.sleep(0.2)


def test_an_answer_that_is_not_taken_is_thrown_away(impatient: Server) -> None:
    before = impatient.descriptors()
    with socket.socket() as deaf:
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        deaf.settimeout(20)
        deaf.connect(("127.0.0.1", impatient.port))
        deaf.sendall(translation("a " * (1 << 20), KEY))
        for _ in range(400):
            if impatient.descriptors() > before:
                break
            time.sleep(0.05)
        impatient.until_closed(before)


def test_one_address_cannot_have_all_connections(tmp_path: Path) -> None:
    with serving(tmp_path, "Limits(connections=6, client_connections=3)") as server:
        before = server.descriptors()
        held = [server.connect() for _ in range(3)]
        with server.connect() as fourth:
            refused = 503, "there are too many connections; close some, or try again later"
            assert error(answer(fourth)) == refused
        others = [server.connect(source=f"127.0.0.{number}") for number in (2, 3, 4)]
        for connection in others:
            connection.sendall(request("GET", "/health"))
            assert answer(connection)[0] == 200
        with server.connect(source="127.0.0.5") as seventh:
            assert error(answer(seventh)) == refused
        for connection in held + others:
            connection.close()
        server.until_closed(before)
        assert server.get("/health")[0] == 200


def test_what_is_not_http_is_told_to_the_client_alone(impatient: Server) -> None:
    for _ in range(50):
        told = error(ask(impatient, b"\x16\x03\x01\r\n\r\n"))
        assert told == (400, "the request is not HTTP, or its head is too large")
    chunked = ("Content-Type: application/json", "Transfer-Encoding: chunked")
    with impatient.connect() as strange:  # no second answer to one request
        strange.sendall(request("POST", "/health", b"", *chunked))
        assert answer(strange)[0] == 405
        strange.sendall(b"not a chunk\r\n")
        assert answer(strange) == (0, b"")
    assert ask(impatient, request("POST", "/translate", b"", KEY, *chunked) + b"not a chunk\r\n")[0] == 400
    assert ask(impatient, request("GET", "/health", b"", "Connection: Upgrade", "Upgrade: websocket"))[0] == 200
    lines = impatient.stderr.read_text().splitlines()
    assert len(lines) == 1, lines


def test_a_request_of_two_lengths_is_refused(impatient: Server) -> None:
    """A proxy before the server may take the other for the end of the body, and what follows for a request."""
    head = (KEY, "Transfer-Encoding: chunked", "Content-Length: 6", "Content-Type: application/json")
    hidden = request("GET", "/metrics")
    for method, path in (("POST", "/translate"), ("GET", "/"), ("GET", "/health")):
        with impatient.connect() as connection:
            connection.sendall(request(method, path, b"", *head) + b"0\r\n\r\n" + hidden)
            status, body = answer(connection)
            assert (status, list(json.loads(body))) == (400, ["error"])
            assert answer(connection) == (0, b"")
    assert ask(impatient, request("GET", "/health", b"", "Content-Length: 0", "Content-Length: 5"))[0] == 400


def test_a_client_of_http_1_0_need_not_name_the_host(impatient: Server) -> None:
    for version, status in ((b"1.0", 200), (b"1.1", 400)):
        assert ask(impatient, b"GET /health HTTP/" + version + b"\r\n\r\n")[0] == status


def test_translations_and_metrics_need_the_key(impatient: Server) -> None:
    for path in PATHS:
        assert impatient.get(path)[0] == {"/translate": 405, "/metrics": 401, "/nothing": 404}.get(path, 200)
    assert impatient.get("/metrics%0A")[0] in (401, 404)  # some routers take this for the same path
    for wrong in ("", "Bearer", "Bearer ", "Bearer s3cre", "Bearer s3crets", "Basic s3cret", "s3cret", "Bearer sécret"):
        with impatient.connect() as connection:
            connection.sendall(translation("a").replace(b"\r\n", f"\r\nAuthorization: {wrong}\r\n".encode(), 1))
            received = b"".join(iter(lambda: connection.recv(4096), b""))
        assert received.startswith(b"HTTP/1.1 401 "), wrong
        assert b"\r\nwww-authenticate: bearer\r\n" in received.lower()
        assert json.loads(received.partition(b"\r\n\r\n")[2]) == {
            "error": "the API key is missing or wrong; send it as Authorization: Bearer KEY"
        }
    with impatient.connect() as connection:
        for each in (translation("a", KEY), translation("a", "authorization: bearer  s3cret")):
            connection.sendall(each)
            status, body = answer(connection)
            assert (status, json.loads(body)["results"][0]["translations"][0]["text"]) == (200, "A")
        connection.sendall(request("GET", "/metrics", b"", KEY))
        status, counts = answer(connection)
    assert status == 200
    assert b'nmt_requests_total{path="/translate",status="401"} 8.0' in counts
    assert "s3cre" not in impatient.stderr.read_text()

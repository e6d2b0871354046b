"""Requests for other hosts and of two lengths."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator

import pytest

from nmt.core.errors import InputError
from nmt.extras.serve.batcher import Batcher
from nmt.extras.serve.listening import host_names
from nmt.extras.serve.messages import Limits
from tests.extras.serve.fakes import Client, Gated, asking
from tests.extras.serve.process import Server, answer, request, serving

PATHS = ["/", "/translate", "/health", "/metrics", "/docs", "/openapi.json", "/page.js", "/nothing"]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("served")) as found:
        yield found


@pytest.mark.parametrize("path", PATHS)
def test_a_page_cannot_reach_the_server_by_a_name_of_its_own(path: str) -> None:
    async def talk(client: Client, batcher: Batcher) -> None:
        ordinary = await client.get(path)
        for host in ("localhost:8000", "LOCALHOST.", "127.0.0.1", "127.0.0.1:8000", "[::1]", "[::1]:8000", "10.1.2.3"):
            assert (await client.get(path, host=host)).status_code == ordinary.status_code, host
        for host in ("evil.example", "localhost.evil.example:8000", "127.0.0.1.evil.example", "::1", "", "a@localhost",
                     "[::1].evil.example", "localhost:80:80", "127.0.0.1:80@evil.example"):  # fmt: skip
            refused = await client.get(path, host=host)
            assert refused.status_code == 421, host
            assert refused.headers["connection"] == "close"
            assert "content-security-policy" in refused.headers
            assert "--allowed-hosts" in refused.json()["error"]

    asking(Gated(), talk)


@pytest.mark.parametrize(("allowed", "status"), [("nmt.example.org", 200), ("*", 200), ("example.org", 421)])
def test_other_names_can_be_allowed(allowed: str, status: int) -> None:
    async def talk(client: Client, batcher: Batcher) -> None:
        assert (await client.get("/health", host="NMT.example.org:443")).status_code == status
        assert (await client.get("/health", host="localhost")).status_code == 200

    asking(Gated(), talk, limits=Limits(hosts=frozenset({"localhost", allowed})))


def test_the_names_of_a_server_are_local_or_given() -> None:
    own = {"localhost", socket.gethostname().lower(), "nmt.lan"}
    assert host_names("NMT.lan", []) == own
    assert host_names("nmt.lan", ["A.example, b.example", "*"]) == own | {"a.example", "b.example", "*"}
    for wrong in ("http://a.example", "a.example:80", "a.example,", "*.example"):
        with pytest.raises(InputError, match=r"^--allowed-hosts .*: must be a name such as"):
            host_names("localhost", [wrong])


def test_a_request_of_two_lengths_is_refused(server: Server) -> None:
    """A proxy before the server may take the other for the end of the body, and what follows for a request."""
    head = ("Transfer-Encoding: chunked", "Content-Length: 6")
    hidden = request("GET", "/metrics")
    for method, path in (("POST", "/translate"), ("GET", "/"), ("GET", "/health")):
        with server.connect() as connection:
            connection.sendall(
                request(method, path, b"", *head, "Content-Type: application/json") + b"0\r\n\r\n" + hidden
            )
            status, body = answer(connection)
            assert (status, list(json.loads(body))) == (400, ["error"])
            assert answer(connection) == (0, b"")
    with server.connect() as connection:
        connection.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\nContent-Length: 5\r\n\r\n")
        assert answer(connection)[0] == 400


def test_a_client_of_http_1_0_need_not_name_the_host(server: Server) -> None:
    for head, status in ((b"GET /health HTTP/1.0", 200), (b"GET /health HTTP/1.1", 400)):
        with server.connect() as connection:
            connection.sendall(head + b"\r\n\r\n")
            assert answer(connection)[0] == status

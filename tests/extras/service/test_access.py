"""Requests for other hosts, of two lengths, and without the key."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from nmt.core.errors import InputError
from nmt.extras.service.batcher import Batcher
from nmt.extras.service.listening import api_key, host_names
from nmt.extras.service.messages import Limits
from tests.extras.service.fakes import Client, Gated, asking, texts_of
from tests.extras.service.process import Server, answer, request, serving, translation

PATHS = ["/", "/translate", "/health", "/metrics", "/docs", "/openapi.json", "/page.js", "/nothing"]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("locked"), limits='Limits(key=b"s3cret")') as found:
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
    head = ("Authorization: Bearer s3cret", "Transfer-Encoding: chunked", "Content-Length: 6")
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


def test_translations_and_metrics_need_the_key(server: Server) -> None:
    authorized = "Authorization: Bearer s3cret"
    for path in PATHS:
        assert server.get(path)[0] == {"/translate": 405, "/metrics": 401, "/nothing": 404}.get(path, 200)
    assert server.get("/metrics%0A")[0] in (401, 404)  # some routers take this for the same path
    for wrong in ("", "Bearer", "Bearer ", "Bearer s3cre", "Bearer s3crets", "Basic s3cret", "s3cret", "Bearer sécret"):
        with server.connect() as connection:
            connection.sendall(translation("a").replace(b"\r\n", f"\r\nAuthorization: {wrong}\r\n".encode(), 1))
            received = b"".join(iter(lambda: connection.recv(4096), b""))
        assert received.startswith(b"HTTP/1.1 401 "), wrong
        assert b"\r\nwww-authenticate: bearer\r\n" in received.lower()
        assert json.loads(received.partition(b"\r\n\r\n")[2]) == {
            "error": "the API key is missing or wrong; send it as Authorization: Bearer KEY"
        }
    with server.connect() as connection:
        for each in (translation("a", authorized), translation("a", "authorization: bearer  s3cret")):
            connection.sendall(each)
            status, body = answer(connection)
            assert (status, json.loads(body)["results"][0]["translations"][0]["text"]) == (200, "A")
        connection.sendall(request("GET", "/metrics", b"", authorized))
        status, counts = answer(connection)
    assert status == 200
    assert b'nmt_requests_total{path="/translate",status="401"} 8.0' in counts
    assert "s3cre" not in server.stderr.read_text()


def test_without_a_key_none_is_needed() -> None:
    async def talk(client: Client, batcher: Batcher) -> None:
        assert texts_of(await client.translate("a")) == ["A"]
        assert (await client.get("/metrics")).status_code == 200

    asking(Gated(), talk)


def test_a_key_is_read_from_a_file_or_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("NMT_API_KEY", raising=False)
    file = tmp_path / "key"
    file.write_text("from-file\n")
    file.chmod(0o600)
    assert api_key(None) is None
    assert api_key(file) == b"from-file"
    monkeypatch.setenv("NMT_API_KEY", "from-environment")
    assert api_key(None) == b"from-environment"
    assert api_key(file) == b"from-file"
    assert capsys.readouterr().err == ""
    file.chmod(0o604)
    assert api_key(file) == b"from-file"
    warning = f"warning: --api-key-file {file}: everyone on this machine can read it; chmod 600 keeps it to yourself\n"
    assert capsys.readouterr().err == warning


@pytest.mark.parametrize(
    ("content", "message"),
    [("", "is empty;"), (" \n", "is empty;"), ("a b", "must be one line of ASCII without spaces;"),
     ("a\nb", "must be one line"), ("schlüssel", "must be one line"), (None, "No such file or directory")],
)  # fmt: skip
def test_a_key_that_is_none_is_told(
    content: str | None, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "key"
    if content is not None:
        file.write_text(content, encoding="utf-8")
        monkeypatch.setenv("NMT_API_KEY", content)
        with pytest.raises(InputError, match=f"^NMT_API_KEY: {message}"):
            api_key(None)
    with pytest.raises(InputError, match=f"^--api-key-file .*key: {message}"):
        api_key(file)

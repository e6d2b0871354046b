"""Requests that are refused, and why."""

from __future__ import annotations

import pytest
from starlette.datastructures import Headers

from nmt.extras.service.batcher import Batcher, Refused
from nmt.extras.service.messages import Limits
from tests.extras.service.fakes import Client, Gated, asking, conversation


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        (b"", 400, "the body is not JSON: EOF while parsing a value at line 1 column 0"),
        (b'{"text": "a"', 400, "the body is not JSON: EOF while parsing an object at line 1 column 12"),
        (b'{"text": "\xff"}', 400, "the body is not JSON: invalid unicode code point at line 1 column 11"),
        (b'{"text": "\\ud83d"}', 400, "the body is not JSON: unexpected end of hex escape at line 1 column 17"),
        (b'{"text": "a", "n_best": NaN}', 400, "the body is not JSON: expected value at line 1 column 25"),
        (b'{"text": "a", "n_best": ' + b"1" * 5000 + b"}", 400, "the body is not JSON: number out of range"),
        (b"[" * 100_000, 400, "the body is not JSON: recursion limit exceeded"),
        (b"null", 422, 'the body must be a JSON object such as {"text": "…"}'),
        (b'["a"]', 422, 'the body must be a JSON object such as {"text": "…"}'),
        (b"{}", 422, "text: missing; add this key"),
        (b'{"txet": "a"}', 422, "txet: unknown key; did you mean 'text'?"),
        (b'{"text": "a", "alignments": true}', 422, "alignments: unknown key; did you mean 'alignment'?"),
        (b'{"text": 3}', 422, "text: expected text or a list, found 3"),
        (b'{"text": {"a": 1}}', 422, "text: expected text or a list, found keys with values"),
        (b'{"text": ["a", null]}', 422, "text: expected text, found a list of 2; text.1: expected text, found nothing"),
        (b'{"text": "a", "n_best": 0}', 422, "n_best: expected at least 1, found 0"),
        (b'{"text": "a", "n_best": "2"}', 422, "n_best: expected a whole number, found text '2'; remove the quotes"),
        (b'{"text": "a", "n_best": 2.0}', 422, "n_best: expected a whole number, found 2.0"),
        (b'{"text": "a", "beam": true}', 422, "beam: expected a whole number, found true"),
        (b'{"text": "a", "alignment": "yes"}', 422, "alignment: expected true or false, found text 'yes'"),
        (b'{"text": ["a", "b", "c", "d"]}', 413, "4 texts are more than 3; send them in several requests"),
        (b'{"text": ["a", "bbbbbb"]}', 413, "text 2 has 6 characters, more than 5; split it into sentences"),
    ],
    ids=lambda value: value[:40].decode("latin-1") if isinstance(value, bytes) else None,
)
def test_what_cannot_be_answered_is_told_in_a_sentence(body: bytes, status: int, message: str) -> None:
    answer = asking(Gated(), lambda client, _: client.send(body), limits=Limits(sentences=3, characters=5))
    assert answer.status_code == status
    assert answer.json()["error"].startswith(message)
    assert "\n" not in answer.json()["error"]


@conversation()
async def test_the_body_must_be_said_to_be_json_and_its_length_a_number(
    engine: Gated, client: Client, batcher: Batcher
) -> None:
    for kind in ("text/plain", "application/x-www-form", ""):
        response = await client.send(b'{"text": "a"}', **{"content-type": kind})
        assert response.status_code == 415
        assert "Content-Type: application/json" in response.json()["error"]
    for headers, status, message in (
        ({"content-type": "Application/JSON; charset=utf-8"}, 422, "text: missing"),
        ({"content-encoding": "gzip"}, 415, "the body must not be compressed"),
        ({"content-length": "9" * 18}, 413, "the body has more than"),
    ):
        response = await client.send(b"{}", **headers)
        assert response.status_code == status
        assert response.json()["error"].startswith(message)


OWN_HOSTS = ("localhost:8000", "LOCALHOST.", "127.0.0.1", "127.0.0.1:8000", "[::1]", "[::1]:8000", "10.1.2.3")
OTHER_HOSTS = (
    "evil.example", "localhost.evil.example:8000", "127.0.0.1.evil.example", "::1", "", "a@localhost",
    "[::1].evil.example", "localhost:80:80", "127.0.0.1:80@evil.example",
)  # fmt: skip


def test_only_names_of_its_own_are_taken_for_the_server() -> None:
    for host in OWN_HOSTS:
        Limits().check_head(Headers({"host": host}))
    for host in OTHER_HOSTS:
        with pytest.raises(Refused, match="--allowed-hosts") as error:
            Limits().check_head(Headers({"host": host}))
        assert error.value.status == 421


@conversation()
async def test_a_page_cannot_reach_the_server_by_a_name_of_its_own(
    engine: Gated, client: Client, batcher: Batcher
) -> None:
    for path in ("/", "/translate", "/health", "/metrics", "/docs", "/openapi.json", "/page.js", "/nothing"):
        assert (await client.get(path)).status_code != 421
        refused = await client.get(path, host="evil.example")
        assert refused.status_code == 421, path
        assert refused.headers["connection"] == "close"
        assert "content-security-policy" in refused.headers
        assert "--allowed-hosts" in refused.json()["error"]


def test_other_names_can_be_allowed() -> None:
    own, named = Headers({"host": "localhost"}), Headers({"host": "NMT.example.org:443"})
    for allowed in ("nmt.example.org", "*", "example.org"):
        limits = Limits(hosts=frozenset({"localhost", allowed}))
        limits.check_head(own)
        if allowed != "example.org":
            limits.check_head(named)
    with pytest.raises(Refused):
        limits.check_head(named)

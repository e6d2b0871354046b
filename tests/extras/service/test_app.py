"""The routes, around a translator that does as it is told."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from typing import Any
from unittest.mock import AsyncMock

import httpx
import pytest

from nmt.extras.service.app import create_app
from nmt.extras.service.batcher import Batcher, Batching, RequestOptions
from nmt.extras.service.messages import HealthAnswer, Limits, TranslateAnswer, TranslateRequest
from nmt.extras.service.metrics import ServerMetrics
from tests.extras.service.fakes import Client, Gated, asking, batching, conversation, texts_of, tree, until


def error_of(response: httpx.Response, status: int) -> str:
    assert response.status_code == status, response.text
    ((name, message),) = response.json().items()
    assert name == "error"
    assert "\n" not in message
    return str(message)


async def begun(engine: Gated, client: Client, text: str = "a") -> asyncio.Task[httpx.Response]:
    """A request that the model has begun."""
    task = asyncio.create_task(client.translate(text))
    await until(lambda: len(engine.batches) == 1)
    return task


async def queued(batcher: Batcher, client: Client, *texts: str) -> asyncio.Task[httpx.Response]:
    """A request that waits."""
    task = asyncio.create_task(client.translate(list(texts)))
    await until(lambda: batcher.pending == len(texts))
    return task


@conversation()
async def test_one_text_or_several_give_a_result_each(engine: Gated, client: Client, batcher: Batcher) -> None:
    one = (await client.translate("ein Hund")).json()
    assert one == {"results": [{"line": 1, **tree("ein Hund")}], "warnings": []}
    several = (await client.translate(["a", "", "long", "a"])).json()
    assert several == {
        "results": [{"line": number, **tree(text)} for number, text in enumerate(["a", "", "long", "a"], 1)],
        "warnings": ["line 3: cut"],
    }
    assert (await client.translate([])).json() == {"results": [], "warnings": []}


@conversation()
async def test_options_reach_the_engine(engine: Gated, client: Client, batcher: Batcher) -> None:
    await client.translate("a", n_best=2, beam=4, alignment=True)
    await client.translate("a", n_best=None)
    assert [options for options, _ in engine.batches] == [RequestOptions(2, 4, True), RequestOptions()]


@conversation(limits=Limits(sentences=3, characters=5))
async def test_a_request_is_checked_before_it_waits(engine: Gated, client: Client, batcher: Batcher) -> None:
    assert "recursion limit exceeded" in error_of(await client.send(b"[" * 100_000), 400)
    assert error_of(await client.translate(["a"] * 4), 413).startswith("4 texts are more than 3")
    message = "text 2 has 8 subwords, more than 5; split it into sentences"
    assert error_of(await client.translate(["a", "🐕🐕"]), 413) == message
    assert error_of(await client.translate("a", n_best=6), 422) == "n_best: 6 is more than this server allows, 5"
    assert engine.batches == []


@conversation(limits=Limits(body=1000))
async def test_a_body_is_read_to_the_limit_and_no_further(engine: Gated, client: Client, batcher: Batcher) -> None:
    sent = 0

    async def chunks() -> AsyncIterator[bytes]:
        nonlocal sent
        for _ in range(1000):
            sent += 1
            yield b" " * 100

    exact = b'{"text": "a"}'.ljust(1000)
    assert texts_of(await client.send(exact)) == ["A"]
    response = await client.send(exact + b" ")
    assert (
        error_of(response, 413)
        == "the body has more than 1000 bytes; send less at once, or raise --max-body of the server"
    )
    assert response.headers["connection"] == "close"
    error_of(await client.send(chunks()), 413)  # no Content-Length
    assert sent == 11


@conversation(limits=Limits(timeout_s=0.05))
async def test_a_body_that_does_not_come_is_not_waited_for(engine: Gated, client: Client, batcher: Batcher) -> None:
    async def chunks() -> AsyncIterator[bytes]:
        yield b'{"text'
        await asyncio.sleep(20)

    assert error_of(await client.send(chunks()), 408) == "the body did not come within 0.05 s"


@conversation(is_open=False, config=Batching(queue=2, wait_s=0.0))
async def test_a_full_queue_is_429_with_a_time_to_come_again(engine: Gated, client: Client, batcher: Batcher) -> None:
    first = await begun(engine, client)
    second = await queued(batcher, client, "b", "c")
    refused = await client.translate("d")
    assert error_of(refused, 429) == f"the queue is full; try again in {refused.headers['retry-after']} s"
    assert int(refused.headers["retry-after"]) >= 1
    engine.open()
    assert texts_of(await first) + texts_of(await second) == ["A", "B", "C"]


@conversation(is_open=False, limits=Limits(timeout_s=0.3))
async def test_an_answer_that_does_not_come_in_time_is_503_and_out_of_the_queue(
    engine: Gated, client: Client, batcher: Batcher
) -> None:
    first, second = await asyncio.gather(client.translate("a"), client.translate(["b", "c"]))
    for response in (first, second):
        assert error_of(response, 503).startswith("no answer within 0.3 s")
        assert response.headers["retry-after"]
    assert batcher.pending == 0
    engine.open()
    assert texts_of(await client.translate("d")) == ["D"]
    assert sum("d" in batch for _, batch in engine.batches) == 1


def test_a_client_that_goes_away_leaves_nothing_in_the_queue() -> None:
    engine, metrics = Gated(is_open=False), ServerMetrics()

    async def run(batcher: Batcher) -> None:
        app = create_app(batcher, Limits(), metrics)
        client = Client(app)
        first = await begun(engine, client)
        leave = asyncio.Event()
        messages = [{"type": "http.request", "body": b'{"text": ["b", "c"]}', "more_body": False}]

        async def receive() -> Any:
            if messages:
                return messages.pop()
            await leave.wait()
            return {"type": "http.disconnect"}

        scope = {
            "type": "http", "method": "POST", "path": "/translate", "raw_path": b"/translate", "query_string": b"",
            "headers": [(b"content-type", b"application/json")], "http_version": "1.1", "scheme": "http",
        }  # fmt: skip
        second = asyncio.create_task(app(scope, receive, AsyncMock()))
        await until(lambda: batcher.pending == 2)
        leave.set()
        await second
        assert batcher.pending == 0
        engine.open()
        assert texts_of(await first) == ["A"]

    with batching(engine) as batcher:
        asyncio.run(run(batcher))
    assert engine.batches == [(RequestOptions(), ["a"])]
    assert 'nmt_requests_total{path="/translate",status="499"} 1.0' in metrics.text().decode()


@pytest.mark.parametrize("gives_up", [False, True])
def test_draining_answers_what_is_there_unless_it_gives_up_and_refuses_what_comes(gives_up: bool) -> None:
    engine = Gated(is_open=False)

    async def talk(client: Client, batcher: Batcher) -> None:
        first = await begun(engine, client)
        second = await queued(batcher, client, "b")
        (batcher.abort if gives_up else batcher.close)()
        health = await client.get("/health")
        assert (health.status_code, health.json()) == (503, {"status": "draining", **LOADED})
        refused = await client.translate("c")
        assert error_of(refused, 503) == "the server is shutting down; try again"
        assert refused.headers["retry-after"]
        engine.open()
        answers = await asyncio.gather(first, second)
        if gives_up:
            assert {error_of(each, 503) for each in answers} == {"the server is shutting down; try again"}
        else:
            assert [texts_of(each) for each in answers] == [["A"], ["B"]]

    asking(engine, talk)


LOADED = {"model": "fake/best", "alignment": True, "languages": ["de", "en"], "targets": [], "context": 0}


def test_health_while_loading_and_when_ready() -> None:
    async def loading() -> None:
        client = Client(create_app(Batcher(Gated, Batching()), Limits(), ServerMetrics()))
        health = await client.get("/health")
        assert (health.status_code, health.json()) == (503, {"status": "loading", **dict.fromkeys(LOADED)})
        assert error_of(await client.translate("a"), 503) == "the server is loading its model; try again"

    asyncio.run(loading())
    health = asking(Gated(), lambda client, batcher: client.get("/health"))
    assert (health.status_code, health.json()) == (200, {"status": "ready", **LOADED})


@conversation()
async def test_paths_and_methods_that_are_not_there_and_failures_leave_the_server_alive(
    engine: Gated, client: Client, batcher: Batcher
) -> None:
    for path in ("/nothing", "/health/"):  # not sent on to an address that the Host header makes up
        assert error_of(await client.get(path), 404) == "there is nothing at this path"
    assert error_of(await client.get("/translate"), 405) == "this path does not take this method"
    assert "the model failed" in error_of(await client.translate("fail"), 500)
    assert texts_of(await client.translate("a")) == ["A"]


@conversation()
async def test_the_api_is_described_as_it_is(engine: Gated, client: Client, batcher: Batcher) -> None:
    api = (await client.get("/openapi.json")).json()
    answer, health = (await client.translate(["a", "long"])).json(), (await client.get("/health")).json()
    assert set(api["paths"]) == {"/translate", "/health", "/metrics"}
    operation = api["paths"]["/translate"]["post"]
    assert list(map(int, operation["responses"])) == [200, 400, 401, 408, 413, 415, 421, 422, 429, 500, 503]
    body = operation["requestBody"]["content"]["application/json"]["schema"]
    assert set(body["properties"]) == set(TranslateRequest.model_fields)
    assert body["additionalProperties"] is False
    TranslateAnswer.model_validate_json(json.dumps(answer))
    HealthAnswer.model_validate_json(json.dumps(health))


@pytest.mark.parametrize("path", ["/", "/docs", "/page.js", "/page.css", "/api.js", "/icon.svg", "/health", "/nothing"])
def test_no_page_may_load_from_elsewhere(path: str) -> None:
    response = asking(Gated(), lambda client, batcher: client.get(path))
    policy = dict(part.split(" ", 1) for part in response.headers["content-security-policy"].split("; "))
    assert policy["default-src"] == "'none'"
    assert {value for key, value in policy.items() if key != "default-src"} <= {"'self'", "'none'"}
    assert response.headers["x-content-type-options"] == "nosniff"
    if path not in ("/health", "/nothing"):
        assert response.status_code == 200
        assert not re.findall(r"(?:src|href|url|import|fetch)\W+(?:https?:)?//", response.text, flags=re.IGNORECASE)
        assert not re.findall(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(", response.text)

"""A translator that does as it is told, and how to ask a server around it without a network."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar

import httpx
import uvicorn

from nmt.core.errors import InputError
from nmt.extras.service.app import create_app
from nmt.extras.service.batcher import Answer, Batcher, Batching, RequestOptions
from nmt.extras.service.listening import bind, url
from nmt.extras.service.messages import Limits
from nmt.extras.service.metrics import ServerMetrics

T = TypeVar("T")

AT_ONCE = Batching(wait_s=0.0)
LIMITS = Limits()


class Gated:
    """Writes texts in capitals, one batch each time it is let; keeps what it was given."""

    name = "fake/best"
    aligns = True
    languages: tuple[str, str] | None = ("de", "en")
    targets: tuple[str, ...] = ()
    sources: tuple[str, ...] = ("de",)
    context = 0

    def __init__(self, *, is_open: bool = True) -> None:
        self.batches: list[tuple[RequestOptions, list[str]]] = []
        self.begun = threading.Semaphore(0)
        self._gate = threading.Semaphore(0)
        self._is_open = is_open
        self.thread: str | None = None

    def let(self, batches: int = 1) -> None:
        """Lets it do so many batches."""
        for _ in range(batches):
            self._gate.release()

    def open(self) -> None:
        """Lets it do all that comes."""
        self._is_open = True
        self._gate.release()

    def check(self, options: RequestOptions) -> None:
        if options.n_best is not None and options.n_best > 5:
            raise InputError(f"n_best: {options.n_best} is more than this server allows, 5")

    def subwords(self, texts: Sequence[str]) -> list[int]:
        return [len(text.encode()) for text in texts]

    def answer(self, texts: Sequence[str], options: RequestOptions, on_step: Callable[[], object]) -> list[Answer]:
        self.thread = threading.current_thread().name
        self.batches.append((options, list(texts)))
        self.begun.release()
        if not self._is_open:
            assert self._gate.acquire(timeout=20)
        if "fail" in texts:
            raise RuntimeError("the model is broken")
        return [Answer(tree(text), len(text.split()), "cut" if text == "long" else None) for text in texts]


def tree(text: str) -> dict[str, Any]:
    found = {"text": text.upper(), "score": -1.0, "log_prob": -1.0, "tokens": text.split()}
    return {"source": text, "translations": [found]}


@contextmanager
def batching(engine: Gated, config: Batching = AT_ONCE, **callbacks: Any) -> Iterator[Batcher]:
    """A batcher whose engine is loaded."""
    ready = threading.Event()
    batcher = Batcher(lambda: engine, config, on_ready=ready.set, **callbacks)
    batcher.start()
    assert ready.wait(20)
    try:
        yield batcher
    finally:
        batcher.abort()
        engine.open()
        engine.let(1000)
        batcher.join(20)
        assert not batcher.is_alive()


@contextmanager
def serving(engine: Gated, config: Batching = AT_ONCE, limits: Limits = LIMITS) -> Iterator[tuple[str, Batcher]]:
    """Serves the application around an engine over a real socket; yields its address, and its batcher."""
    with batching(engine, config) as batcher, bind("127.0.0.1", 0) as listening:
        app = create_app(batcher, limits, ServerMetrics())
        server = uvicorn.Server(uvicorn.Config(app, log_config=None, lifespan="off"))
        thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
        thread.start()
        yield url(listening), batcher
        server.should_exit = True
        thread.join(20)


class Client:
    """Asks an application, as httpx does."""

    def __init__(self, app: Any) -> None:
        self._client = httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://localhost")

    async def get(self, path: str, **headers: str) -> httpx.Response:
        return await self._client.get(path, headers=headers)

    async def translate(self, text: str | list[str], **options: Any) -> httpx.Response:
        return await self._client.post("/translate", json={"text": text, **options}, timeout=20)

    async def send(self, body: Any, **headers: str) -> httpx.Response:
        return await self._client.post(
            "/translate", content=body, headers={"content-type": "application/json", **headers}
        )


def asking(
    engine: Gated,
    talk: Callable[[Client, Batcher], Awaitable[T]],
    *,
    config: Batching = AT_ONCE,
    limits: Limits = LIMITS,
) -> T:
    """Returns the result of a conversation with a server around ``engine``."""
    metrics = ServerMetrics()
    with batching(engine, config, on_done=metrics.batch) as batcher:
        app = create_app(batcher, limits, metrics)

        async def run() -> T:
            return await talk(Client(app), batcher)

        return asyncio.run(run())


def conversation(
    *, is_open: bool = True, config: Batching = AT_ONCE, limits: Limits = LIMITS
) -> Callable[[Callable[[Gated, Client, Batcher], Awaitable[None]]], Callable[[], None]]:
    """Decorates a test that is a conversation with a server around an engine."""

    def decorated(talk: Callable[[Gated, Client, Batcher], Awaitable[None]]) -> Callable[[], None]:
        def test() -> None:
            engine = Gated(is_open=is_open)
            asking(engine, partial(talk, engine), config=config, limits=limits)

        return test

    return decorated


async def until(condition: Callable[[], bool]) -> None:
    """Waits for what another thread brings about."""
    for _ in range(4000):
        if condition():
            return
        await asyncio.sleep(0.005)
    raise AssertionError("it did not come about in 20 s")


def texts_of(response: httpx.Response) -> list[str]:
    assert response.status_code == 200, response.text
    return [result["translations"][0]["text"] for result in json.loads(response.text)["results"]]

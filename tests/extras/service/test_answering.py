"""Files on their way through the queue; texts are tested through the routes, in test_app.py."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import pytest

from nmt.data.context import Sentence
from nmt.extras.service.answering import Service, kept
from nmt.extras.service.batcher import Batcher, Batching, Refused, RequestOptions
from nmt.extras.service.messages import Limits
from tests.extras.service.fakes import Gated, batching

T = TypeVar("T")

PAGE, CONTENT = Path("a.html"), b"<p>a<p>b<p title='c'>d<p>e"


def serve(engine: Gated, limits: Limits, talk: Callable[[Service], Awaitable[T]]) -> T:
    """Returns the result of a conversation with a service around an engine."""

    async def run() -> T:
        return await talk(Service(batcher, limits))

    with batching(engine) as batcher:
        return asyncio.run(run())


@pytest.mark.parametrize("context", [0, 1])
def test_the_blocks_of_a_file_are_translated_in_portions(context: int) -> None:
    engine = Gated()
    engine.context = context
    translated = serve(
        engine, Limits(sentences=2), lambda service: service.translate_file(PAGE, CONTENT, RequestOptions(to="en"))
    )
    assert translated == b"<p>A<p>B<p title='C'>D<p>E"
    options = RequestOptions(to="en", context=context > 0, document=True, markup=True)
    assert engine.batches == [(options, ["a", "b"]), (options, ["c", "d"]), (options, ["e"])]
    previous = [text.previous for _, texts in engine.batches for text in texts if isinstance(text, Sentence)]
    assert previous == ([(), ("a",), ("a", "b"), ("a", "b", "d")] if context else [])  # the title is apart


def test_a_file_that_takes_too_long_is_given_up() -> None:
    async def talk(service: Service) -> None:
        name = service.start_file(PAGE, CONTENT, RequestOptions())
        assert name.endswith(".html")
        with pytest.raises(TimeoutError):
            await kept(service.files, name)
        assert service.batcher.pending == 0

    serve(Gated(is_open=False), Limits(timeout_s=0.2), talk)


def test_there_is_no_engine_before_it_is_loaded() -> None:
    with pytest.raises(Refused, match="the server is loading its model; try again") as error:
        _ = Service(Batcher(Gated, Batching()), Limits()).engine
    assert (error.value.status, error.value.retry_after_s) == (503, 2)

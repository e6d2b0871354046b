"""The counts of a server."""

from __future__ import annotations

import asyncio
import re

from nmt.extras.service.batcher import Batcher
from tests.extras.service.fakes import Client, Gated, conversation, until


def count(text: str, name: str) -> float:
    return sum(float(value) for value in re.findall(rf"^{re.escape(name)} (\S+)$", text, flags=re.MULTILINE))


@conversation(is_open=False)
async def test_metrics_count_what_happened(engine: Gated, client: Client, batcher: Batcher) -> None:
    assert "\nnmt_sentences_total 0.0" in (await client.get("/metrics")).text
    first = asyncio.create_task(client.translate("a b c"))
    await until(lambda: len(engine.batches) == 1)
    others = [asyncio.create_task(client.translate(text)) for text in (["d", "e"], "f")]
    await until(lambda: batcher.pending == 3)
    assert count((await client.get("/metrics")).text, "nmt_queue_sentences") == 3
    engine.open()
    await asyncio.gather(first, *others)
    await client.translate("x", beam=0)
    await client.get("/no/such/path")
    await client.get("/another")
    response = await client.get("/metrics")
    assert response.headers["content-type"].startswith("text/plain; version=0.0.4")
    found = response.text
    for name, value in {
        'nmt_requests_total{path="/translate",status="200"}': 3,
        'nmt_requests_total{path="/translate",status="422"}': 1,
        'nmt_requests_total{path="other",status="404"}': 2,
        "nmt_sentences_total": 4,
        "nmt_tokens_total": 6,
        "nmt_queue_sentences": 0,
        'nmt_batch_sentences_bucket{le="1.0"}': 1,
        "nmt_batch_sentences_count": 2,
        "nmt_batch_sentences_sum": 4,
        "nmt_queue_seconds_count": 3,
        "nmt_batch_seconds_count": 2,
        'nmt_request_seconds_count{path="/translate"}': 4,
    }.items():
        assert count(found, name) == value, name

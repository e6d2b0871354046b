"""Counts of the server, in the text format of Prometheus."""

from __future__ import annotations

from functools import partial

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest

from nmt.extras.service.batcher import Done

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
_SENTENCES = (1, 2, 4, 8, 16, 32, 64, 128, 256)


class ServerMetrics:
    """The counts of one server, in a separate registry."""

    def __init__(self) -> None:
        self._registry = registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        counter = partial(Counter, registry=registry)
        histogram = partial(Histogram, registry=registry)
        seconds = partial(histogram, buckets=_SECONDS)
        self._requests = counter("nmt_requests", "Requests answered.", ["path", "status"])
        self._request_s = seconds("nmt_request_seconds", "From a request's head to its answer's end.", ["path"])
        self._sentences = counter("nmt_sentences", "Sentences translated.")
        self._tokens = counter("nmt_tokens", "Subwords of translations.")
        self._batch = histogram("nmt_batch_sentences", "Sentences translated together.", buckets=_SENTENCES)
        self._batch_s = seconds("nmt_batch_seconds", "What a batch took in the model.")
        self._queued_s = seconds("nmt_queue_seconds", "How long a request waited for its first batch.")
        self.queue = Gauge("nmt_queue_sentences", "Sentences that wait.", registry=registry)

    def request(self, path: str, status: int, seconds: float) -> None:
        """Counts a request."""
        self._requests.labels(path, status).inc()
        self._request_s.labels(path).observe(seconds)

    def batch(self, done: Done) -> None:
        """Counts a batch."""
        self._sentences.inc(done.sentences)
        self._tokens.inc(done.tokens)
        self._batch.observe(done.sentences)
        self._batch_s.observe(done.seconds)
        for waited_s in done.waited_s:
            self._queued_s.observe(waited_s)

    def text(self) -> bytes:
        """Formats all counts for Prometheus."""
        return generate_latest(self._registry)

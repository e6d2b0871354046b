"""A uvicorn server on a socket, which answers the requests in the queue before it ends."""

from __future__ import annotations

import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import TYPE_CHECKING, Any

import uvicorn

from nmt.core import log
from nmt.extras.service.app import create_app
from nmt.extras.service.batcher import Batcher, Batching
from nmt.extras.service.connections import Connection
from nmt.extras.service.listening import url
from nmt.extras.service.messages import Limits
from nmt.extras.service.metrics import ServerMetrics

if TYPE_CHECKING:
    from nmt.extras.service.engine import TranslatorEngine

LAST_WORDS_S = 5
"""Seconds in which finished answers are sent when the server ends."""


def run(listening: socket.socket, load: Callable[[], TranslatorEngine], batching: Batching, limits: Limits) -> None:
    """Serves until SIGTERM or SIGINT, then answers the requests in the queue for up to ``limits.grace_s`` seconds; a
    second signal ends it at once. Raises the errors of ``load``, and KeyboardInterrupt after SIGINT. If the model is
    still at work then, the process exits here."""
    # without a traceback for each connection that waits for a descriptor
    logging.getLogger("asyncio").addFilter(lambda record: "out of system resource" not in record.getMessage())
    metrics = ServerMetrics()
    server: _Server
    said = f"ready: {url(listening)}"
    batcher = Batcher(
        load, batching, on_ready=lambda: log.info(said), on_done=metrics.batch, on_end=lambda: server.end()
    )
    unused: Any = {"log_config": None, "access_log": False, "server_header": False, "lifespan": "off", "ws": "none"}
    config = uvicorn.Config(
        create_app(batcher, limits, metrics),
        http=type("Connection", (Connection,), {"limits": limits}),
        backlog=100,  # connections that are accepted in one go, before any can be refused
        timeout_keep_alive=limits.idle_s,
        log_level="error",  # no message for requests that are not HTTP
        timeout_graceful_shutdown=LAST_WORDS_S,
        **unused,
    )
    server = _Server(config, batcher, limits.grace_s)
    batcher.start()
    server.run([listening])
    batcher.abort()
    if batcher.failure is not None:
        raise batcher.failure
    batcher.join(1.0)
    if batcher.is_alive():
        log.warning("the last batch was not done in time and is given up")
        sys.stderr.flush()
        os._exit(130 if server.signal == signal.SIGINT else 0)  # an orderly exit aborts if torch is at work
    if server.signal == signal.SIGINT:
        raise KeyboardInterrupt


class _Server(uvicorn.Server):
    """Server that ends when the batcher has ended: a signal closes the batcher, and until it is done, every request is
    answered."""

    def __init__(self, config: uvicorn.Config, batcher: Batcher, grace_s: float) -> None:
        super().__init__(config)
        self._batcher, self._grace_s = batcher, grace_s
        self.signal: int | None = None

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if self.signal is None:
            _aside(0.0, self._batcher.close)
        _aside(self._grace_s if self.signal is None else 0.0, self._give_up)
        self.signal = self.signal or sig

    def end(self) -> None:
        """Lets uvicorn send the finished answers and end."""
        self.should_exit = True

    def _give_up(self) -> None:
        self._batcher.abort()
        self.end()


def _aside(delay_s: float, act: Callable[[], None]) -> None:
    """Runs a function in a thread of its own, because a signal handler may interrupt the holder of a lock."""
    timer = threading.Timer(delay_s, act)
    timer.daemon = True
    timer.start()

"""The connections of a server: limits of their number, and of the time that each may keep it waiting."""

from __future__ import annotations

import asyncio
import json
from typing import ClassVar

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from nmt.core import log
from nmt.extras.service.messages import Limits


class Connection(H11Protocol):
    """A connection that is refused if there are too many, and closed if its client sends no request, half a head or a
    body that nobody reads, or does not take its answer. h11 parses requests, even if httptools is installed."""

    limits: ClassVar[Limits]
    quiet_until_s: ClassVar[float] = 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.address = self.client and self.client[0]
        self._cycle, self._waits_since_s = self.cycle, self.loop.time()
        of_client = sum(isinstance(each, Connection) and each.address == self.address for each in self.connections)
        if len(self.connections) > self.limits.connections or of_client > self.limits.client_connections:
            self.connections.discard(self)
            self._refuse(503, "there are too many connections; close some, or try again later")
            if self.loop.time() >= self.quiet_until_s:  # clients can cause any number of these
                Connection.quiet_until_s = self.loop.time() + 60
                log.warning("connections are refused; see --max-connections, --max-client-connections and ulimit -n")
        self._check()

    def _check(self) -> None:
        """Checks every second if the connection waits too long for its client, and then ends it."""
        if self not in self.connections:
            return
        self.loop.call_later(1.0, self._check)
        unsent = self.transport.get_write_buffer_size()
        is_answered = self.cycle is None or self.cycle.response_complete
        if self.cycle is not self._cycle or not (is_answered or unsent):
            self._cycle, self._waits_since_s = self.cycle, self.loop.time()
        waited_s = self.loop.time() - self._waits_since_s
        if unsent and waited_s > self.limits.timeout_s:
            self.transport.abort()
        elif not unsent and waited_s > self.limits.idle_s:
            self._refuse(408, f"the head of the request did not come within {self.limits.idle_s} s")

    def send_400_response(self, msg: str) -> None:
        self._refuse(400, "the request is not HTTP, or its head is too large")

    def _refuse(self, status: int, message: str) -> None:
        """Closes the connection, after an answer to a request that has none yet; an idle connection is closed
        silently."""
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE) and (status != 408 or self.conn.trailing_data[0]):
            body = json.dumps({"error": message})
            head = f"HTTP/1.1 {status} Refused\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
            self.transport.write(f"{head}\r\nConnection: close\r\n\r\n{body}".encode())
        self.transport.close()

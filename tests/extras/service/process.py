"""A server in another process, around a translator that writes texts in capitals, and connections to it."""

from __future__ import annotations

import http.client
import json
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[3]

SERVER = """
import resource, sys, time
from dataclasses import replace
from nmt.extras.service.batcher import Answer, Batching
from nmt.extras.service.listening import bind, connections_at_most
from nmt.extras.service.messages import Limits
from nmt.extras.service.server import run

class Capitals:
    name, aligns, languages, targets, context = "capitals", False, None, (), 0
    def check(self, options): pass
    def subwords(self, texts): return [len(text.split()) for text in texts]
    def answer(self, texts, options, on_step):
        found = [{"text": text.upper(), "score": -1.0, "log_prob": -1.0, "tokens": text.split()} for text in texts]
        return [Answer({"source": text, "translations": [each]}, 1) for text, each in zip(texts, found)]

class Slow(Capitals):
    def answer(self, texts, options, on_step):
        print("begun", file=sys.stderr, flush=True)
        time.sleep(60)

def with_files(count):
    resource.setrlimit(resource.RLIMIT_NOFILE, (count, count))
    most = connections_at_most(1000)
    return most, most // 2

run(bind("127.0.0.1", 0), {engine}, Batching(wait_s=0.0), replace({limits}, grace_s={grace_s}))
"""


@dataclass(frozen=True)
class Server:
    """A server that is ready."""

    process: subprocess.Popen[bytes]
    port: int
    stderr: Path

    def connect(self, *, source: str = "127.0.0.1", timeout_s: float = 20.0) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=timeout_s, source_address=(source, 0))

    def get(self, path: str, **headers: str) -> tuple[int, bytes]:
        with closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)) as connection:
            connection.request("GET", path, headers=headers)
            response = connection.getresponse()
            return response.status, response.read()

    def descriptors(self) -> int:
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def memory_mib(self) -> float:
        """The resident memory."""
        return int(re.findall(r"VmRSS:\s*(\d+) kB", Path(f"/proc/{self.process.pid}/status").read_text())[0]) / 1024

    def until_closed(self, descriptors: int) -> None:
        """Waits until it has no more than so many descriptors."""
        for _ in range(400):
            if self.descriptors() <= descriptors:
                return
            time.sleep(0.05)
        raise AssertionError(f"{self.descriptors()} descriptors are open after 20 s, not {descriptors}")


def request(method: str, path: str, body: bytes = b"", *headers: str) -> bytes:
    lines = [f"{method} {path} HTTP/1.1", "Host: localhost", *headers]
    if body:
        lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
    return "\r\n".join([*lines, "\r\n"]).encode() + body


def translation(text: str, *headers: str) -> bytes:
    return request("POST", "/translate", json.dumps({"text": text}).encode(), *headers)


def answer(connection: socket.socket) -> tuple[int, bytes]:
    """The status and body of the next answer; 0 and nothing where the server has closed the connection."""
    response = http.client.HTTPResponse(connection)
    try:
        response.begin()
        return response.status, response.read()
    except (http.client.BadStatusLine, ConnectionError):
        return 0, b""


@contextmanager
def serving(
    folder: Path, limits: str = "Limits()", *, engine: str = "Capitals", grace_s: float = 1.0, code: int = 0
) -> Iterator[Server]:
    """A server with limits that are given as source code; it must end with this exit code, after a signal."""
    stderr = folder / "stderr"
    program = SERVER.replace("{limits}", limits).replace("{engine}", engine).replace("{grace_s}", str(grace_s))
    command, environment = [sys.executable, "-c", program], {**os.environ, "PYTHONPATH": str(ROOT)}
    with stderr.open("wb") as file, subprocess.Popen(command, stderr=file, env=environment) as process:
        try:
            for _ in range(1200):
                if ready := re.search(r"^ready: .*:(\d+)$", stderr.read_text(), flags=re.MULTILINE):
                    break
                assert process.poll() is None, stderr.read_text()
                time.sleep(0.05)
            assert ready
            yield Server(process, int(ready[1]), stderr)
            process.terminate()
            assert process.wait(20) == code
        finally:
            process.kill()

"""``nmt serve`` with a trained model: how its process begins and ends."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

import nmt as package
from tests.workflows.runs import error, nmt

ROOT = Path(__file__).parents[3]


@pytest.mark.skipif(sys.platform != "linux", reason="/proc")
def test_a_heavy_request_holds_up_nobody_and_ends_with_its_client_and_an_interruption_exits_130(trained: Path) -> None:
    """The search never ends by itself: the heavy text takes 100,000 steps, the other one some hundreds."""
    search = {"min_length": 1_000_000, "max_length_ratio": 100, "split_longer_than": "null", "beam": 2}
    changes = [word for key, value in search.items() for word in ("--set", f"search.{key}={value}")]
    with (
        served(trained, *changes) as (process, address, _),
        httpx.Client(base_url=address, trust_env=False, timeout=60) as client,
    ):
        with socket.create_connection(("127.0.0.1", int(address.rpartition(":")[2]))) as heavy:
            body = json.dumps({"text": "hund " * 400})
            head = "POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            heavy.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n{body}".encode())
            heavy.settimeout(0.2)
            with pytest.raises(TimeoutError):
                heavy.recv(1)
            assert client.post("/translate", json={"text": "der"}).status_code == 200
            with pytest.raises(TimeoutError):
                heavy.recv(1)
            assert processor_s(process.pid, 0.5) > 0.05  # it is still at work
        for _ in range(20):
            if used := processor_s(process.pid, 0.5) < 0.05:
                break
        assert used, "it works on for nobody"
        assert client.post("/translate", json={"text": "der"}).status_code == 200
        with socket.create_connection(("127.0.0.1", int(address.rpartition(":")[2]))) as held:
            held.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert held.recv(100).startswith(b"HTTP/1.1 200 OK")
            process.send_signal(signal.SIGINT)  # it exits even while clients hold connections
            assert process.wait(20) == 130
        assert process.stderr is not None
        (unlike,) = process.stderr.read().splitlines()
        assert unlike.startswith("warning: this text is unlike the source side of the training corpus")


def processor_s(pid: int, seconds: float) -> float:
    """Processor time of a process in so many seconds."""
    used = []
    for _ in range(2):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
        used.append(sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK"))
        time.sleep(seconds if len(used) == 1 else 0)
    return used[1] - used[0]


@contextmanager
def served(folder: Path, *arguments: str, run: str = "run") -> Iterator[tuple[subprocess.Popen[str], str, list[str]]]:
    """A server in another process that is ready, its address, and what it says further."""
    command = [sys.executable, "-m", "nmt", "serve", run, "--port", "0", "--precision", "float32", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    with subprocess.Popen(command, cwd=folder, env=environment, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            said = []
            for line in process.stderr:
                said.append(line)
                if line.startswith("ready: "):
                    break
            assert said[-1:], "it has ended"
            yield process, said[-1].split()[1], said
        finally:
            process.kill()


def ask(address: str, found: list[httpx.Response], **headers: str) -> threading.Thread:
    """Sends a request that waits."""

    def send() -> None:
        found.append(
            httpx.post(f"{address}/translate", json={"text": "der hund"}, headers=headers, timeout=30, trust_env=False)
        )

    thread = threading.Thread(target=send)
    thread.start()
    for _ in range(1000):
        if "nmt_queue_sentences 1.0" in httpx.get(f"{address}/metrics", trust_env=False).text:
            return thread
        time.sleep(0.01)
    raise AssertionError("the request has not come into the queue")


@pytest.mark.skipif(os.name == "nt", reason="POSIX signals")
def test_terminated_it_answers_what_has_come_and_exits_0(trained: Path) -> None:
    with served(trained, "--wait", "20000") as (process, address, said):
        host, port = address.removeprefix("http://").split(":")
        assert host == "127.0.0.1"
        taken = nmt("serve", "run", "--port", port, folder=trained)
        assert error(taken).startswith(f"--port {port}: cannot be had on 127.0.0.1: Address already in use; choose")
        found: list[httpx.Response] = []
        waiting = ask(address, found)
        process.send_signal(signal.SIGTERM)
        waiting.join(20)
        assert process.wait(20) == 0
        assert process.stderr is not None
        assert process.stderr.read() == ""
        assert [line.partition(":")[0] for line in said] == ["model", "ready"]
    (translation,) = package.load(trained / "run", device="cpu", precision="float32").translate(["der hund"])
    assert found[0].status_code == 200
    assert found[0].json()["results"][0]["translations"][0]["text"] == translation.text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--host", "no.such.host.invalid"], "--host no.such.host.invalid: "),
        (["--precision", "float16", "--device", "cpu", "--port", "0"], "--precision float16: is for CUDA devices"),
        (["--port", "0", "--allowed-hosts", "http://x"], "--allowed-hosts http://x: must be a name such as"),
        (["--port", "0", "--api-key-file", "no.key"], "--api-key-file no.key: no such file"),
    ],
    ids=["before the model is loaded", "by loading it", "hosts", "key"],
)
def test_what_keeps_it_from_serving_is_one_line(trained: Path, arguments: list[str], message: str) -> None:
    done = nmt("serve", "run", "--quiet", *arguments, folder=trained)
    assert error(done).startswith(message)

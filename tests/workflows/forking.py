"""Processes that run the command line without importing PyTorch each: forks of one that has imported it.

A fork shares nothing with the test and runs ``nmt`` from its ``main`` on, as a new interpreter would; what it saves is
the second and a half that the imports take.
"""

from __future__ import annotations

import atexit
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any

ROOT = Path(__file__).parents[2]


class Forks:
    """A process that forks, started when it is first asked for, and ended with this one."""

    def __init__(self, root: Path = ROOT) -> None:
        """``root`` is the folder that has the packages ``nmt`` and ``tests``."""
        self._root = root
        self._environment: dict[str, str] = {}
        self._socket: socket.socket | None = None

    def run(
        self, arguments: list[str], folder: Path, stdin: bytes, environment: dict[str, str]
    ) -> subprocess.CompletedProcess[bytes] | None:
        """Runs ``nmt`` with these arguments and returns the result; None if the environment differs from that of the
        imports."""
        if self._socket is None:
            self._start(environment)
        assert self._socket is not None
        if environment != self._environment:
            return None
        pipes = [os.pipe() for _ in range(3)]
        theirs = [pipes[0][0], pipes[1][1], pipes[2][1]]
        request = json.dumps([arguments, str(folder)]).encode()
        socket.send_fds(self._socket, [len(request).to_bytes(8, "big") + request], theirs)
        for descriptor in theirs:
            os.close(descriptor)
        found: dict[int, bytes] = {}
        threads = [threading.Thread(target=_write, args=(os.fdopen(pipes[0][1], "wb"), stdin))]
        threads += [
            threading.Thread(target=_read, args=(os.fdopen(pipes[number][0], "rb"), number, found)) for number in (1, 2)
        ]
        for thread in threads:
            thread.start()
        code = int(self._socket.recv(16))
        for thread in threads:
            thread.join()
        return subprocess.CompletedProcess(["nmt", *arguments], code, found[1], found[2])

    def _start(self, environment: dict[str, str]) -> None:
        here, there = socket.socketpair()
        with there:
            subprocess.Popen(
                [sys.executable, "-m", "tests.workflows.forking", str(there.fileno())],
                cwd=self._root, env=environment, pass_fds=[there.fileno()], stdin=subprocess.DEVNULL,
            )  # fmt: skip
        self._socket, self._environment = here, environment


def _write(stream: IO[bytes], data: bytes) -> None:
    try:
        with stream:
            stream.write(data)
    except BrokenPipeError:
        pass


def _read(stream: IO[bytes], number: int, found: dict[int, bytes]) -> None:
    with stream:
        found[number] = stream.read()


def serve(requests: socket.socket) -> None:
    """Forks for each request, until the other side is gone."""
    import torch._dynamo  # noqa: F401  # which training imports, and most of PyTorch with it

    from nmt.cli.app import main

    if find_spec("nmt.extras"):
        from nmt.extras.speed import optimize  # noqa: F401
    from nmt.workflows import align, evaluate, score, train, translate  # noqa: F401

    while True:
        data, descriptors, _, _ = socket.recv_fds(requests, 1 << 16, 3)
        if not data:
            return
        size = int.from_bytes(data[:8], "big")
        while len(data) < 8 + size:
            data += requests.recv(1 << 16)
        child = os.fork()
        if child == 0:
            requests.close()
            _become(json.loads(data[8:]), list(descriptors), main)
        for descriptor in descriptors:
            os.close(descriptor)
        _, status = os.waitpid(child, 0)
        requests.send(str(os.waitstatus_to_exitcode(status)).encode())


def _become(request: Any, descriptors: list[int], main: Callable[[], None]) -> None:
    """Runs the command line in this process and ends it."""
    arguments, folder = request
    for target, descriptor in enumerate(descriptors):
        os.dup2(descriptor, target)
        os.close(descriptor)
    os.chdir(folder)
    sys.argv = ["nmt", *arguments]
    sys.path[0] = folder
    signal.signal(signal.SIGINT, signal.default_int_handler)
    code = 1
    try:
        main()
    except SystemExit as ended:
        code = int(ended.code or 0)
    except BaseException:
        traceback.print_exc()
    finally:
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)  # to take PyTorch apart would take half a second


if __name__ == "__main__":
    with socket.socket(fileno=int(sys.argv[1])) as requests:
        serve(requests)

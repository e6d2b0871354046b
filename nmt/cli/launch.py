"""Further processes of one command on this machine."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from tempfile import TemporaryFile
from typing import IO

from nmt.core.errors import InputError

FAREWELL = 60.0
"""Seconds that the others have to end after this process has come to its end, or has been interrupted."""


@contextmanager
def together(count: int, arguments: Sequence[str]) -> Iterator[None]:
    """Starts ``count`` - 1 further processes of ``nmt`` with ``arguments``, this one being the first of all, in the way
    of torchrun: by environment variables. The machine's cores are shared out as OMP_NUM_THREADS, unless that is set.

    When this process comes to its end, so do the others; when it fails, they are killed. What one of them had to say
    that failed by itself is shown then, as what it says because another one fails is not. Must be entered before torch
    is imported, which reads the number of threads. Raises InputError where a launcher has started this process already.
    """
    if count == 1:
        yield
        return
    if there := [name for name in ("RANK", "WORLD_SIZE") if name in os.environ]:
        raise InputError(f"--processes {count}: {there[0]} is set, as by torchrun; use one of the two")
    meeting = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(_free_port()), "WORLD_SIZE": str(count)}
    threads = os.environ.get("OMP_NUM_THREADS") or str(max(1, _cores() // count))
    os.environ.update(meeting, RANK="0", LOCAL_RANK="0", OMP_NUM_THREADS=threads)
    with ExitStack() as files:
        others = [_Other(arguments, rank, files.enter_context(TemporaryFile())) for rank in range(1, count)]
        patience = 0.0
        try:
            yield
            patience = FAREWELL
        except KeyboardInterrupt:
            patience = FAREWELL
            raise
        except InputError as error:
            for other in others:
                other.show_unless(str(error))
            raise
        finally:
            for other in others:
                other.end(patience)


class _Other:
    """One of the further processes, and the file that takes what it says."""

    def __init__(self, arguments: Sequence[str], rank: int, said: IO[bytes]) -> None:
        self._said = said
        self._process = subprocess.Popen(
            [sys.executable, "-m", "nmt", *arguments],
            env={**os.environ, "RANK": str(rank), "LOCAL_RANK": str(rank)},
            stdin=subprocess.DEVNULL,
            stderr=said,
        )

    def show_unless(self, known: str) -> None:
        """Hands on what the process has said if it has ended by itself, with other words than those."""
        if self._process.poll() is None:
            return
        self._said.seek(0)
        text = self._said.read().decode(errors="replace")
        if known not in text and "lost touch with the others" not in text:
            print(text, end="", file=sys.stderr)

    def end(self, patience: float) -> None:
        """Waits so many seconds for its end, then brings it about."""
        try:
            self._process.wait(patience)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def _cores() -> int:
    """Those that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port

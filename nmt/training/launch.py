"""Further processes that one command starts on this machine."""

from __future__ import annotations

import _thread
import os
import re
import secrets
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

import typer

from nmt.core.cpu import core_count
from nmt.core.errors import InputError
from nmt.training.interruption import terminated_as_interrupted

FAREWELL = 60.0
"""Seconds that the other processes have to end after this one has ended or has been interrupted."""

ORDERLY = (0, 130, 143)
"""Exit codes of a process that has finished, or has been asked to stop."""

LAST_WORDS = 10.0
"""Seconds that the other processes have to say why they end, after this one has noticed that one is gone."""

_PROGRAM = """import _thread, nmt.cli.app as app, nmt.training.launch as launch
_thread.start_new_thread(launch.watch_parent, ())
app.main()"""


@contextmanager
def spawn_workers(count: int, arguments: Sequence[str]) -> Iterator[None]:
    """Starts ``count`` - 1 further processes of ``nmt`` with ``arguments``, this one being the first of all, in the way
    of torchrun: by environment variables. The machine's cores are shared out as OMP_NUM_THREADS, unless that is set.
    Must be entered before torch is imported, which reads the number of threads.

    When this process finishes, it waits for the others to finish; when it fails, they are killed. If another process
    has failed first, its messages are shown, but not the messages of processes that failed only because of it. Raises
    InputError if a launcher has started this process already, or if another process ends before all have met;
    typer.Exit with 1 for a bug of ours in another one.
    """
    if there := [name for name in ("RANK", "WORLD_SIZE") if name in os.environ]:
        raise InputError(f"--processes {count}: {there[0]} is set, as by torchrun; use one of the two")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    shared = {
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "WORLD_SIZE": str(count),
        "LOCAL_WORLD_SIZE": str(count),
        "TORCHELASTIC_RUN_ID": secrets.token_hex(8),  # identifies the messages on the port
        "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS") or str(max(1, core_count() // count)),
    }
    with ExitStack() as stack:
        files = [stack.enter_context(TemporaryFile()) for _ in range(1, count)]
        stack.enter_context(terminated_as_interrupted())
        stack.callback(os.environ.update, os.environ.copy())
        stack.callback(os.environ.clear)  # before the update: callbacks are called in reverse
        os.environ.update(shared, RANK="0", LOCAL_RANK="0")
        workers: list[_Worker] = []
        missed, patience = threading.Event(), 0.0
        try:
            for rank, file in enumerate(files, 1):
                workers.append(_Worker(arguments, shared | {"RANK": str(rank), "LOCAL_RANK": str(rank)}, file))
            with _watched(workers, missed):
                yield
            patience = FAREWELL
        except (KeyboardInterrupt, SystemExit):  # SystemExit: SIGTERM, after everything has been saved
            if missed.is_set():
                _show(workers, "")
                raise InputError(_killed(workers) or "another process has ended; its own message says why") from None
            patience = FAREWELL
            raise
        except InputError as error:
            from nmt.training.distributed import PeerLost

            if isinstance(error, PeerLost):
                _wait(workers, LAST_WORDS)
                _show(workers, str(error))
                error = InputError(_killed(workers) or str(error))
            raise error from None
        finally:
            try:
                _wait(workers, patience)
            finally:
                for worker in workers:
                    worker.kill()
                    worker.wait()


class _Worker(subprocess.Popen[bytes]):
    """One of the further processes, and the file of its messages."""

    def __init__(self, arguments: Sequence[str], environment: Mapping[str, str], messages: IO[bytes]) -> None:
        self._messages = messages
        # the same code as this process, even if the current folder has another nmt
        path = os.pathsep.join([str(Path(__file__).parents[2]), *filter(None, [os.environ.get("PYTHONPATH")])])
        super().__init__(
            [sys.executable, "-c", _PROGRAM, *arguments],
            env={**os.environ, **environment, "PYTHONPATH": path, "PYTHONSAFEPATH": "1"},
            stdin=subprocess.PIPE,  # see ``watch_parent``
            stdout=2,
            stderr=messages,
        )

    def messages(self) -> str:
        """Reads the messages of the process so far."""
        self._messages.seek(0)
        return self._messages.read().decode(errors="replace")


def watch_parent() -> None:
    """Ends a further process once the first has died, which holds the other end of stdin; stdout is its stderr."""
    os.read(0, 1)
    if os.environ["RANK"] == "1":
        print("error: process 0: Killed; the same command goes on from the last checkpoint", flush=True)
    os._exit(1)


def _killed(workers: Sequence[_Worker]) -> str:
    """Names a process that a signal has ended; returns an empty string if there is none."""
    for rank, worker in enumerate(workers, 1):
        if (code := worker.poll() or 0) < 0:
            return f"process {rank}: {signal.strsignal(-code)}; the same command goes on from the last checkpoint"
    return ""


def _wait(workers: Sequence[_Worker], seconds: float) -> None:
    """Waits until all have ended, or that many seconds have passed."""
    deadline = time.monotonic() + seconds
    while any(worker.poll() is None for worker in workers) and time.monotonic() < deadline:
        time.sleep(0.05)


def _show(workers: Sequence[_Worker], own: str) -> None:
    """Prints the messages of processes that have ended by themselves, unless they repeat this process' ``own``, or are
    a consequence of another's end. Raises typer.Exit with 1 for a bug of ours."""

    def plain(message: str) -> str:
        return re.sub(r"process \d+ of \d+: ", "", " ".join(message.split()))

    is_fault = False
    for worker in workers:
        text = worker.messages()
        is_known = own != "" and plain(own) in plain(text)
        is_consequence = "lost touch with the others" in text or "another process disagrees" in text
        if worker.poll() not in (None, *ORDERLY) and not is_known and not is_consequence:
            print(text, end="", file=sys.stderr)
            is_fault |= worker.returncode == 1
    if is_fault:
        raise typer.Exit(1)


@contextmanager
def _watched(workers: Sequence[_Worker], missed: threading.Event) -> Iterator[None]:
    """Interrupts this process if another one has failed and this one has not noticed after ``LAST_WORDS``, because it
    may be waiting for all to start. ``missed`` is then set."""
    over = threading.Event()

    def watch() -> None:
        while not over.wait(0.2):
            if any(worker.poll() not in (None, *ORDERLY) for worker in workers):
                patience = 2.0 if _killed(workers) else LAST_WORDS  # a killed process says nothing
                while not over.wait(patience):
                    missed.set()
                    # SIGTERM, because a shell ignores SIGINT in what a script starts in the background; again until
                    # this process has ended, because code that catches everything, as imports do, may lose a signal
                    _thread.interrupt_main(signal.SIGTERM)
                    patience = LAST_WORDS
                return

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()

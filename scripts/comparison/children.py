"""Child processes on one CPU thread each, whose CPU time is measured and which an interruption stops in good order."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")


class Stopped(Exception):
    """The comparison was interrupted before this child was done, or before it was started."""


@dataclass(frozen=True)
class Ended:
    """A child that has ended."""

    code: int
    """Its exit code; negative: the signal that killed it."""
    cpu_seconds: float
    """User and system time of it and of the processes that it waited for."""


class Children:
    """All children of this process. ``run`` may be called from several threads, ``interrupt`` from any."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: set[int] = set()
        self._stopping = False

    def run(self, module: str, arguments: Sequence[str | Path], output: Path) -> Ended:
        """Runs ``python -m module arguments`` to its end; what it says goes to the end of the file ``output``.

        Raises Stopped where ``interrupt`` came first.
        """
        scripts = str(Path(__file__).resolve().parents[1])
        paths = [scripts, str(Path(scripts).parent), os.environ.get("PYTHONPATH", "")]
        environment = {**os.environ, **_ONE_THREAD, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
        with output.open("a", encoding="utf-8") as said:
            with self._lock:
                if self._stopping:
                    raise Stopped
                # In a session of its own, for a terminal's Ctrl-C goes to all of ours, and a training that is
                # interrupted twice stops without saving: it shall hear of it from us, and once.
                child = subprocess.Popen(
                    [sys.executable, "-m", module, *map(str, arguments)],
                    stdin=subprocess.DEVNULL,
                    stdout=said,
                    stderr=said,
                    env=environment,
                    start_new_session=True,
                )
                self._running.add(child.pid)
            _, status, usage = os.wait4(child.pid, 0)
            child.returncode = os.waitstatus_to_exitcode(status)
            with self._lock:
                self._running.discard(child.pid)
        return Ended(child.returncode, usage.ru_utime + usage.ru_stime)

    @property
    def stopping(self) -> bool:
        """Whether an interruption has been asked for."""
        return self._stopping

    def interrupt(self) -> None:
        """Asks all children to stop, and lets no new one start. By SIGTERM, which a training takes as it takes Ctrl-C:
        SIGINT would be ignored in what a shell has started in the background."""
        with self._lock:
            self._stopping = True
            for pid in self._running:
                with contextlib.suppress(ProcessLookupError):  # it has just ended
                    os.kill(pid, signal.SIGTERM)

"""Trains in forks of one process and kills them with SIGKILL, one after the other, then lets one come to its end.

    python -m tests.workflows.killing FOLDER MOMENTS SEED COMMAND

Each of the moments, a list in JSON, is a whole number: before that step by which it changes the run directory, counted
over opening, renaming, linking, deleting and syncing; or not whole: after so many seconds. What the fork has written
and not synced by then is cut off at any byte, which the seed draws, as a power cut might leave it. After each kill,
what ``nmt translate`` makes of the run directory is told, and the next fork goes on. Standard output has one JSON
object a line; the last has the exit code of a fork that has come to its end, be it before the last moment.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

EVENTS = frozenset({"open", "os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.symlink", "os.truncate", "os.chmod"})
"""Events of sys.audit, which is called before each of them."""


class Bomb:
    """Ends this process before the ``fuse``-th step that concerns a folder."""

    def __init__(self, folder: Path, fuse: int, draw: random.Random) -> None:
        self._folder = str(folder.resolve())
        self._fuse = fuse
        self._draw = draw
        self._synced: dict[str, int] = {}
        self._quiet = False

    def arm(self) -> None:
        """Arms the bomb, for good: the process cannot be saved."""
        sync = os.fsync

        def synced(descriptor: int) -> None:
            path = os.readlink(f"/proc/self/fd/{descriptor}")
            self._heard("os.fsync", (path,))
            sync(descriptor)
            self._synced[path] = os.fstat(descriptor).st_size

        os.fsync = synced
        sys.addaudithook(self._audited)

    def _audited(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event in EVENTS and not self._quiet:
            self._heard(event, arguments)

    def _heard(self, event: str, arguments: tuple[Any, ...]) -> None:
        named = arguments[:1] if event == "open" else arguments[:2]
        paths = [os.path.abspath(each) for each in named if isinstance(each, (str, Path))]
        if not any(path.startswith(self._folder) for path in paths):
            return
        if event == "open":
            if not arguments[2] & (os.O_WRONLY | os.O_RDWR):
                return
            appends = os.path.exists(paths[0]) and not arguments[2] & os.O_TRUNC
            self._synced[paths[0]] = os.path.getsize(paths[0]) if appends else 0
        elif event == "os.chmod":  # of what Rust has written, whose steps are not heard
            self._synced.setdefault(paths[0], 0)
        self._fuse -= 1
        if self._fuse < 0:
            self._go_off(f"before {event} {os.path.relpath(paths[-1], self._folder)}")
        if event == "os.rename":
            old, new = paths
            self._synced = {new + p[len(old) :] if p.startswith(old) else p: n for p, n in self._synced.items()}

    def _go_off(self, where: str) -> None:
        self._quiet = True
        for path, size in sorted(self._synced.items()):
            if os.path.isfile(path) and os.path.getsize(path) > size:
                os.truncate(path, self._draw.randint(size, os.path.getsize(path)))
        os.write(3, where.encode())
        os.kill(os.getpid(), signal.SIGKILL)


def fork(work: Callable[[], object], *, killed_after: float | None = None, descriptor: int = 3) -> tuple[int, str]:
    """The exit code of a fork, and what it has written to a file descriptor, on Python's stderr for 2."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.dup2(writing, descriptor)
        if descriptor == 2:
            sys.stderr = os.fdopen(2, "w")
        code = 70
        try:
            work()
            code = 0
        except SystemExit as ended:
            code = int(ended.code or 0)
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    os.close(writing)
    if killed_after is not None:
        time.sleep(killed_after)
        os.kill(child, signal.SIGKILL)
    with os.fdopen(reading) as told:
        text = told.read()
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), text


def translated(command: Callable[[list[str]], None]) -> tuple[int, str]:
    """The exit code of nmt translate, and its output or the error that it gives."""

    def translate() -> None:
        reading, writing = os.pipe()
        os.write(writing, b"eins zwei.\n")
        os.close(writing)
        for descriptor, stands_for in ((reading, 0), (3, 1), (3, 2)):
            os.dup2(descriptor, stands_for)
        command(["translate", "run", "--precision", "float32", "--quiet"])

    return fork(translate)


def main(folder: Path, moments: list[int | float], seed: int, arguments: list[str]) -> None:
    import torch._dynamo  # noqa: F401  # which training imports, and most of PyTorch with it

    from nmt.cli.app import main as command
    from nmt.workflows import train, translate  # noqa: F401

    os.chdir(folder)
    for number, moment in enumerate([*moments, None]):
        going_on = (folder / "run" / "latest").exists()
        bomb = Bomb(folder / "run", moment, random.Random(seed + number)) if isinstance(moment, int) else None

        def work(bomb: Bomb | None = bomb) -> None:
            if bomb is not None:
                bomb.arm()
            command(arguments)

        code, where = fork(work, killed_after=moment if isinstance(moment, float) else None)
        if code != -signal.SIGKILL:
            print(json.dumps({"code": code}), flush=True)
            return
        where = where or f"after {moment:.2f} s"
        print(json.dumps({"where": where, "going_on": going_on, "translate": translated(command)}), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), json.loads(sys.argv[2]), int(sys.argv[3]), sys.argv[4:])

"""Functions that the benchmarks share: printed figures, the limit of the machine, and systems that take turns."""

from __future__ import annotations

import json
import multiprocessing
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Generic, TypeVar

import torch

from nmt.core.device import Compute
from nmt.core.errors import InputError

Question = TypeVar("Question")
Answer = TypeVar("Answer")

LOOK_SECONDS = 0.02
"""Seconds between two measurements of memory. One takes some 0.2 ms for each process."""


def plainly(main: Callable[[], None]) -> None:
    """Runs a script; an InputError is printed in one line, with exit code 2."""
    try:
        main()
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)


class PeakMemory:
    """The maximum memory that a process and the programs it starts had resident whenever ``look`` was called, in KiB.

    It is VmHWM of Linux' /proc; 0 elsewhere. Not ``ru_maxrss``: that outlives ``exec``, so it is at least what the
    process that started a program had. VmHWM counts from ``exec`` on. A sum is that of the processes that live at the
    same time: more than they had where they do not peak together, and what they share counts for each.
    """

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self.total = 0
        """Maximum of the process and all its descendants."""
        self.started = 0
        """Maximum of all descendants."""

    def look(self) -> None:
        """Measures the memory now. Growth of a process between the last call and its end is not seen."""
        own, *others = (size_of(pid, "VmHWM") for pid in family(self._pid))
        self.total = max(self.total, own + sum(others))
        self.started = max(self.started, sum(others))


def family(pid: int) -> Iterator[int]:
    """Yields a process and all its descendants, except those that are not a program of their own yet: they have their
    parent's pages."""
    yield pid
    try:
        listings = list(Path(f"/proc/{pid}/task").glob("*/children"))
    except OSError:  # it has ended meanwhile
        return
    for listing in listings:
        for child in map(int, _text(listing).split()):
            if not _is_fork(child):
                yield from family(child)


def _is_fork(pid: int) -> bool:
    """Returns True if the kernel's flag PF_FORKNOEXEC is set: the process is forked, and has not called ``exec``
    since."""
    flags = _text(Path(f"/proc/{pid}/stat")).rpartition(")")[2].split()[6:7]
    return any(int(each) & 0x40 for each in flags)


def size_of(pid: int, field: str, file: str = "status") -> int:
    """Reads a size from a file in /proc/<pid>, in KiB; 0 if the process has ended."""
    lines = _text(Path(f"/proc/{pid}/{file}")).splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith(f"{field}:"))


def _text(file: Path) -> str:
    try:
        return file.read_text(errors="replace")
    except OSError:
        return ""  # of a process that has ended meanwhile


class OwnProcess(Generic[Question, Answer]):
    """A system in a process of its own. ``serve(pipe, *given)`` sends None once it is ready, or the reason why it is
    not; then an answer to each question until the question is None. Its memory is watched from outside, which adds
    nothing to its processor seconds."""

    def __init__(self, serve: Callable[..., None], *given: Any) -> None:
        context = multiprocessing.get_context("spawn")
        self._here, there = context.Pipe()
        self._process = context.Process(target=serve, args=(there, *given))
        self._process.start()
        there.close()  # so that its end is noticed
        self.failure: str | None = self._here.recv()
        assert self._process.pid is not None
        self.memory = PeakMemory(self._process.pid)

    def ask(self, question: Question) -> Answer:
        """Runs one turn."""
        self._here.send(question)
        while not self._here.poll(LOOK_SECONDS):
            self.memory.look()
        answer: Answer = self._here.recv()
        return answer

    def kill(self) -> None:
        """Kills the process."""
        self._process.kill()

    def end(self) -> PeakMemory:
        """Ends the process; returns its maximum memory."""
        self.memory.look()
        self._here.send(None)
        self._process.join()
        return self.memory


def matrix_rate(chosen: Compute, repeats: int = 5) -> float:
    """Measures the floating-point operations per second of a square matrix product in the compute precision, large
    enough to keep the device busy."""
    dtype, size = chosen.dtype, 8192 if chosen.device.type == "cuda" else 2048
    one = torch.randn(size, size, device=chosen.device).to(dtype)
    one @ one
    if chosen.device.type == "cuda":
        torch.cuda.synchronize()
    started = time.perf_counter()
    for _ in range(repeats):
        one @ one
    if chosen.device.type == "cuda":
        torch.cuda.synchronize()
    return repeats * 2 * size**3 / (time.perf_counter() - started)


_ROWS: list[tuple[str, float, str]] = []


def report(name: str, value: float, unit: str, chosen: Compute | str) -> None:
    """Writes one JSON line on stdout, and a row of ``print_table``; ``chosen`` or its label is named with the
    machine."""
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    label = chosen if isinstance(chosen, str) else chosen.label
    machine = f"{platform.machine()}, {label}, torch {torch.__version__}"
    rounded = float(f"{value:.4g}")
    figure = {"name": name, "value": rounded, "unit": unit, "commit": commit.stdout.strip(), "machine": machine}
    print(json.dumps(figure), flush=True)
    _ROWS.append((name, rounded, unit))


def report_memory(name: str, kib: float, chosen: Compute | str) -> None:
    """Reports memory like ``report``; if nothing was measured, as outside Linux, a line on stderr says so."""
    if kib:
        report(name, kib / 1024, "MiB", chosen)
    else:
        print(f"{name}: not measured, it takes Linux' /proc", file=sys.stderr)


def print_table() -> None:
    """Prints everything that was reported, for people, on stderr."""
    width = max((len(name) for name, _, _ in _ROWS), default=0)
    for name, value, unit in _ROWS:
        print(f"{name:<{width}}  {value:>12,g}  {unit}", file=sys.stderr)

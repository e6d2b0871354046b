"""What the benchmarks share: how a figure is printed, the limit that the machine sets, and systems that take turns."""

from __future__ import annotations

import json
import multiprocessing
import platform
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import torch

from nmt.core.device import Compute
from nmt.core.errors import InputError

Question = TypeVar("Question")
Answer = TypeVar("Answer")


def plainly(main: Callable[[], None]) -> None:
    """Runs a script; what it refuses is said in one line, exit code 2."""
    try:
        main()
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)


class OwnProcess(Generic[Question, Answer]):
    """A system in a process of its own. ``serve(pipe, *given)`` sends None once it is ready, or why it is not; then an
    answer to each question until the question is None, and then the most memory that it had, in KiB."""

    def __init__(self, serve: Callable[..., None], *given: Any) -> None:
        context = multiprocessing.get_context("spawn")
        self._here, there = context.Pipe()
        self._process = context.Process(target=serve, args=(there, *given))
        self._process.start()
        there.close()  # so that its end is noticed
        self.failure: str | None = self._here.recv()

    def ask(self, question: Question) -> Answer:
        """One turn."""
        self._here.send(question)
        answer: Answer = self._here.recv()
        return answer

    def kill(self) -> None:
        """Ends the process, whatever it does."""
        self._process.kill()

    def end(self) -> float:
        """Ends the process; the most memory that it had, in KiB."""
        self._here.send(None)
        most: float = self._here.recv()
        self._process.join()
        return most


def matrix_rate(chosen: Compute, size: int = 2048, repeats: int = 5) -> float:
    """Floating-point operations per second of a square matrix product in the compute precision."""
    dtype = chosen.dtype
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
    """One JSON line on stdout, and a row of ``print_table``; ``chosen`` or its label is named with the machine."""
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    label = chosen if isinstance(chosen, str) else chosen.label
    machine = f"{platform.machine()}, {label}, torch {torch.__version__}"
    rounded = float(f"{value:.4g}")
    figure = {"name": name, "value": rounded, "unit": unit, "commit": commit.stdout.strip(), "machine": machine}
    print(json.dumps(figure), flush=True)
    _ROWS.append((name, rounded, unit))


def print_table() -> None:
    """All that was reported, for people, on stderr."""
    width = max(len(name) for name, _, _ in _ROWS)
    for name, value, unit in _ROWS:
        print(f"{name:<{width}}  {value:>12,g}  {unit}", file=sys.stderr)

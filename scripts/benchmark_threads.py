"""Gain from the choice of threads for a training beside other programs.

    python scripts/benchmark_threads.py CONFIG [--set key=value] [--busy 0 --busy 1 --busy 2] [--updates 10]

Beside this many processes that only compute, trains in turn, five times each after a run that warms up: with the
threads that nmt chooses, and with each number up to that of the cores. Prints the target tokens a second of each, and
the ratio of the chosen threads to the best number, medians of five, as JSON lines and a table on stderr.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import torch
from benchmark_training import Training
from measuring import plainly, print_table, report

import nmt
from nmt import experiment as experiments
from nmt.core import log
from nmt.core.device import compute
from nmt.extras.speed.threads import on_idle_cores

ROUNDS = 5


def main() -> None:
    """See the module's docstring."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("config", type=Path)
    parser.add_argument("--set", dest="overrides", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--busy", type=int, action="append", help="processes beside it; default: 0, 1 and 2")
    parser.add_argument("--updates", type=int, default=10, help="of each measurement")
    arguments = parser.parse_args()
    os.environ.pop("OMP_NUM_THREADS", None)
    log.set_verbosity(log.Verbosity.QUIET)
    nmt.accelerate()
    chosen = compute("cpu", "auto")
    with tempfile.TemporaryDirectory() as folder:
        experiment = experiments.load(arguments.config, arguments.overrides)
        training = Training.of(experiment, chosen, Path(folder), updates=arguments.updates)
    for count in arguments.busy or (0, 1, 2):
        measure(training, arguments.updates, count, chosen.label)
    print_table()


def measure(training: Training, updates: int, busy: int, label: str) -> None:
    """Reports the speeds beside this many busy processes."""
    numbers = range(1, torch.get_num_threads() + 1)
    speeds: dict[str, list[float]] = {}
    with busy_processes(busy):
        time.sleep(1)  # until they compute
        for _ in range(1 + ROUNDS):
            with on_idle_cores():
                speeds.setdefault("chosen", []).append(speed(training, updates))
            for number in numbers:
                with threads(number):
                    speeds.setdefault(f"{number}", []).append(speed(training, updates))
    rounds = [dict(zip(speeds, each, strict=True)) for each in zip(*speeds.values(), strict=True)][1:]
    beside = f"beside {busy} busy processes"
    for name in speeds:
        report(f"threads: {name}, {beside}", statistics.median(each[name] for each in rounds), "target tokens/s", label)
    best = max((f"{number}" for number in numbers), key=lambda name: statistics.median(each[name] for each in rounds))
    ratio = statistics.median(each["chosen"] / each[best] for each in rounds)
    report(f"chosen against the best, {beside}", ratio, "times", label)


def speed(training: Training, updates: int) -> float:
    """Returns the target tokens per second."""
    begun = time.perf_counter()
    tokens = sum(training.update(index)[1] for index in range(updates))
    training.finish()
    return tokens / (time.perf_counter() - begun)


@contextmanager
def threads(number: int) -> Iterator[None]:
    """Runs the body of the context with this many threads."""
    usual = torch.get_num_threads()
    torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(usual)


@contextmanager
def busy_processes(number: int) -> Iterator[None]:
    """Runs this many other processes that compute."""
    with ExitStack() as stack:
        for _ in range(number):
            process = stack.enter_context(subprocess.Popen([sys.executable, "-c", "while True: pass"]))
            stack.callback(process.kill)
        yield


if __name__ == "__main__":
    plainly(main)

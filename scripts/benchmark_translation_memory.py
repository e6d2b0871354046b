"""Memory of ``nmt translate`` by the number of lines that go through it.

    python scripts/benchmark_translation_memory.py MODEL SOURCE [--lines 10000 --lines 1000000] [--workers 2]
        [--precision int8] [--set KEY=VALUE]

Writes the lines of SOURCE again and again into the pipe of a process, counts the lines that come out, and tells the
most memory that the process and those it starts had at once (proportional set sizes, so what they share counts once;
looked at ten times a second). The bar is 1.1 times as much for a million lines as for ten thousand. Prints a JSON line
for each figure, and a table on stderr.
"""

from __future__ import annotations

import argparse
import itertools
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from measuring import family, plainly, print_table, report, size_of

from nmt.data.corpus import read_lines


def main() -> None:
    """See the module's docstring."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("source", type=Path)
    parser.add_argument("--lines", type=int, action="append", help="repeatable; default 10000 and 1000000")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--precision", default="auto")
    parser.add_argument("--set", dest="overrides", action="append", default=[], metavar="KEY=VALUE")
    arguments = parser.parse_args()
    lines = [line.encode() + b"\n" for line in read_lines(arguments.source)]
    most = {}
    for count in arguments.lines or [10_000, 1_000_000]:
        options = ["--workers", str(arguments.workers), "--precision", arguments.precision]
        options += [part for each in arguments.overrides for part in ("--set", each)]
        most[count] = translate(arguments.model, lines, count, options)
    smallest = min(most)
    for count, kib in most.items():
        if count != smallest:
            report(f"{count:,} lines: memory as much as for {smallest:,}", kib / most[smallest], "times", "cpu")
    print_table()


def translate(model: str, lines: Sequence[bytes], count: int, options: Sequence[str]) -> float:
    """Translates this many lines; returns the maximum memory, in KiB."""
    command = [sys.executable, "-m", "nmt", "translate", model, "--quiet", *options]
    begin = time.perf_counter()
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    source, result = process.stdin, process.stdout

    def write() -> None:
        source.writelines(itertools.islice(itertools.cycle(lines), count))
        source.close()

    most = 0.0
    is_over = threading.Event()

    def watch() -> None:
        nonlocal most
        while not is_over.wait(0.1):
            most = max(most, memory(process.pid))

    threads = [threading.Thread(target=each, daemon=True) for each in (write, watch)]
    for thread in threads:
        thread.start()
    came = sum(1 for _ in result)
    is_over.set()
    if process.wait() or came != count:
        sys.exit(f"error: nmt translate gave {came} lines for {count}, exit code {process.returncode}")
    machine = f"cpu ({' '.join(options)})"
    report(f"{count:,} lines: most memory", most / 1024, "MiB", machine)
    report(f"{count:,} lines: with start", count / (time.perf_counter() - begin), "lines/s", machine)
    return most


def memory(pid: int) -> float:
    """Returns the memory of a process and all processes that it has started, in KiB; ended processes count nothing."""
    return sum(size_of(each, "Pss", "smaps_rollup") for each in family(pid))


if __name__ == "__main__":
    plainly(main)

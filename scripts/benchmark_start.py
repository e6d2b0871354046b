"""Time from the start of a process to the first sentence's translation.

    python scripts/benchmark_start.py MODEL [--text "Ein Hund läuft."] [--precision auto --precision int8] [--rounds 9]
        [--engine nmt --engine ctranslate2] [--set KEY=VALUE]

The sentence goes into the pipe of ``nmt translate MODEL --quiet``, which stays open, and the time is taken when the
translation comes out, as is the peak of the process's memory. In turn with it (A B A B ...) a Python process imports
PyTorch and does nothing else, which no translator that computes by it can go below. A round to warm up the disk's
cache, then ``--rounds`` that count, of which the medians are told, and that of the rounds' ratios. Processor seconds
are those of the whole process; other programs on the machine lengthen them less. The bar is two seconds. Prints a JSON
line for each figure, and a table on stderr.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import NamedTuple

from measuring import plainly, print_table, report, size_of

from nmt.core.errors import InputError

IMPORT = "import sys, torch; print(torch.__version__, flush=True); sys.stdin.read()"


def main() -> None:
    """See the module's docstring."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--text", default="Ein Hund läuft durch das Gras.")
    parser.add_argument("--precision", action="append", help="repeatable; default auto")
    parser.add_argument("--engine", action="append", help="repeatable; default nmt")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--set", dest="overrides", action="append", default=[], metavar="KEY=VALUE")
    arguments = parser.parse_args()
    options = [part for each in arguments.overrides for part in ("--set", each)]
    translate = ["-m", "nmt", "translate", arguments.model, "--quiet", *options]
    commands = {
        f"{engine}, {precision}": [*translate, "--engine", engine, "--precision", precision]
        for engine in arguments.engine or ["nmt"]
        for precision in arguments.precision or ["auto"]
    }
    starts: dict[str, list[Start]] = {name: [] for name in ("import", *commands)}
    for number in range(arguments.rounds + 1):
        for name, command in {"import": ["-c", IMPORT], **commands}.items():
            start = first_line(command, arguments.text)
            if number > 0:
                starts[name].append(start)
    for name, measured in starts.items():
        what = "PyTorch's import alone" if name == "import" else f"{name}: first sentence"
        report(what, statistics.median(start.seconds for start in measured), "s", "cpu")
        report(f"{what}, processor time", statistics.median(start.processor_s for start in measured), "s", "cpu")
        report(f"{what}, peak of memory", statistics.median(start.memory_MiB for start in measured), "MiB", "cpu")
        if name != "import":
            ratios = [mine.seconds / alone.seconds for mine, alone in zip(measured, starts["import"], strict=True)]
            report(f"{what}, as much as the import", statistics.median(ratios), "times", "cpu")
    print_table()


class Start(NamedTuple):
    """What the start of a process takes."""

    seconds: float
    processor_s: float
    memory_MiB: float


def first_line(command: Sequence[str], text: str) -> Start:
    """Measures a Python process from its start to the first line of its answer, and its processor time to its end."""
    begin = time.perf_counter()
    process = subprocess.Popen([sys.executable, *command], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(f"{text}\n".encode())
        process.stdin.flush()
        line = process.stdout.readline()
        taken, memory = time.perf_counter() - begin, size_of(process.pid, "VmHWM") / 1024
        process.stdin.close()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0 or not line.strip():
            raise InputError("the process has ended without an answer; what it says stands above")
    finally:
        process.kill()
    return Start(taken, usage.ru_utime + usage.ru_stime, memory)


if __name__ == "__main__":
    plainly(main)

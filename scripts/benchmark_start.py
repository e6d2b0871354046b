"""Time from the start of a process to the first sentence's translation.

    python scripts/benchmark_start.py MODEL [--text "Ein Hund läuft."] [--precision auto --precision int8] [--rounds 9]
        [--set KEY=VALUE]

The sentence goes into the pipe of ``nmt translate MODEL --quiet``, which stays open, and the time is taken when the
translation comes out. In turn with it (A B A B ...) a Python process imports PyTorch and does nothing else, which no
translator that computes by it can go below. A round to warm up the disk's cache, then ``--rounds`` that count, of which
the medians are told, and that of the rounds' ratios. The bar is two seconds. Prints a JSON line for each figure, and a
table on stderr.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence

from measuring import plainly, print_table, report

from nmt.core.errors import InputError

IMPORT = "import torch; print(torch.__version__, flush=True)"


def main() -> None:
    """See the module's docstring."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--text", default="Ein Hund läuft durch das Gras.")
    parser.add_argument("--precision", action="append", help="repeatable; default auto")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--set", dest="overrides", action="append", default=[], metavar="KEY=VALUE")
    arguments = parser.parse_args()
    options = [part for each in arguments.overrides for part in ("--set", each)]
    translate = ["-m", "nmt", "translate", arguments.model, "--quiet", *options]
    commands = {each: [*translate, "--precision", each] for each in arguments.precision or ["auto"]}
    times: dict[str, list[float]] = {name: [] for name in ("import", *commands)}
    for number in range(arguments.rounds + 1):
        for name, command in {"import": ["-c", IMPORT], **commands}.items():
            taken = first_line(command, arguments.text)
            if number > 0:
                times[name].append(taken)
    report("PyTorch's import alone", statistics.median(times["import"]), "s", "cpu")
    for name in commands:
        ratios = [mine / alone for mine, alone in zip(times[name], times["import"], strict=True)]
        report(f"{name}: first sentence", statistics.median(times[name]), "s", "cpu")
        report(f"{name}: first sentence, as much as the import", statistics.median(ratios), "times", "cpu")
    print_table()


def first_line(command: Sequence[str], text: str) -> float:
    """Measures the seconds from the start of a Python process to the first line of its answer."""
    begin = time.perf_counter()
    process = subprocess.Popen([sys.executable, *command], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(f"{text}\n".encode())
        process.stdin.flush()
        line = process.stdout.readline()
        taken = time.perf_counter() - begin
        process.stdin.close()
        if process.wait() != 0 or not line.strip():
            raise InputError("the process has ended without an answer; what it says stands above")
    finally:
        process.kill()
    return taken


if __name__ == "__main__":
    plainly(main)
